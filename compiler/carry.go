package compiler

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
)

// keyWish is one key of the template's labels or annotations.
type keyWish struct {
	field      workload.Field
	key, value string
	level      Level
	reason     string
	origin     Origin
}

// gateWish is a scheduling gate.
type gateWish struct {
	name   string
	level  Level
	reason string
	origin Origin
}

// deviceWish is the variable by which containers are shown the devices that the
// scheduler chose.
type deviceWish struct {
	// containers are nil for all that do not choose for themselves.
	containers []string
	reason     string
	origin     Origin
}

// settleKeys adds the keys of labels and annotations, where the policies agree
// with each other and with the manifest.
func (d *draft) settleKeys() {
	byKey := map[string][]keyWish{}
	origins := map[workload.Field][]Origin{}
	for _, w := range d.keys {
		origins[w.field] = append(origins[w.field], w.origin)
	}
	carried := map[workload.Field]bool{}
	for _, f := range sortedKeys(origins) {
		carried[f] = d.carries(f, uniqueOrigins(origins[f])...)
	}
	for _, w := range d.keys {
		if !carried[w.field] {
			continue
		}
		id := string(w.field) + "\x00" + w.key
		byKey[id] = append(byKey[id], w)
	}
	for _, id := range sortedKeys(byKey) {
		d.settleKey(byKey[id])
	}
}

func (d *draft) settleKey(wishes []keyWish) {
	first := wishes[0]
	origins := []Origin{first.origin}
	for _, w := range wishes[1:] {
		origins = append(origins, w.origin)
		if w.value != first.value {
			d.report(finding{
				rule: "compile/contradiction", policy: first.origin.Policy, at: first.origin.Range,
				message: fmt.Sprintf("%s %q would be %q here and %q by policy %q; only one can be", first.field, first.key, first.value, w.value, w.origin.Policy),
				related: relatedOrigins([]Origin{w.origin}, fmt.Sprintf("says %q", w.value)),
			})
			return
		}
	}
	at := &d.after.Annotations
	if first.field == workload.TemplateLabels {
		at = &d.after.Labels
	}
	have, there := (*at)[first.key]
	switch {
	case there && have == first.value:
		return
	case there:
		d.report(finding{
			rule: "compile/contradiction", policy: first.origin.Policy, at: first.origin.Range,
			message: fmt.Sprintf("the policy gives the pods %s %q = %q, but the manifest says %q; change one of them", first.field, first.key, first.value, have),
			related: []diag.Related{{Range: d.manifestAt(first.field, first.key), Message: "the manifest's value"}},
		})
		return
	case first.field == workload.TemplateLabels && !d.staysSelected(first):
		return
	}
	next := maps.Clone(*at)
	if next == nil {
		next = map[string]string{}
	}
	next[first.key] = first.value
	*at = next
	d.effectAt(first.level, string(first.field), map[string]string{first.key: first.value}, first.reason, origins...)
}

// staysSelected reports whether the object's own selector, which cannot change,
// selects the pods with the label as it does without, and reports a finding if
// not.
func (d *draft) staysSelected(w keyWish) bool {
	sel := ownSelector(d.w.Selector)
	if sel == nil || !selects(sel, d.t.Labels) {
		return true
	}
	labels := maps.Clone(d.t.Labels)
	maps.Copy(labels, d.after.Labels)
	labels[w.key] = w.value
	if selects(sel, labels) {
		return true
	}
	d.report(finding{
		rule: "compile/breaks-selector", policy: w.origin.Policy, at: w.origin.Range,
		message: fmt.Sprintf("the label %q = %q, which the pods would need, is one that the selector of the %s does not select, and the API would refuse it; leave the key out of the selector", w.key, w.value, d.w.Kind),
		related: []diag.Related{{Range: d.w.Source.At("spec", "selector"), Message: "the selector"}},
	})
	return false
}

// settleGates adds the scheduling gates that the manifest does not have yet, by
// name.
func (d *draft) settleGates() {
	wishes := slices.Clone(d.held)
	slices.SortStableFunc(wishes, func(a, b gateWish) int { return cmp.Compare(a.name, b.name) })
	var origins []Origin
	for _, w := range wishes {
		origins = append(origins, w.origin)
	}
	if len(wishes) == 0 || !d.carries(workload.SchedulingGates, uniqueOrigins(origins)...) {
		return
	}
	for i, w := range wishes {
		has := func(g corev1.PodSchedulingGate) bool { return g.Name == w.name }
		if i > 0 && wishes[i-1].name == w.name || slices.ContainsFunc(d.after.SchedulingGates, has) {
			continue
		}
		if node, there, _ := d.podSpecValue([]string{"nodeName"}); d.t.PodSpec != nil && there && node != "" && !d.isRunningPod() {
			d.report(finding{
				rule: "compile/contradiction", policy: w.origin.Policy, at: w.origin.Range,
				message: fmt.Sprintf("the manifest names the node %v, so no scheduler can hold the pods back; leave nodeName out of it", node),
				related: []diag.Related{{Range: d.w.Source.At(d.podSpecPath([]string{"nodeName"})...), Message: "the manifest's nodeName"}},
			})
			return
		}
		d.after.SchedulingGates = append(slices.Clip(d.after.SchedulingGates), corev1.PodSchedulingGate{Name: w.name})
		d.effectAt(w.level, string(workload.SchedulingGates), corev1.PodSchedulingGate{Name: w.name}, w.reason, w.origin)
	}
}

// isRunningPod reports whether it is a pod of the cluster, whose node is the scheduler's
// word and not a manifest's.
func (d *draft) isRunningPod() bool {
	return d.w.Group == "" && d.w.Kind == "Pod" && (d.w.Source.Live || d.c.Surface == policy.SurfaceLive)
}

// visibleDevices is the variable by which a container sees the devices that the
// scheduler wrote down, as the container starts.
func visibleDevices() corev1.EnvVar {
	return corev1.EnvVar{Name: args.VisibleDevices, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + args.PodGPUIndex + "']"},
	}}
}

// settleDevices gives the containers the variable.
func (d *draft) settleDevices() {
	if len(d.devices) == 0 {
		return
	}
	origins := make([]Origin, len(d.devices))
	for i, w := range d.devices {
		origins[i] = w.origin
	}
	if d.t.PodSpec == nil {
		d.carries(workload.Env, origins...)
		return
	}
	known := d.t.Containers()
	shown := map[string][]Origin{}
	for _, w := range d.devices {
		names := w.containers
		if names == nil {
			names = slices.DeleteFunc(slices.Clone(known), func(name string) bool { return d.chooses(name) })
		}
		for _, name := range names {
			switch {
			case !slices.Contains(known, name):
				d.report(finding{
					rule: "compile/unknown-container", policy: w.origin.Policy, at: w.origin.Range,
					message: fmt.Sprintf("the template has no container %q; it has %s", name, cmp.Or(quoted(known), "none")),
				})
			case d.chooses(name):
				path, _ := d.t.EnvPath(name)
				d.report(finding{
					rule: "compile/contradiction", policy: w.origin.Policy, at: w.origin.Range,
					message: fmt.Sprintf("container %q is to be shown the devices that the scheduler chose, but the manifest sets its %s; take that out", name, args.VisibleDevices),
					related: []diag.Related{{Range: d.w.Source.At(path...), Message: "the container's environment"}},
				})
			default:
				shown[name] = append(shown[name], w.origin)
			}
		}
	}
	for _, name := range sortedKeys(shown) {
		if len(d.after.Env[name]) > 0 {
			continue // It is shown them already.
		}
		env := maps.Clone(d.after.Env)
		if env == nil {
			env = map[string][]corev1.EnvVar{}
		}
		env[name] = []corev1.EnvVar{visibleDevices()}
		d.after.Env = env
		d.effect(string(workload.Env), map[string]any{"container": name, "variable": visibleDevices()}, d.devices[0].reason, shown[name]...)
	}
}

// chooses reports whether the manifest's container sets the variable to anything
// but ours.
func (d *draft) chooses(name string) bool {
	return slices.ContainsFunc(d.t.Pods.Env[name], func(v corev1.EnvVar) bool { return keyOf(v) != keyOf(visibleDevices()) })
}
