package lint

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

func ownerRules() []Rule {
	return []Rule{
		{
			ID: "workload/replicas-owned", Severity: diag.Warning, Needs: Files, each: replicasOwned,
			Doc: "A HorizontalPodAutoscaler (or KEDA's ScaledObject) sets the number of pods, and so does the manifest: every time it is applied the number jumps back.",
			Fix: "Leave replicas out of the manifest.",
		},
		{
			ID: "workload/placement-owned", Severity: diag.Warning, Needs: Files, each: placementOwned,
			Doc: "The manifest is of an object that another controls, such as an operator's StatefulSet. What a policy writes into it the operator writes back.",
			Fix: "Say it in the operator's own object, or reach its pods on the admission surface.",
		},
		{
			ID: "workload/profile-not-autoscaled", Severity: diag.Warning, Needs: Files, each: profileNotAutoscaled,
			Doc: "Nodes are made on demand, by an autoscaler that judges Pending pods by the default scheduler's rules. It does not know other profiles: it may make no node where one is needed, or nodes that the profile does not use.",
			Fix: "Run such pods on pools that are there already, or keep them on the default profile.",
		},
	}
}

func replicasOwned(t *template) {
	s := t.known.scalerOf(t.w)
	if s == nil || t.w.Source.Live || t.t != &t.w.Templates[0] {
		return
	}
	if _, said := workload.Lookup(t.w.Object, "spec", "replicas"); !said {
		return
	}
	f := t.reportAt(fmt.Sprintf("%s sets the number of pods, and each time that the manifest is applied it jumps back to this; leave replicas out", s.ref()), "spec", "replicas")
	if at := s.at("spec"); at.Start.IsValid() {
		f.Related = append(f.Related, diag.Related{Range: at, Message: "what scales it"})
	}
}

func placementOwned(t *template) {
	if t.w.Source.Live || t.change == nil || len(t.change.Effects) == 0 || t.Request.Surface == policy.SurfaceAdmission {
		return
	}
	owner, at := ownerOf(t.w)
	if owner == "" {
		return
	}
	o := t.change.Effects[0].Origins[0]
	f := t.reportAt(fmt.Sprintf("it is kept by %s, which would write back what policy %q says; say it in that object, or use the admission surface", owner, o.Policy), at...)
	f.Policy = o.Policy
	f.Related = append(f.Related, diag.Related{Range: o.Range, Message: "the policy"})
}

// ownerOf names the controller in the manifest's ownerReferences, and where.
func ownerOf(w *workload.Workload) (string, []any) {
	v, _ := workload.Lookup(w.Object, "metadata", "ownerReferences")
	refs, _ := v.([]any)
	for i, r := range refs {
		ref, _ := r.(map[string]any)
		if ref["controller"] == true {
			return fmt.Sprintf("%v %v", ref["kind"], ref["name"]), []any{"metadata", "ownerReferences", i}
		}
	}
	return "", nil
}

func profileNotAutoscaled(t *template) {
	name := cmp.Or(t.pods.SchedulerName, corev1.DefaultSchedulerName)
	who := t.nodesBy
	if name == corev1.DefaultSchedulerName || who == "" {
		return
	}
	message := fmt.Sprintf("nodes are made on demand (%s), and what makes them does not know profile %q: it judges the pods by the default scheduler's rules, and may make none for them; keep such pods on nodes that are there already", who, name)
	if t.t.Pods.SchedulerName == name {
		t.report("", message, workload.SchedulerName)
		return
	}
	for _, e := range t.change.Effects {
		if e.Field == string(workload.SchedulerName) {
			t.judgement.report(diag.Finding{Policy: e.Origins[0].Policy, Subject: t.subject(), Range: e.Origins[0].Range, Message: message})
			return
		}
	}
}
