package compiler

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"

	"github.com/kubectl-sched/kubectl-sched/compiler/jsonfield"
	"github.com/kubectl-sched/kubectl-sched/compiler/nodeexpr"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

const rawReason = "raw says this field of the pod spec itself"

// rawRule is a policy's raw.pod, decoded: the placement fields, and everything
// else as leaves.
type rawRule struct {
	spec   corev1.PodSpec
	leaves []rawLeaf
}

// rawLeaf is a value of the pod spec that is set as a whole: a scalar, a list or
// an empty map.
type rawLeaf struct {
	path   []string
	value  any
	origin Origin
}

// prepareRaw decodes raw.pod strictly and reports what a pod spec does not have.
func (c *compilation) prepareRaw(r *rule) {
	if r.Raw == nil {
		return
	}
	c.prepareRawProfile(r)
	if len(r.Raw.Pod) == 0 {
		return
	}
	data, err := json.Marshal(r.Raw.Pod)
	if err != nil {
		c.report(finding{rule: "policy/bad-raw", policy: r.Name, at: r.author.at("raw", "pod"), message: fmt.Sprintf("it has no JSON form: %s", err)})
		return
	}
	out := &rawRule{}
	strict, err := kjson.UnmarshalStrict(data, &out.spec)
	if err != nil {
		found := misfits(r.Raw.Pod, reflect.TypeFor[corev1.PodSpec](), nil)
		for _, m := range found {
			if unknownField.MatchString(m.message) {
				c.reportUnknownField(r, errors.New(m.message))
				continue
			}
			c.report(finding{rule: "policy/bad-raw", policy: r.Name, at: r.author.at(append([]string{"raw", "pod"}, m.path...)...), message: m.message})
		}
		if len(found) > 0 {
			return
		}
		c.report(finding{rule: "policy/bad-raw", policy: r.Name, at: r.author.at("raw", "pod"), message: fmt.Sprintf("it is no pod spec: %s", strings.TrimPrefix(err.Error(), "json: "))})
		return
	}
	for _, err := range strict {
		c.reportUnknownField(r, err)
	}
	if len(strict) > 0 {
		return
	}
	for _, k := range sortedKeys(r.Raw.Pod) {
		if !slices.Contains(workload.Fields, workload.Field(k)) || k == string(workload.SchedulingGroup) {
			out.leaves = appendLeaves(out.leaves, r.author, []string{k}, r.Raw.Pod[k])
		}
	}
	r.raw = out
}

func appendLeaves(out []rawLeaf, a author, path []string, v any) []rawLeaf {
	m, ok := v.(map[string]any)
	if !ok || len(m) == 0 {
		return append(out, rawLeaf{path: path, value: v, origin: a.origin(append([]string{"raw", "pod"}, path...)...)})
	}
	for _, k := range sortedKeys(m) {
		out = appendLeaves(out, a, append(slices.Clone(path), k), m[k])
	}
	return out
}

var (
	unknownField = regexp.MustCompile(`unknown field "([^"]*)"`)
	listIndex    = regexp.MustCompile(`\[(\d+)\]`)
)

func (c *compilation) reportUnknownField(r *rule, err error) {
	match := unknownField.FindStringSubmatch(err.Error())
	if match == nil {
		c.report(finding{rule: "policy/bad-raw", policy: r.Name, at: r.author.at("raw", "pod"), message: err.Error()})
		return
	}
	path := strings.Split(listIndex.ReplaceAllString(match[1], ".$1"), ".")
	last := path[len(path)-1]
	message := fmt.Sprintf("a pod spec has no field %q", match[1])
	if near, ok := diag.Nearest(last, jsonfield.Names(reflect.TypeFor[corev1.PodSpec](), path[:len(path)-1])); ok {
		message += fmt.Sprintf("; did you mean %q?", near)
	}
	c.report(finding{rule: "policy/bad-raw", policy: r.Name, at: r.author.at(append([]string{"raw", "pod"}, path...)...), message: message})
}

// gatherRaw is the raw intent.
func gatherRaw(d *draft, r *rule) {
	if r.raw == nil {
		return
	}
	spec := r.raw.spec.DeepCopy()
	origin := func(path ...string) Origin { return r.author.origin(append([]string{"raw", "pod"}, path...)...) }
	for _, k := range sortedKeys(spec.NodeSelector) {
		d.selectors = append(d.selectors, selectorWish{k, spec.NodeSelector[k], origin("nodeSelector", k)})
	}
	for i, t := range spec.Tolerations {
		t.Operator = operatorOf(t)
		d.tolerate([]tolerationWish{d.c.namedToleration(t, origin("tolerations", fmt.Sprint(i)), rawReason)})
	}
	for i, s := range spec.TopologySpreadConstraints {
		if s.LabelSelector == nil || len(s.LabelSelector.MatchLabels)+len(s.LabelSelector.MatchExpressions) == 0 {
			o := origin("topologySpreadConstraints", fmt.Sprint(i))
			d.c.reportOnce(fmt.Sprint("rawSpread", o), finding{
				rule: "policy/bad-raw", policy: r.Name, at: o.Range,
				message: "a spread constraint without a labelSelector counts no pods and so constrains nothing; say it with the spread intent, or select the pods",
			})
			continue
		}
		d.rawSpreads = append(d.rawSpreads, placedConstraint{s, rawReason, []Origin{origin("topologySpreadConstraints", fmt.Sprint(i))}})
	}
	scalars := map[workload.Field]string{
		workload.PriorityClassName: spec.PriorityClassName,
		workload.SchedulerName:     spec.SchedulerName,
		workload.PreemptionPolicy:  scalar(workload.PodFields{PreemptionPolicy: spec.PreemptionPolicy}, workload.PreemptionPolicy),
	}
	for _, field := range sortedKeys(scalars) {
		if value := scalars[field]; value != "" {
			d.scalars = append(d.scalars, scalarWish{field: field, value: value, reason: rawReason, origin: origin(string(field))})
		}
	}
	if spec.Affinity != nil {
		d.gatherRawAffinity(r, spec.Affinity, origin)
	}
	for i, g := range spec.SchedulingGates {
		d.held = append(d.held, gateWish{name: g.Name, reason: rawReason, origin: origin("schedulingGates", fmt.Sprint(i))})
	}
	d.leaves = append(d.leaves, r.raw.leaves...)
}

func (d *draft) gatherRawAffinity(r *rule, a *corev1.Affinity, origin func(...string) Origin) {
	const required, preferred = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
	if n := a.NodeAffinity; n != nil {
		o := origin("affinity", "nodeAffinity", required)
		if n.RequiredDuringSchedulingIgnoredDuringExecution != nil {
			e, err := nodeexpr.FromSelector(n.RequiredDuringSchedulingIgnoredDuringExecution)
			if err != nil {
				d.c.reportOnce("raw"+r.Name, finding{rule: "policy/bad-raw", policy: r.Name, at: o.Range, message: fmt.Sprintf("the node affinity cannot be read: %s", err)})
			} else {
				d.required = append(d.required, statement{expr: e, origin: o, field: "raw"})
			}
		}
		for i, t := range n.PreferredDuringSchedulingIgnoredDuringExecution {
			d.preferred = append(d.preferred, preferredTerm{
				term: t.Preference, weight: t.Weight, reason: rawReason, origin: origin("affinity", "nodeAffinity", preferred, fmt.Sprint(i)),
			})
		}
	}
	gather := func(apart bool, field string, hard []corev1.PodAffinityTerm, soft []corev1.WeightedPodAffinityTerm) {
		for i, t := range hard {
			d.affinities = append(d.affinities, affinityWish{apart: apart, term: t, required: true, reason: rawReason, origin: origin("affinity", field, required, fmt.Sprint(i))})
		}
		for i, t := range soft {
			d.affinities = append(d.affinities, affinityWish{apart: apart, term: t.PodAffinityTerm, weight: t.Weight, reason: rawReason, origin: origin("affinity", field, preferred, fmt.Sprint(i))})
		}
	}
	if p := a.PodAffinity; p != nil {
		gather(false, "podAffinity", p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if p := a.PodAntiAffinity; p != nil {
		gather(true, "podAntiAffinity", p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

// settleRaw sets the leaves that the manifest does not have yet.
func (d *draft) settleRaw() {
	if len(d.leaves) == 0 {
		return
	}
	if d.t.PodSpec == nil && d.c.admitting() {
		return // The pods have the field.
	}
	if d.t.PodSpec == nil {
		o := d.leaves[0].origin
		d.report(finding{
			rule: "compile/unsupported-field", policy: o.Policy, at: o.Range,
			message: fmt.Sprintf("%s carries placement fields alone, and %q is none; set it in the operator's own field", d.w.Kind, joinPath(d.leaves[0].path)),
		})
		return
	}
	var done []rawLeaf
	for _, leaf := range d.leaves {
		if i := slices.IndexFunc(done, func(o rawLeaf) bool { return overlaps(o.path, leaf.path) }); i >= 0 {
			d.settleAgain(done[i], leaf)
			continue
		}
		done = append(done, leaf)
		have, found, reachable := d.podSpecValue(leaf.path)
		_, emptyMap := leaf.value.(map[string]any)
		_, isMap := have.(map[string]any)
		switch {
		case !reachable || found && keyOf(have) != keyOf(leaf.value) && (!emptyMap || !isMap):
			d.report(finding{
				rule: "compile/contradiction", policy: leaf.origin.Policy, at: leaf.origin.Range,
				message: fmt.Sprintf("the policy sets %s to %s, but the manifest says %s; change one of them", joinPath(leaf.path), keyOf(leaf.value), keyOf(have)),
				related: []diag.Related{{Range: d.w.Source.At(d.podSpecPath(leaf.path)...), Message: "the manifest's value"}},
			})
		case !found:
			d.setRaw(leaf.path, leaf.value)
			d.effect(joinPath(leaf.path), leaf.value, rawReason, d.leafOrigins(leaf)...)
		}
	}
}

// settleAgain reports a second leaf for the same place that says otherwise.
func (d *draft) settleAgain(first, second rawLeaf) {
	if slices.Equal(first.path, second.path) && keyOf(first.value) == keyOf(second.value) {
		return
	}
	d.report(finding{
		rule: "compile/contradiction", policy: first.origin.Policy, at: first.origin.Range,
		message: fmt.Sprintf("%s would be %s here and %s by policy %q; only one can be", joinPath(second.path), keyOf(first.value), keyOf(second.value), second.origin.Policy),
		related: relatedOrigins([]Origin{second.origin}, "sets it too"),
	})
}

// leafOrigins returns the origins of all leaves that set the same.
func (d *draft) leafOrigins(leaf rawLeaf) []Origin {
	var out []Origin
	for _, o := range d.leaves {
		if slices.Equal(o.path, leaf.path) && keyOf(o.value) == keyOf(leaf.value) {
			out = append(out, o.origin)
		}
	}
	return out
}

func overlaps(a, b []string) bool {
	n := min(len(a), len(b))
	return slices.Equal(a[:n], b[:n])
}

func (d *draft) podSpecPath(path []string) workload.Path {
	out := slices.Clone(d.t.PodSpec)
	for _, p := range path {
		out = append(out, p)
	}
	return out
}

// podSpecValue returns what the manifest has at a path below the pod spec,
// without us, and whether it has it. It is not reachable where something other
// than a map is in between.
func (d *draft) podSpecValue(path []string) (value any, found, reachable bool) {
	value = any(d.w.Object)
	for _, step := range d.podSpecPath(path) {
		switch at := value.(type) {
		case nil:
			return nil, false, true
		case map[string]any:
			key, _ := step.(string)
			if value, found = at[key]; !found {
				return nil, false, true
			}
		case []any:
			i, ok := step.(int)
			if !ok || i < 0 || i >= len(at) {
				return at, true, false
			}
			value = at[i]
		default:
			return at, true, false
		}
	}
	return d.withoutUs(path, value)
}

// withoutUs returns the value that was there before us, where the record says
// that the present one is ours.
func (d *draft) withoutUs(path []string, value any) (any, bool, bool) {
	if d.w.Record == nil {
		return value, true, true
	}
	full := make([]string, 0, len(path))
	for _, p := range d.podSpecPath(path) {
		full = append(full, fmt.Sprint(p))
	}
	pointer := policy.Pointer(full...)
	for _, f := range d.w.Record.Fields {
		if f.Path == pointer && keyOf(f.Wrote) == keyOf(value) {
			return f.Before, f.Before != nil, true
		}
	}
	return value, true, true
}

func (d *draft) setRaw(path []string, value any) {
	if d.after.Raw == nil {
		d.after.Raw = map[string]any{}
	}
	at := d.after.Raw
	for _, p := range path[:len(path)-1] {
		next, ok := at[p].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[p] = next
		}
		at = next
	}
	at[path[len(path)-1]] = value
}

// selectorWish is one label of a raw nodeSelector.
type selectorWish struct {
	key, value string
	origin     Origin
}

// settleNodeSelector adds the labels of raw nodeSelectors.
func (d *draft) settleNodeSelector() {
	for _, w := range d.selectors {
		have, ok := d.after.NodeSelector[w.key]
		switch {
		case ok && have == w.value:
			continue
		case ok:
			related := []diag.Related{{Range: d.manifestAt(workload.NodeSelector, w.key), Message: "the manifest's value"}}
			if _, theirs := d.t.Pods.NodeSelector[w.key]; !theirs {
				related = nil
			}
			d.report(finding{
				rule: "compile/contradiction", policy: w.origin.Policy, at: w.origin.Range, related: related,
				message: fmt.Sprintf("the policy sets the nodeSelector %q to %q, but it is %q already; change one of them", w.key, w.value, have),
			})
		case d.carries(workload.NodeSelector, w.origin):
			next := map[string]string{w.key: w.value}
			for k, v := range d.after.NodeSelector {
				next[k] = v
			}
			d.after.NodeSelector = next
			d.effect(string(workload.NodeSelector), map[string]string{w.key: w.value}, rawReason, w.origin)
		}
	}
}
