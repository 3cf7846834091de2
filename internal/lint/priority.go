package lint

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

func priorityRules() []Rule {
	return []Rule{
		{
			ID: "workload/priority-inversion", Severity: diag.Warning, Needs: Files, each: priorityInversion,
			Doc: "Pods that matter more depend on pods that matter less. Either a required affinity holds them to pods of lower priority, which are placed after them and may be preempted for them; or anti-affinity keeps them off nodes with pods of lower priority, and preemptionPolicy: Never forbids them to make room.",
			Fix: "Give the pods that others depend on at least the same priority; let those that are kept off preempt.",
		},
		{
			ID: "workload/unknown-class", Severity: diag.Error, Needs: Files, each: unknownClass,
			Doc: "The API server refuses pods whose PriorityClass does not exist, and their workload makes none. It is looked for where the classes of the cluster are known.",
			Fix: "Name a class that exists, or create it.",
		},
	}
}

// class returns the value of a priority class, and whether it is known. Classes that
// policies make are.
func (j *judgement) class(name string) (int32, bool) {
	if name == "" {
		if d := j.caps().DefaultPriorityClass; d != "" {
			return j.caps().PriorityClasses[d], true
		}
		return 0, true
	}
	if v, ok := j.known.classes[name]; ok {
		return v, true
	}
	if v, ok := j.caps().PriorityClasses[name]; ok {
		return v, true
	}
	for _, p := range j.policies() {
		if p.Priority != nil && p.Priority.Class == name && p.Priority.Value != nil {
			return *p.Priority.Value, true
		}
	}
	return 0, false
}

func priorityInversion(t *template) {
	mine, known := t.class(t.pods.PriorityClassName)
	if !known {
		return
	}
	never := t.pods.PreemptionPolicy != nil && *t.pods.PreemptionPolicy == corev1.PreemptNever
	for _, a := range t.affinityTerms() {
		if a.LabelSelector == nil || a.field == workload.PodAntiAffinity && !never {
			continue
		}
		other, its := t.lowestOf(a.PodAffinityTerm, mine)
		if other == nil {
			continue
		}
		what := "must be beside pods of"
		advice := fmt.Sprintf("which are placed later and may be preempted; give %s at least the same priority", other.subject())
		if a.field == workload.PodAntiAffinity {
			what, advice = "must not be beside pods of", "and may not preempt them; leave out preemptionPolicy: Never"
		}
		f := t.report("", fmt.Sprintf("the pods (priority %d, %s) %s %s (priority %d, %s), %s", mine, className(t.pods), what, other.subject(), its, className(other.pods), advice), a.field, a.path()...)
		if path, ok := other.t.PathOf(workload.PriorityClassName); ok {
			if at := other.w.Source.At(path...); at.Start.IsValid() {
				f.Related = append(f.Related, diag.Related{Range: at, Message: "the lower priority"})
			}
		}
	}
}

func className(pods workload.PodFields) string {
	return cmp.Or(pods.PriorityClassName, "no class")
}

// lowestOf returns the other template of the lowest known priority below mine that
// the term selects, and that priority.
func (t *template) lowestOf(a corev1.PodAffinityTerm, mine int32) (*template, int32) {
	selector, err := metav1.LabelSelectorAsSelector(a.LabelSelector)
	if err != nil || selector.Empty() {
		return nil, 0
	}
	var lowest *template
	least := mine
	for _, other := range t.templates {
		if other.w == t.w || !t.looksAt(a, other.w.Namespace) || !selector.Matches(other.labels) {
			continue
		}
		if its, known := t.class(other.pods.PriorityClassName); known && its < least {
			lowest, least = other, its
		}
	}
	return lowest, least
}

func unknownClass(t *template) {
	name := t.t.Pods.PriorityClassName
	if t.caps().PriorityClasses == nil || name == "" || t.pods.PriorityClassName != name || strings.HasPrefix(name, "system-") {
		return
	}
	if _, known := t.class(name); known {
		return
	}
	near := "; name one that exists, or create it"
	if n, ok := diag.Nearest(name, append(sortedKeys(t.caps().PriorityClasses), sortedKeys(t.known.classes)...)); ok {
		near = fmt.Sprintf("; did you mean %q?", n)
	}
	t.report("", fmt.Sprintf("there is no PriorityClass %q, and the API server refuses the pods%s", name, near), workload.PriorityClassName)
}
