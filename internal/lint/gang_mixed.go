package lint

import (
	"cmp"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
)

// gangMixed compares each member of a gang with the first, as the scheduler does
// (pkg/scheduler/schedule_one_podgroup.go, validatePodGroup) before it tries any.
func gangMixed(t *template) {
	if t.gang == "" {
		return
	}
	first, found := t.firstOf()
	if !found {
		return
	}
	its := first.pods
	for _, must := range []struct {
		field       workload.Field
		mine, other string
	}{
		{workload.PriorityClassName, t.pods.PriorityClassName, its.PriorityClassName},
		{workload.PreemptionPolicy, preemption(t.pods), preemption(its)},
		{workload.SchedulerName, cmp.Or(t.pods.SchedulerName, corev1.DefaultSchedulerName), cmp.Or(its.SchedulerName, corev1.DefaultSchedulerName)},
	} {
		if must.mine == must.other {
			continue
		}
		f := t.report(diag.Warning, fmt.Sprintf("%s is %q here and %q in %s, which is in the same gang; a gang whose members differ in it is never started, so make them equal", must.field, must.mine, must.other, first.w.Ref()), must.field)
		if path, ok := first.t.PathOf(must.field); ok {
			f.Related = append(f.Related, diag.Related{Range: first.w.Source.At(path...), Message: "the other member"})
		}
	}
}

// firstOf returns the first template of the gang, and whether it is another than t
// and comes before it.
func (t *template) firstOf() (*template, bool) {
	first := t.members(t.gang)[0]
	return first, first != t
}

// gangOf returns what the gang of the template's pods is called, or "" where they
// are in none. Runs of one workload are gangs of their own.
func gangOf(w *workload.Workload, t *workload.Template, pods workload.PodFields) string {
	if group := pods.SchedulingGroup; group != nil && group.PodGroupName != nil {
		return w.Namespace + "/" + *group.PodGroupName
	}
	all := maps.Clone(t.Labels)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, pods.Labels)
	gang, ok := gangkey.Of(&metav1.ObjectMeta{Namespace: w.Namespace, Labels: all})
	if !ok {
		return ""
	}
	name := gang.Namespace + "/" + gang.Key()
	if t.RunLabel != "" || pods.Annotations[gangkey.PerAnnotation] == gangkey.PerController {
		name += ":" + w.Ref()
	}
	return name
}

// preemption returns the preemption policy, the default where none is written.
func preemption(pods workload.PodFields) string {
	if pods.PreemptionPolicy == nil {
		return string(corev1.PreemptLowerPriority)
	}
	return string(*pods.PreemptionPolicy)
}
