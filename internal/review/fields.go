package review

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	wholenumbers "k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// template is the placement of one pod template.
type template struct {
	// name is that of the workload, with that of the template where it has several.
	name    string
	labels  map[string]string
	fields  workload.PodFields
	effects []compiler.Effect
}

// templates returns the placement that each pod template has with the plan.
func templates(c Compilation) map[string]template {
	out := map[string]template{}
	add := func(w *workload.Workload, i int, fields workload.PodFields, effects []compiler.Effect) {
		t := template{name: w.Ref(), labels: w.Templates[i].Labels, fields: fields, effects: effects}
		if name := w.Templates[i].Name; name != "" {
			t.name += " template " + name
		}
		out[t.name] = t
	}
	for _, w := range c.Workloads {
		for i := range w.Templates {
			add(w, i, w.Templates[i].Pods, nil)
		}
	}
	for _, change := range c.Plan.Changes {
		add(change.Workload, change.Template, change.After, change.Effects)
	}
	return out
}

// fieldChanges returns what is different in the pod templates that the head has, in
// groups of those that change alike.
func fieldChanges(base, head Compilation, places Places) ([]FieldChange, error) {
	before, after := templates(base), templates(head)
	groups := map[string]*FieldChange{}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		b, h := before[name], after[name]
		was, err := items(b.fields)
		if err != nil {
			return nil, fmt.Errorf("compare %s: %w", name, err)
		}
		is, err := items(h.fields)
		if err != nil {
			return nil, fmt.Errorf("compare %s: %w", name, err)
		}
		fields := map[string]bool{}
		for f := range was {
			fields[f] = true
		}
		for f := range is {
			fields[f] = true
		}
		for _, field := range slices.Sorted(maps.Keys(fields)) {
			removed, added := without(was[field], is[field]), without(is[field], was[field])
			if len(removed)+len(added) == 0 {
				continue
			}
			g := FieldChange{Field: field}
			g.Removed, g.Added = inWords(removed, b.labels), inWords(added, h.labels)
			if slices.Equal(g.Removed, g.Added) { // other labels of the workload's own
				g.Removed, g.Added = inWords(removed, nil), inWords(added, nil)
			}
			key := field + "\x00" + strings.Join(g.Removed, "\x00") + "\x01" + strings.Join(g.Added, "\x00")
			if groups[key] == nil {
				groups[key] = &g
			}
			groups[key].Workloads = append(groups[key].Workloads, name)
			origins, at := h.effects, places.Head
			if len(added) == 0 {
				origins, at = b.effects, places.Base
			}
			groups[key].Origins = joined(groups[key].Origins, relocated(originsOf(origins, field), at))
		}
	}
	out := make([]FieldChange, 0, len(groups))
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		out = append(out, *groups[key])
	}
	slices.SortStableFunc(out, func(a, b FieldChange) int { return cmp.Compare(len(b.Workloads), len(a.Workloads)) })
	return out, nil
}

// items returns the parts of each field, as JSON: the elements of lists, the entries
// of labels and the like.
func items(fields workload.PodFields) (map[string][]string, error) {
	plain, err := plainOf(fields)
	if err != nil {
		return nil, err
	}
	// What raw.pod sets is in no field of its own.
	raw, err := plainOf(fields.Raw)
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	if err := collect(out, "", plain); err != nil {
		return nil, err
	}
	if err := collect(out, "", raw); err != nil {
		return nil, err
	}
	for f := range out {
		slices.Sort(out[f])
	}
	return out, nil
}

// collect adds the parts of the value to those of the field.
func collect(out map[string][]string, field string, v any) error {
	add := func(part any) error {
		text, err := json.Marshal(part)
		if err == nil {
			out[field] = append(out[field], string(text))
		}
		return err
	}
	switch v := v.(type) {
	case nil:
		return nil
	case map[string]any:
		for k, e := range v {
			var err error
			if field == "" || strings.HasPrefix(field, "affinity") {
				err = collect(out, strings.TrimPrefix(field+"."+k, "."), e)
			} else {
				err = add(map[string]any{k: e})
			}
			if err != nil {
				return err
			}
		}
		return nil
	case []any:
		for _, e := range v {
			if err := add(e); err != nil {
				return err
			}
		}
		return nil
	}
	return add(v)
}

// without returns the elements that other has not, or has fewer of.
func without(list, other []string) []string {
	left := map[string]int{}
	for _, e := range other {
		left[e]++
	}
	var out []string
	for _, e := range list {
		if left[e]--; left[e] < 0 {
			out = append(out, e)
		}
	}
	return out
}

// ownPods stands for a selector of a workload's own pods.
const ownPods = "its own pods"

// inWords returns the items as YAML in one line, with the selectors that match the
// labels replaced; nil replaces none.
func inWords(list []string, own map[string]string) []string {
	out := make([]string, 0, len(list))
	for _, text := range list {
		var v any
		if wholenumbers.Unmarshal([]byte(text), &v) != nil {
			out = append(out, text)
			continue
		}
		if own != nil {
			v = withoutOwn(v, own)
		}
		var b bytes.Buffer
		flow(&b, v)
		out = append(out, b.String())
	}
	slices.Sort(out)
	return out
}

func withoutOwn(v any, own map[string]string) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if k == "labelSelector" && selects(e, own) {
				v[k] = ownPods
				continue
			}
			v[k] = withoutOwn(e, own)
		}
	case []any:
		for i := range v {
			v[i] = withoutOwn(v[i], own)
		}
	}
	return v
}

func selects(v any, own map[string]string) bool {
	m, ok := v.(map[string]any)
	if !ok {
		return false
	}
	var s metav1.LabelSelector
	if runtime.DefaultUnstructuredConverter.FromUnstructured(m, &s) != nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(&s)
	return err == nil && !selector.Empty() && selector.Matches(labels.Set(own))
}

// flow writes a JSON value as YAML in one line.
func flow(b *bytes.Buffer, v any) {
	switch v := v.(type) {
	case map[string]any:
		b.WriteByte('{')
		for i, k := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b.WriteString(", ")
			}
			flow(b, k)
			b.WriteString(": ")
			flow(b, v[k])
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			flow(b, e)
		}
		b.WriteByte(']')
	default:
		if s, ok := v.(string); ok && plainText(s) {
			b.WriteString(s)
			return
		}
		text, err := json.Marshal(v)
		if err != nil {
			text = fmt.Appendf(nil, "%q", fmt.Sprint(v))
		}
		b.Write(text)
	}
}

// plainText reports whether a string needs no quotes: names, keys and paths do not.
func plainText(s string) bool {
	if s == "" || s == "true" || s == "false" || s == "null" {
		return false
	}
	letter := false
	for i, r := range s {
		switch {
		case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z':
			letter = true
		case r >= '0' && r <= '9':
		case strings.ContainsRune("/._- ", r) && i > 0:
		default:
			return false
		}
	}
	return letter
}

// originsOf are the policies' lines behind the field.
func originsOf(effects []compiler.Effect, field string) []compiler.Origin {
	var out []compiler.Origin
	for _, e := range effects {
		if strings.HasPrefix(field, e.Field) || strings.HasPrefix(e.Field, field) {
			out = append(out, e.Origins...)
		}
	}
	return out
}

func joined(a, b []compiler.Origin) []compiler.Origin {
	for _, o := range b {
		if !slices.Contains(a, o) {
			a = append(a, o)
		}
	}
	return a
}
