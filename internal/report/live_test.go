package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/apply"
	"github.com/kubectl-sched/kubectl-sched/internal/report"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

func deploymentChange(name string, action apply.Action, pods int) apply.WorkloadChange {
	w := &workload.Workload{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: name, Templates: []workload.Template{{}}}
	return apply.WorkloadChange{Workload: w, Action: action, Restarts: pods > 0, Pods: pods}
}

func changes() *apply.ChangeSet {
	origins := []compiler.Origin{{Policy: "web-ha", Range: diag.At(diag.Pos{File: "placement/web.cue", Line: 4, Column: 2})}}
	web := deploymentChange("web", apply.Update, 3)
	web.Changes = []compiler.Change{{Workload: web.Workload, Effects: []compiler.Effect{{
		Field: "tolerations", Value: []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}, Origins: origins,
	}}}}
	return &apply.ChangeSet{
		Set:       apply.Set{Name: "shop", Namespace: "kube-system"},
		Workloads: []apply.WorkloadChange{web, deploymentChange("old", apply.Withdraw, 1), deploymentChange("same", apply.Keep, 0)},
		Objects: []apply.ObjectChange{{
			Kind: schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"}, Name: "urgent",
			Action: apply.Create, Origins: origins,
		}},
		Nodes:       []apply.NodeChange{{Name: "gpu-1", Pool: "gpu", Taint: corev1.Taint{Key: "pool", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}, Action: apply.Create, Origins: origins}},
		Disruptions: []apply.Disruption{{Namespace: "shop", Name: "web", Workloads: []string{"Deployment shop/web"}, Allowed: 1}},
	}
}

func TestChangeSummary(t *testing.T) {
	t.Parallel()
	want := []string{
		"restarts 2 workloads (4 pods): Deployment shop/web, Deployment shop/old; PodDisruptionBudgets: shop/web",
		"  PodDisruptionBudget shop/web covers Deployment shop/web and allows 1 disruption now",
		"create PriorityClass urgent",
		"gives Node gpu-1 taint pool=gpu:NoSchedule (pool gpu)",
		"  nodes that join pool gpu later get it by applying again; until then they lack it",
	}
	if d := cmp.Diff(want, report.ChangeSummary(changes())); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := report.ChangeSummary(&apply.ChangeSet{Workloads: []apply.WorkloadChange{deploymentChange("same", apply.Keep, 0)}}); got != nil {
		t.Errorf("where nothing changes it says %q", got)
	}
}

func TestChangeEffects(t *testing.T) {
	t.Parallel()
	want := `Deployment shop/web (restarts 3 pods)
  + tolerations
      - key: gpu
        operator: Exists
    from: policy "web-ha" at placement/web.cue:4:2
Deployment shop/old
  withdraws: all of the set's fields; no policy of it matches any more
PriorityClass urgent
  action: create
    from: policy "web-ha" at placement/web.cue:4:2
Node gpu-1
  + taint pool=gpu:NoSchedule
    from: pool "gpu" at placement/web.cue:4:2
`
	var out bytes.Buffer
	if err := report.ChangeEffects(&out, changes(), report.Options{}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestLandings(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := report.Landings(&out, []apply.Landing{
		{Workload: "Deployment shop/web", Zone: "a", Pool: "gpu", Node: "n1", Pods: 2, Ready: 2},
		{Workload: "Deployment shop/web", Zone: "a", Pool: "gpu", Node: "n2", Pods: 1, Ready: 0},
		{Workload: "Deployment shop/web", Pods: 1},
	}, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := `WORKLOAD              ZONE        POOL     NODES   PODS   READY
Deployment shop/web   a           gpu      2       3      2
Deployment shop/web   (pending)   <none>   0       1      0
`
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// A workload of many pods is said in few lines, none of which is too long.
func TestStatusOfManyPods(t *testing.T) {
	t.Parallel()
	entry := apply.WorkloadStatus{Ref: "Deployment team-checkout-production/storefront-frontend", Policies: []string{"web-ha", "web-on-spot", "residency-in-the-european-union"}, Revision: 12}
	for i := range 40 {
		node := fmt.Sprintf("worker-pool-eu-central-1-%02d", i)
		entry.Violations = append(entry.Violations, apply.Violation{
			Pod: fmt.Sprintf("team-checkout-production/storefront-frontend-%02d", i), Node: node,
			Reason: "the node does not match its required node affinity", Policies: entry.Policies,
		})
		entry.Places = append(entry.Places, apply.Landing{Node: node, Zone: []string{"a", "b"}[i%2], Pods: 1})
	}
	entry.Violations = append(entry.Violations, apply.Violation{Pod: "team-checkout-production/other", Node: "n1", Reason: "it does not tolerate the node's taint gpu:NoSchedule"})
	entry.Places = append(entry.Places, apply.Landing{Node: "n1", Zone: "c", Pool: "gpu", Pods: 1}, apply.Landing{Pods: 3})
	status := &apply.Status{Set: apply.Set{Name: "shop", Namespace: "kube-system"}, Workloads: []apply.WorkloadStatus{entry}}
	var out bytes.Buffer
	if err := report.Status(&out, report.Text, status, report.Options{}); err != nil {
		t.Fatal(err)
	}
	want := `set shop (state in namespace kube-system): policies in , all namespaces

Deployment team-checkout-production/storefront-frontend  revision 12, policies
    web-ha, web-on-spot, residency-in-the-european-union
  violation 40 pods: the node does not match its required node affinity
    (policies web-ha, web-on-spot, residency-in-the-european-union):
    team-checkout-production/storefront-frontend-00 on
    worker-pool-eu-central-1-00, team-checkout-production/storefront-frontend-01
    on worker-pool-eu-central-1-01,
    team-checkout-production/storefront-frontend-02 on
    worker-pool-eu-central-1-02, team-checkout-production/storefront-frontend-03
    on worker-pool-eu-central-1-03,
    team-checkout-production/storefront-frontend-04 on
    worker-pool-eu-central-1-04 and 35 more
  violation 1 pod: it does not tolerate the node's taint gpu:NoSchedule:
    team-checkout-production/other on n1
  20 pods on 20 nodes (zone a)
  20 pods on 20 nodes (zone b)
  1 pod on n1 (zone c, pool gpu)
  3 pods without a node

1 workload, 0 drifts, 41 violations
`
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestStatusAndHistory(t *testing.T) {
	t.Parallel()
	started := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	revision := &apply.Revision{Number: 2, State: apply.Open, Cause: "apply", By: "dev", Started: started, Items: []apply.Item{{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "web", Record: &ownership.Record{}}}}
	set := apply.Set{Name: "shop", Namespace: "kube-system"}
	scope := apply.Scope{Folders: []string{"placement"}}
	status := &apply.Status{Set: set, Scope: scope, Revision: revision, Workloads: []apply.WorkloadStatus{{
		Ref: "Deployment shop/web", Policies: []string{"web-ha"}, Revision: 2,
		Drifts:     []apply.Drift{{Subject: "Deployment shop/web", Field: ".spec.x", Message: "it was changed since revision 2", By: []string{"kubectl-edit"}}},
		Violations: []apply.Violation{{Pod: "shop/web-1", Node: "n1", Reason: "the node does not match its required node affinity", Policies: []string{"web-ha"}}},
		Places:     []apply.Landing{{Node: "n1", Zone: "a", Pods: 1}},
	}}}
	var out bytes.Buffer
	if err := report.Status(&out, report.Text, status, report.Options{}); err != nil {
		t.Fatal(err)
	}
	want := `set shop (state in namespace kube-system): policies in placement, all namespaces
revision 2, open, 2026-03-04T05:06:07Z by dev
  its run was interrupted; apply again to finish it, or undo it

Deployment shop/web  revision 2, policies web-ha
  drift .spec.x: it was changed since revision 2 by kubectl-edit
  violation 1 pod: the node does not match its required node affinity (policies
    web-ha): shop/web-1 on n1
  1 pod on n1 (zone a)

1 workload, 1 drift, 1 violation
`
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("status (-want +got):\n%s", d)
	}
	out.Reset()
	status.Writer = &apply.Writer{Revision: 2, Seen: started}
	if err := report.Status(&out, report.Text, status, report.Options{Now: started.Add(3 * time.Second)}); err != nil || !strings.Contains(out.String(), "  it is being written now\n") {
		t.Errorf("while it is being written (%v):\n%s", err, out.String())
	}
	out.Reset()
	state := &apply.State{Set: set, Scope: scope, Revisions: []*apply.Revision{revision}}
	if err := report.History(&out, report.Text, state, report.Options{}); err != nil {
		t.Fatal(err)
	}
	history := `REVISION   STARTED (UTC)      STATE         HOLDS        CAUSE
2          2026-03-04 05:06   interrupted   1 workload   apply by dev
`
	if d := cmp.Diff(history, out.String()); d != "" {
		t.Errorf("history (-want +got):\n%s", d)
	}
	for _, write := range []func() error{
		func() error { return report.Status(&out, report.JSON, status, report.Options{}) },
		func() error { return report.History(&out, report.JSON, state, report.Options{}) },
		func() error {
			return report.Applied(&out, report.JSON, "prod", changes(), apply.Outcome{Revision: 3}, nil)
		},
		func() error { return report.Changes(&out, report.JSON, "", changes()) },
	} {
		out.Reset()
		if err := write(); err != nil {
			t.Fatal(err)
		}
		var document map[string]any
		if err := json.Unmarshal(out.Bytes(), &document); err != nil || document["apiVersion"] != report.APIVersion || document["set"] != "shop" {
			t.Errorf("document is %s (%v)", out.String(), err)
		}
	}
	if err := report.History(&out, "xml", state, report.Options{}); err == nil {
		t.Error("an unknown format was written")
	}
}
