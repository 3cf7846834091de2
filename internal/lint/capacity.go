package lint

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresource "k8s.io/component-helpers/resource"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// requests are what one pod asks for, as the API server has it: a limit without a
// request is one too. False where the kind carries no whole pod spec.
func (t *template) requests() (corev1.ResourceList, bool) {
	spec := t.podSpec()
	if spec == nil {
		return nil, false
	}
	snapshot.RequestLimits(spec)
	return podresource.PodRequests(&corev1.Pod{Spec: *spec}, podresource.PodResourcesOptions{}), true
}

// tooLarge compares what a pod asks for with empty nodes: what runs on them may go.
func tooLarge(t *template) {
	asked, known := t.requests()
	if !known || t.isDaemonSet() {
		return
	}
	// A taint with the name of a resource is tolerated by those who ask for it, where
	// the API server's plugin ExtendedResourceToleration is on, which is not known.
	nodes := slices.DeleteFunc(slices.Clone(t.allowedNodes()), func(n *capability.Node) bool {
		return slices.ContainsFunc(t.keptOffBy(n), func(taint corev1.Taint) bool {
			q := asked[corev1.ResourceName(taint.Key)]
			return q.IsZero()
		})
	})
	if len(nodes) == 0 {
		return
	}
	have := t.allocatable()
	for _, n := range nodes {
		if lacks(asked, have[n.Name]) == "" {
			return
		}
	}
	path := append(t.t.PodSpec[:len(t.t.PodSpec):len(t.t.PodSpec)], "containers")
	at := t.w.Source.At(path...)
	if v, ok := workload.Lookup(t.w.Object, append(path, 0, "resources")...); ok && v != nil {
		at = t.w.Source.At(append(path, 0, "resources")...)
	}
	severity := diag.Warning
	if t.nodesBy != "" {
		severity = diag.Info // one may be made that is larger
	}
	why := "none of them has all at once what it asks for"
	for _, name := range sortedKeys(asked) {
		var most resource.Quantity
		where := ""
		for _, n := range nodes {
			if q := have[n.Name][name]; q.Cmp(most) > 0 {
				most, where = q, n.Name
			}
		}
		q := asked[name]
		switch {
		case q.Cmp(most) <= 0:
			continue
		case where == "":
			why = fmt.Sprintf("it asks for %s of %s, and none of them has any", q.String(), name)
		default:
			why = fmt.Sprintf("it asks for %s of %s, and the largest of them, %q, has %s", q.String(), name, where, most.String())
		}
		break
	}
	t.judgement.report(diag.Finding{Severity: severity, Subject: t.subject(), Range: at, Message: fmt.Sprintf("a pod fits on none of the %d nodes that can take it, even if they were empty: %s; ask for less, or add larger nodes", len(nodes), why)})
}

// lacks returns a resource of which more is asked than there is; empty for none.
func lacks(asked, have corev1.ResourceList) corev1.ResourceName {
	for name, q := range asked {
		if of := have[name]; q.Cmp(of) > 0 {
			return name
		}
	}
	return ""
}

// allocatable are what the nodes of the snapshot can give, by name.
func (j *judgement) allocatable() map[string]corev1.ResourceList {
	if j.canGive == nil {
		j.canGive = map[string]corev1.ResourceList{}
		for _, n := range j.Snapshot.Nodes {
			j.canGive[n.Name] = n.Status.Allocatable
		}
	}
	return j.canGive
}
