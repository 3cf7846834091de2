package compiler

import (
	"fmt"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// settleGang makes the PodGroup of the workload's gang, if it needs one, and
// reports members that no scheduler could place as one.
func (c *compilation) settleGang(w *workload.Workload, drafts []*draft) {
	var members []*draft
	for _, d := range drafts {
		if d.gang != nil {
			members = append(members, d)
		}
	}
	if len(members) == 0 || members[0].alike(members[1:]) != nil {
		return
	}
	if members[0].isPod() {
		c.podGangs = append(c.podGangs, members...)
		return
	}
	c.makePodGroup(w.Namespace, members)
}

// settlePodGangs does the same for single pods, of which each is a workload.
func (c *compilation) settlePodGangs() {
	byGang := map[string][]*draft{}
	for _, d := range c.podGangs {
		key := d.w.Namespace + "/" + d.gang.name
		byGang[key] = append(byGang[key], d)
	}
	for _, key := range sortedKeys(byGang) {
		members := byGang[key]
		if members[0].alike(members[1:]) == nil {
			c.makePodGroup(members[0].w.Namespace, members)
		}
	}
}

// alike reports a finding for the first of the others whose pods cannot be placed
// together with the draft's, and returns it: upstream's group cycle takes members
// of one scheduler and one priority alone.
func (d *draft) alike(others []*draft) *draft {
	for _, o := range others {
		for _, field := range []workload.Field{workload.SchedulerName, workload.PriorityClassName} {
			if scalar(d.after, field) != scalar(o.after, field) {
				o.report(finding{
					rule: "compile/gang", policy: d.gang.origin.Policy, at: d.gang.origin.Range,
					message: fmt.Sprintf("members of one gang must have the same %s, and %s has %q where %s has %q; let the policies that say it select all of the gang", field, d.subject(), scalar(d.after, field), o.subject(), scalar(o.after, field)),
				})
				return o
			}
		}
	}
	return nil
}

// makePodGroup makes the object that says how many members the gang needs, unless
// the gang was adopted or labels say it.
func (c *compilation) makePodGroup(namespace string, members []*draft) {
	g := members[0].gang
	if g.adopted || g.form == capability.PodGroupLabels {
		return
	}
	var origins []Origin
	var timeout time.Duration
	within := ""
	for _, d := range members {
		for _, r := range d.gang.rules {
			origins = append(origins, r.author.origin("gang"))
			if r.gangTimeout > 0 {
				timeout = r.gangTimeout
			}
			if r.Gang.Within != "" {
				within, _ = d.topology(r, r.Gang.Within, "gang", "within")
			}
		}
	}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: g.name}
	made := Object{Level: LevelPlugin, Origins: uniqueOrigins(origins)}
	if g.form == capability.PodGroupCRD {
		made.Reason = "says how many pods of the gang must find a place at once, to the plugin Gang and to whoever else reads PodGroups of scheduling.x-k8s.io"
		spec := map[string]any{"minMember": int64(g.min)}
		if timeout >= time.Second {
			spec["scheduleTimeoutSeconds"] = int64(timeout / time.Second)
		}
		made.Object = &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
			"metadata": map[string]any{"namespace": namespace, "name": g.name}, "spec": spec,
		}}
	} else {
		made.Reason = "says how many pods of the gang must find a place at once; it is the API's own"
		group := &schedulingv1beta1.PodGroup{
			TypeMeta:   metav1.TypeMeta{APIVersion: schedulingv1beta1.SchemeGroupVersion.String(), Kind: "PodGroup"},
			ObjectMeta: meta,
			Spec: schedulingv1beta1.PodGroupSpec{
				SchedulingPolicy:  schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: g.min}},
				DisruptionMode:    &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}},
				PriorityClassName: scalar(members[0].after, workload.PriorityClassName),
			},
		}
		if within != "" && c.facts.PodGroupTopology {
			made.Reason += ", and keeps the gang in one domain, whichever has room"
			group.Spec.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{Topology: []schedulingv1beta1.TopologyConstraint{{Key: within}}}
		}
		made.Object = group
	}
	c.plan.Objects = append(c.plan.Objects, made)
}
