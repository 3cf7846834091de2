package apply

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulingv1apply "k8s.io/client-go/applyconfigurations/scheduling/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// wantedClass is a PriorityClass that the set is to have.
type wantedClass struct {
	class   *schedulingv1.PriorityClass
	origins []compiler.Origin
}

func classesOf(plan *compiler.Plan) []wantedClass {
	var wanted []wantedClass
	for _, object := range plan.Objects {
		if class, ok := object.Object.(*schedulingv1.PriorityClass); ok {
			wanted = append(wanted, wantedClass{class, object.Origins})
		}
	}
	return wanted
}

// examineClasses compares the wanted classes with those in the cluster. Classes
// that somebody else made are used if they are the same, and never touched.
func (a *Applier) examineClasses(ctx context.Context, in *intent, cs *ChangeSet) (diag.Findings, error) {
	var known []schedulingv1.PriorityClass
	for _, r := range in.state.inForce() {
		known = append(known, r.Classes...)
	}
	if len(in.classes) == 0 && len(known) == 0 {
		return nil, nil
	}
	list, err := a.Client.Kube.SchedulingV1().PriorityClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list priorityclasses: %w", err)
	}
	live := map[string]*schedulingv1.PriorityClass{}
	for i := range list.Items {
		live[list.Items[i].Name] = &list.Items[i]
	}

	var findings diag.Findings
	changes := map[string]ClassChange{}
	for _, wanted := range in.classes {
		change, finding := compareClass(in.state.Set, wanted, live[wanted.class.Name])
		if finding != nil {
			findings = append(findings, *finding)
		}
		if change.Action != Refuse {
			changes[change.Name] = change
		}
	}
	used := classUsers(cs, in.read)
	for _, name := range slices.Sorted(maps.Keys(live)) {
		class := live[name]
		if _, ok := changes[name]; ok || class.Labels[applySetPartOf] != in.state.Set.ApplySetID() {
			continue
		}
		change := ClassChange{Name: name, Action: Delete, Before: class}
		if users := used[name]; len(users) > 0 {
			findings = append(findings, diag.Finding{
				Rule: "apply/class-in-use", Severity: diag.Warning, Subject: "PriorityClass " + name,
				Message: fmt.Sprintf("no policy of the set asks for it any more, but %s still names it; it is kept until nothing does", users[0]),
			})
			change.Action, change.After = Keep, class
		} else if !in.prune {
			change.Action, change.After = Keep, class
		}
		changes[name] = change
	}
	cs.Classes = slices.SortedFunc(maps.Values(changes), func(a, b ClassChange) int { return cmp.Compare(a.Name, b.Name) })
	return findings, nil
}

// compareClass says what has to be done for one wanted class.
func compareClass(set Set, wanted wantedClass, live *schedulingv1.PriorityClass) (ClassChange, *diag.Finding) {
	after := labelledClass(set, wanted.class)
	change := ClassChange{Name: after.Name, Action: Create, Before: live, After: after, Origins: wanted.origins}
	if live == nil {
		return change, nil
	}
	equal := live.Value == after.Value && preemption(live) == preemption(after)
	if live.Labels[applySetPartOf] != set.ApplySetID() {
		change.Action = Refuse
		f := &diag.Finding{
			Rule: "apply/class-exists", Severity: diag.Info, Subject: "PriorityClass " + after.Name,
			Message: "it was made by somebody else and is the same; it is used as it is",
		}
		if !equal {
			f.Severity = diag.Error
			f.Message = fmt.Sprintf("it exists with value %d and preemptionPolicy %s, made by somebody else, and the policy asks for %d and %s", live.Value, preemption(live), after.Value, preemption(after))
			f.Fix = &diag.Fix{Message: "take another name for the class, or name it without a value to use it as it is"}
		}
		if len(wanted.origins) > 0 {
			f.Policy, f.Range = wanted.origins[0].Policy, wanted.origins[0].Range
		}
		return change, f
	}
	switch {
	case !equal:
		change.Action = Replace
		return change, &diag.Finding{
			Rule: "apply/class-replaced", Severity: diag.Warning, Subject: "PriorityClass " + after.Name,
			Message: fmt.Sprintf("its value goes from %d to %d, which the API allows only by making it anew; running pods keep the old priority", live.Value, after.Value),
		}
	case live.Description != after.Description || live.GlobalDefault != after.GlobalDefault || live.Labels[ownership.SetLabel] != set.Label():
		change.Action = Update
	default:
		change.Action = Keep
	}
	return change, nil
}

// labelledClass returns the class as a member of the set, and nothing else.
func labelledClass(set Set, class *schedulingv1.PriorityClass) *schedulingv1.PriorityClass {
	policy := preemption(class)
	labels := maps.Clone(class.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[ownership.SetLabel] = set.Label()
	labels[applySetPartOf] = set.ApplySetID()
	return &schedulingv1.PriorityClass{
		ObjectMeta:       metav1.ObjectMeta{Name: class.Name, Labels: labels, Annotations: class.Annotations},
		Value:            class.Value,
		GlobalDefault:    class.GlobalDefault,
		Description:      class.Description,
		PreemptionPolicy: &policy,
	}
}

func preemption(class *schedulingv1.PriorityClass) corev1.PreemptionPolicy {
	if class.PreemptionPolicy == nil {
		return corev1.PreemptLowerPriority
	}
	return *class.PreemptionPolicy
}

// classUsers maps class names to the workloads that will still name them: those
// of the change set as they will be, others as they are.
func classUsers(cs *ChangeSet, read []*workload.Workload) map[string][]string {
	users := map[string][]string{}
	seen := map[string]bool{}
	add := func(w *workload.Workload, object map[string]any) {
		if seen[w.UID] {
			return
		}
		seen[w.UID] = true
		for _, t := range w.Templates {
			path, ok := t.Paths[workload.PriorityClassName]
			if !ok {
				continue
			}
			if name, _ := valueAt(object, pointer(path)); name != nil {
				key := fmt.Sprint(name)
				users[key] = append(users[key], w.Ref())
			}
		}
	}
	for _, change := range cs.Workloads {
		add(change.Workload, change.After)
	}
	for _, w := range read {
		add(w, w.Object)
	}
	return users
}

// writeClass carries out one change.
func (a *Applier) writeClass(ctx context.Context, c ClassChange) error {
	classes := a.Client.Kube.SchedulingV1().PriorityClasses()
	if c.Action == Delete || c.Action == Replace {
		err := classes.Delete(ctx, c.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &c.Before.UID}})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete PriorityClass %s: %w", c.Name, err)
		}
	}
	if c.Action == Delete || c.Action == Keep {
		return nil
	}
	config := schedulingv1apply.PriorityClass(c.Name).WithLabels(c.After.Labels).WithAnnotations(c.After.Annotations).
		WithValue(c.After.Value).WithPreemptionPolicy(*c.After.PreemptionPolicy)
	if c.After.Description != "" {
		config.WithDescription(c.After.Description)
	}
	if c.After.GlobalDefault {
		config.WithGlobalDefault(true)
	}
	// It is ours as a whole, so taking a field back from others is no conflict.
	if _, err := classes.Apply(ctx, config, metav1.ApplyOptions{FieldManager: FieldManager, Force: true}); err != nil {
		return fmt.Errorf("write PriorityClass %s: %w", c.Name, err)
	}
	return nil
}
