package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/condition"
)

func clusterRules() []Rule {
	return []Rule{
		{
			ID: "workload/unknown-profile", Severity: diag.Warning, Needs: Cluster, each: unknownProfile,
			Doc: "A pod whose schedulerName no scheduler serves stays Pending, and nobody says why. A name is taken to be served if the default scheduler or a known one has it, or if pods with it run.",
			Fix: "Name a profile that is served, or leave schedulerName out.",
		},
		{
			ID: "cluster/gated-pods", Severity: diag.Warning, Needs: Cluster, run: gatedPods,
			Doc: "Pods have waited at a scheduling gate for more than an hour, and nobody is known to remove it: for a gate of ours, no bundled scheduler runs.",
			Fix: "Find what should remove the gate, or remove it by hand; `kubectl sched gates` lists our own.",
		},
		{
			ID: "cluster/shared-nodes", Severity: diag.Warning, Needs: Cluster, run: sharedNodes,
			Doc: "Two schedulers do not see each other's pods until the API server has told them, and can overcommit a node that both place pods on.",
			Fix: "Give the profiles dedicated pools, or let the bundled scheduler serve default-scheduler too.",
		},
	}
}

func unknownProfile(t *template) {
	name := t.t.Pods.SchedulerName
	if name == "" || name == corev1.DefaultSchedulerName || t.pods.SchedulerName != name {
		return
	}
	served := []string{corev1.DefaultSchedulerName}
	for _, s := range t.Snapshot.Schedulers {
		if s.Name == name {
			return
		}
		served = append(served, s.Profiles...)
	}
	for _, p := range t.Snapshot.Pods {
		if p.Spec.NodeName != "" {
			served = append(served, p.Spec.SchedulerName)
		}
	}
	if slices.Contains(served, name) {
		return
	}
	hint := "; name one that is, or leave it out"
	if near, ok := diag.Nearest(name, served); ok {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	t.report("", fmt.Sprintf("no known scheduler of the cluster serves %q, so that the pods stay Pending%s", name, hint), workload.SchedulerName)
}

// longGated is for how long a pod may wait at a gate without anybody wondering.
const longGated = time.Hour

func gatedPods(j *judgement) {
	bundled := slices.ContainsFunc(j.Snapshot.Schedulers, func(s snapshot.Scheduler) bool { return s.Bundled && s.Ready })
	type wait struct {
		pods    []string
		longest time.Duration
	}
	waits := map[string]*wait{}
	for _, p := range j.Snapshot.Pods {
		age := j.Snapshot.Taken.Sub(p.CreationTimestamp.Time)
		for _, gate := range p.Spec.SchedulingGates {
			ours := strings.HasPrefix(gate.Name, condition.Prefix)
			unowned := ours && !bundled || !ours && !knownGate(gate.Name)
			if !unowned || j.Snapshot.Taken.IsZero() || p.CreationTimestamp.IsZero() || age < longGated {
				continue
			}
			w := waits[gate.Name]
			if w == nil {
				w = &wait{}
				waits[gate.Name] = w
			}
			w.pods, w.longest = append(w.pods, p.Namespace+"/"+p.Name), max(w.longest, age)
		}
	}
	for _, gate := range sortedKeys(waits) {
		w := waits[gate]
		more := ""
		if len(w.pods) > 1 {
			more = fmt.Sprintf(" and %d more", len(w.pods)-1)
		}
		j.report(diag.Finding{Subject: "Pod " + w.pods[0], Message: fmt.Sprintf("it%s waits at gate %q, for %s by now, and nobody is known to remove it; find its controller, or remove it by hand", more, gate, w.longest.Round(time.Minute))})
	}
}

// sharedNodes looks at what the pods at hand, and those that run, could use by their
// affinity and tolerations.
func sharedNodes(j *judgement) {
	for _, s := range j.Snapshot.Schedulers {
		if !s.Bundled || !s.Ready || slices.Contains(s.Profiles, corev1.DefaultSchedulerName) {
			continue
		}
		usual, its := map[string]bool{}, map[string]bool{}
		note := func(scheduler string, nodes []*capability.Node) {
			reached := usual
			if slices.Contains(s.Profiles, scheduler) {
				reached = its
			} else if scheduler != corev1.DefaultSchedulerName {
				return
			}
			for _, n := range nodes {
				reached[n.Name] = true
			}
		}
		for _, t := range j.templates {
			if !t.isDaemonSet() {
				note(cmp.Or(t.pods.SchedulerName, corev1.DefaultSchedulerName), t.usableNodes())
			}
		}
		for _, p := range j.Snapshot.Pods {
			if owner := slices.IndexFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "DaemonSet" }); owner >= 0 || p.Namespace == "kube-system" {
				continue
			}
			running := &template{judgement: j, pods: workload.PodFields{NodeSelector: p.Spec.NodeSelector, Affinity: p.Spec.Affinity, Tolerations: p.Spec.Tolerations}}
			note(cmp.Or(p.Spec.SchedulerName, corev1.DefaultSchedulerName), running.usableNodes())
		}
		var both []string
		for _, name := range sortedKeys(its) {
			if usual[name] {
				both = append(both, name)
			}
		}
		if len(both) > 0 {
			j.report(diag.Finding{Subject: "scheduler " + s.Name, Message: fmt.Sprintf("its pods and those of the default scheduler can both be placed on %s, which two schedulers may overcommit; give its profiles dedicated pools, or let it serve %q too", named(both), corev1.DefaultSchedulerName)})
		}
	}
}
