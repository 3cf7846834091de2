package compiler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// scalarWish is a field with one value.
type scalarWish struct {
	field  workload.Field
	value  string
	reason string
	origin Origin
	// level is LevelBuiltin where it is empty.
	level Level
}

// classWish is a policy in force that names a PriorityClass.
type classWish struct {
	rule     *rule
	priority policy.Priority
}

// gatherPriority is the priority intent.
func gatherPriority(d *draft, r *rule) {
	p := r.Priority
	if p == nil {
		return
	}
	if !slices.ContainsFunc(d.c.classes, func(c classWish) bool { return c.rule == r }) {
		d.c.classes = append(d.c.classes, classWish{r, *p})
	}
	d.scalars = append(d.scalars, scalarWish{
		field: workload.PriorityClassName, value: p.Class, reason: "a PriorityClass says exactly this", origin: r.author.origin("priority", "class"),
	})
	if p.Preemption == "never" {
		d.scalars = append(d.scalars, scalarWish{
			field: workload.PreemptionPolicy, value: string(corev1.PreemptNever), origin: r.author.origin("priority", "preemption"),
			reason: "preemptionPolicy says exactly this; it is also the class's, because admission refuses a pod that differs from its class",
		})
	}
}

// settleScalars sets the fields that have one value, where the policies agree
// with each other and with the manifest.
func (d *draft) settleScalars() {
	for _, field := range []workload.Field{workload.PriorityClassName, workload.PreemptionPolicy, workload.SchedulerName} {
		var wishes []scalarWish
		var origins []Origin
		for _, w := range d.scalars {
			if w.field == field {
				wishes, origins = append(wishes, w), append(origins, w.origin)
			}
		}
		if len(wishes) == 0 || d.scalarClash(field, wishes) || !d.carries(field, origins...) {
			continue
		}
		if d.setScalar(field, wishes[0].value) {
			d.effect(string(field), wishes[0].value, wishes[0].reason, origins...)
			d.effects[len(d.effects)-1].Level = cmp.Or(wishes[0].level, LevelBuiltin)
		}
	}
}

// scalar returns the value of a field that has one, or the empty string.
func scalar(p workload.PodFields, field workload.Field) string {
	switch field {
	case workload.PriorityClassName:
		return p.PriorityClassName
	case workload.SchedulerName:
		return p.SchedulerName
	case workload.PreemptionPolicy:
		if p.PreemptionPolicy != nil {
			return string(*p.PreemptionPolicy)
		}
	default:
	}
	return ""
}

// setScalar sets a field that has one value, and reports whether it changed.
func (d *draft) setScalar(field workload.Field, value string) bool {
	if scalar(d.after, field) == value {
		return false
	}
	switch field {
	case workload.PriorityClassName:
		d.after.PriorityClassName = value
	case workload.SchedulerName:
		d.after.SchedulerName = value
	case workload.PreemptionPolicy:
		p := corev1.PreemptionPolicy(value)
		d.after.PreemptionPolicy = &p
	default:
	}
	return true
}

// scalarClash reports wishes that differ from each other or from the manifest.
func (d *draft) scalarClash(field workload.Field, wishes []scalarWish) bool {
	first := wishes[0]
	clash := false
	for _, w := range wishes[1:] {
		if w.value != first.value {
			clash = true
			d.report(finding{
				rule: "compile/contradiction", policy: first.origin.Policy, at: first.origin.Range,
				message: fmt.Sprintf("%s would be %q here and %q by policy %q; only one can be", field, first.value, w.value, w.origin.Policy),
				related: relatedOrigins([]Origin{w.origin}, fmt.Sprintf("says %q", w.value)),
			})
		}
	}
	own := scalar(d.t.Pods, field)
	// The API fills in the default scheduler, which is nobody's choice.
	if own == "" || own == first.value || field == workload.SchedulerName && own == corev1.DefaultSchedulerName {
		return clash
	}
	d.report(finding{
		rule: "compile/contradiction", policy: first.origin.Policy, at: first.origin.Range,
		message: fmt.Sprintf("the policy gives %s %q, but the manifest says %q; change one of them", field, first.value, own),
		related: []diag.Related{{Range: d.manifestAt(field), Message: fmt.Sprintf("the manifest's %s", field)}},
	})
	return true
}

// settleClasses makes the PriorityClasses that policies in force give a value,
// and reports what cannot be.
func (c *compilation) settleClasses() {
	slices.SortFunc(c.classes, func(a, b classWish) int {
		return cmp.Or(cmp.Compare(a.priority.Class, b.priority.Class), cmp.Compare(a.rule.Name, b.rule.Name))
	})
	for i := 0; i < len(c.classes); {
		j := i
		for j < len(c.classes) && c.classes[j].priority.Class == c.classes[i].priority.Class {
			j++
		}
		c.settleClass(c.classes[i:j])
		i = j
	}
}

func (c *compilation) settleClass(wishes []classWish) {
	name := wishes[0].priority.Class
	var makers []classWish
	for _, w := range wishes {
		if w.priority.Value != nil {
			makers = append(makers, w)
		}
	}
	if len(makers) == 0 {
		c.checkClassExists(wishes)
		return
	}
	first := makers[0]
	at := func(w classWish, field string) diag.Range { return w.rule.author.at("priority", field) }
	class := makeClass(first.priority)
	origins := []Origin{first.rule.author.origin("priority")}
	for _, w := range makers[1:] {
		origins = append(origins, w.rule.author.origin("priority"))
		for field, same := range map[string]bool{
			"value":       *w.priority.Value == *first.priority.Value,
			"preemption":  preemptionOf(w.priority) == preemptionOf(first.priority),
			"description": w.priority.Description == first.priority.Description,
		} {
			if !same {
				c.report(finding{
					rule: "compile/contradiction", policy: first.rule.Name, at: at(first, field),
					message: fmt.Sprintf("policies %q and %q both make PriorityClass %q and give it another %s; let one of them name the class alone", first.rule.Name, w.rule.Name, name, field),
					related: []diag.Related{{Range: at(w, field), Message: fmt.Sprintf("the %s by policy %q", field, w.rule.Name)}},
				})
			}
		}
	}
	for _, w := range wishes {
		if w.priority.Value == nil && w.priority.Preemption != "" && preemptionOf(w.priority) != *class.PreemptionPolicy {
			c.report(finding{
				rule: "compile/contradiction", policy: w.rule.Name, at: at(w, "preemption"),
				message: fmt.Sprintf("preemption is the class's, and policy %q makes PriorityClass %q with preemptionPolicy %s; use another class", first.rule.Name, name, *class.PreemptionPolicy),
				related: []diag.Related{{Range: at(first, "class"), Message: "the class is made here"}},
			})
		}
	}
	switch existing, ok := c.facts.PriorityClasses[name]; {
	case strings.HasPrefix(name, "system-"):
		c.report(finding{
			rule: "policy/system-class", policy: first.rule.Name, at: at(first, "class"),
			message: fmt.Sprintf("classes named \"system-...\" are Kubernetes' own, so %q cannot be made; choose another name, or leave out value", name),
		})
		return
	case ok && existing != class.Value:
		c.report(finding{
			rule: "compile/class-exists", policy: first.rule.Name, at: at(first, "value"),
			message: fmt.Sprintf("PriorityClass %q exists with value %d, and a class's value cannot change to %d; choose another name, or leave out value", name, existing, class.Value),
		})
		return
	}
	c.plan.Objects = append(c.plan.Objects, Object{
		Object: class, Level: LevelBuiltin,
		Reason:  "a PriorityClass says exactly this",
		Origins: uniqueOrigins(origins),
	})
}

func preemptionOf(p policy.Priority) corev1.PreemptionPolicy {
	if p.Preemption == "never" {
		return corev1.PreemptNever
	}
	return corev1.PreemptLowerPriority
}

func makeClass(p policy.Priority) *schedulingv1.PriorityClass {
	preemption := preemptionOf(p)
	return &schedulingv1.PriorityClass{
		TypeMeta:         metav1.TypeMeta{APIVersion: schedulingv1.SchemeGroupVersion.String(), Kind: "PriorityClass"},
		ObjectMeta:       metav1.ObjectMeta{Name: p.Class},
		Value:            *p.Value,
		PreemptionPolicy: &preemption,
		Description:      p.Description,
	}
}

// checkClassExists judges policies that name a class which none of them makes.
func (c *compilation) checkClassExists(wishes []classWish) {
	name := wishes[0].priority.Class
	_, exists := c.facts.PriorityClasses[name]
	exists = exists || name == "system-node-critical" || name == "system-cluster-critical"
	for _, w := range wishes {
		if c.facts.PriorityClasses != nil && !exists {
			message := fmt.Sprintf("the cluster has no PriorityClass %q, and its pods would be refused; give it a value, so that it is made", name)
			if near, ok := diag.Nearest(name, sortedKeys(c.facts.PriorityClasses)); ok {
				message += fmt.Sprintf(", or did you mean %q?", near)
			}
			c.report(finding{rule: "compile/unknown-class", policy: w.rule.Name, at: w.rule.author.at("priority", "class"), message: message})
		}
		if w.priority.Preemption == "never" {
			c.report(finding{
				rule: "compile/preemption-of-class", severity: warning, policy: w.rule.Name, at: w.rule.author.at("priority", "preemption"),
				message: fmt.Sprintf("admission refuses pods whose preemption differs from their class's, so PriorityClass %q must say preemptionPolicy: Never itself; give the class a value, so that it is made so", name),
			})
		}
	}
}
