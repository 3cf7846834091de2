package snapshot

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/workload/plain"
)

// ChangeKind is what became of an object.
type ChangeKind string

// What can become of an object. Only pods are placed and move: one that waited has a
// node, or it is on another node, itself or the next one of its name. An object that
// was made anew and is otherwise as before is Replaced.
const (
	Added    ChangeKind = "added"
	Removed  ChangeKind = "removed"
	Placed   ChangeKind = "placed"
	Moved    ChangeKind = "moved"
	Replaced ChangeKind = "replaced"
	Changed  ChangeKind = "changed"
)

// Change is what became of one object between two snapshots.
type Change struct {
	// Kind is the object's kind, and List what people call all of them ("nodes").
	Kind      string     `json:"kind"`
	List      string     `json:"list"`
	Namespace string     `json:"namespace,omitempty"`
	Name      string     `json:"name"`
	Change    ChangeKind `json:"change"`
	// Workload is the topmost owner of a pod that is known, "Deployment shop/web"; for
	// a pod without one the pod itself.
	Workload string `json:"workload,omitempty"`
	// From and To are the nodes of a pod, before and after; empty for none.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Fields are what changed in an object that is in both.
	Fields []FieldChange `json:"fields,omitempty"`
}

// FieldChange is one field of an object that is not as it was. Before and After are
// JSON; empty where the field is not there.
type FieldChange struct {
	Path   string `json:"path"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// Difference is all that changed between two snapshots and matters to scheduling.
type Difference struct {
	// Changes are in the order of Kinds, and of namespace and name.
	Changes []Change `json:"changes"`
	// Unknown are the resources that one of the two could not read.
	Unknown []string `json:"unknown,omitempty"`
}

// Diff returns what changed from a to b. Two snapshots of which one alone is
// anonymised cannot be compared.
func Diff(a, b *Snapshot) (*Difference, error) {
	if a.Anonymized != b.Anonymized {
		return nil, errors.New("one of the snapshots is anonymised and the other is not, so that nothing in them has the same name; compare two that are alike")
	}
	d := &Difference{Changes: []Change{}}
	unknown := map[string]bool{}
	for _, m := range slices.Concat(a.Missing, b.Missing) {
		unknown[m.Resource] = true
	}
	d.Unknown = slices.Sorted(maps.Keys(unknown))
	before, after := ownersOf(a), ownersOf(b)
	for _, k := range allKinds() {
		if unknown[strings.TrimSuffix(k.Resource+"."+k.Group, ".")] {
			continue
		}
		old := map[string]Object{}
		for o := range k.All(a) {
			old[keyOf(o)] = o
		}
		for o := range k.All(b) {
			was, ok := old[keyOf(o)]
			delete(old, keyOf(o))
			if !ok {
				d.Changes = append(d.Changes, newChange(k, o, Added, after))
				continue
			}
			c, err := compare(k, was, o, after)
			if err != nil {
				return nil, fmt.Errorf("compare %s %s: %w", k.Name, nameOf(o), err)
			}
			if c != nil {
				d.Changes = append(d.Changes, *c)
			}
		}
		for _, o := range old {
			d.Changes = append(d.Changes, newChange(k, o, Removed, before))
		}
	}
	d.Changes = append(d.Changes, schedulerChanges(a.Schedulers, b.Schedulers)...)
	d.sort()
	return d, nil
}

func (d *Difference) sort() {
	rank := map[string]int{}
	for i, k := range allKinds() {
		rank[k.Name] = i
	}
	rank[schedulerList] = -1
	slices.SortStableFunc(d.Changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(rank[a.List], rank[b.List]), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
}

// keyOf tells the objects of one list apart.
func keyOf(o Object) string {
	key := o.GetNamespace() + "/" + o.GetName()
	if gvk := o.GetObjectKind().GroupVersionKind(); gvk.Kind != "" {
		key += " " + gvk.GroupKind().String()
	}
	return key
}

func newChange(k *Kind, o Object, what ChangeKind, owners owners) Change {
	c := Change{Kind: k.Kind, List: k.Name, Namespace: o.GetNamespace(), Name: o.GetName(), Change: what}
	if c.Kind == "" {
		c.Kind = o.GetObjectKind().GroupVersionKind().Kind
	}
	if p, ok := o.(*corev1.Pod); ok {
		c.Workload = owners.top(p)
		if what == Added {
			c.To = p.Spec.NodeName
		} else {
			c.From = p.Spec.NodeName
		}
	}
	return c
}

// compare returns what changed in an object that is in both; nil for nothing.
func compare(k *Kind, was, is Object, owners owners) (*Change, error) {
	if k.Typed {
		x, err := k.list.marshal(was)
		if err != nil {
			return nil, err
		}
		y, err := k.list.marshal(is)
		if err != nil || bytes.Equal(x, y) {
			return nil, err
		}
	}
	x, err := plainForm(k, was)
	if err != nil {
		return nil, err
	}
	y, err := plainForm(k, is)
	if err != nil {
		return nil, err
	}
	c := newChange(k, is, Changed, owners)
	c.Fields = fieldChanges("", x, y)
	replaced := was.GetUID() != is.GetUID() && was.GetUID() != "" && is.GetUID() != ""
	if replaced {
		c.Change = Replaced
	}
	if p, ok := was.(*corev1.Pod); ok {
		c.From, c.To = p.Spec.NodeName, is.(*corev1.Pod).Spec.NodeName
		switch {
		case c.From == c.To:
		case c.From == "" && !replaced:
			c.Change = Placed
		default:
			c.Change = Moved
		}
		// That a pod runs where it was placed is no news.
		c.Fields = slices.DeleteFunc(c.Fields, func(f FieldChange) bool {
			return f.Path == "spec.nodeName" || f.Path == "status.phase" && c.Change == Placed
		})
	}
	if len(c.Fields) == 0 {
		if c.Fields = nil; c.Change == Changed {
			return nil, nil
		}
	}
	return &c, nil
}

// passing are the fields that say when something happened, which pod of many it was,
// or how far a controller is: they change all the time, and no verdict depends on
// them.
var passing = map[string][]string{
	"":              {"metadata.uid", "metadata.creationTimestamp", "metadata.ownerReferences"},
	"Node":          {"status.conditions", "status.images", "status.volumesAttached"},
	"Pod":           {"status.conditions", "status.startTime"},
	"Deployment":    {"status"},
	"ReplicaSet":    {"status"},
	"StatefulSet":   {"status"},
	"DaemonSet":     {"status"},
	"Job":           {"status"},
	"PodGroup":      {"status"},
	"NodePool":      {"status"},
	"NodeMetrics":   {"timestamp", "window"},
	"ElasticQuota":  {},
	"ResourceClaim": {"status.allocation.allocationTimestamp"},
}

// plainForm returns the object as plain values, without what passes.
func plainForm(k *Kind, o Object) (map[string]any, error) {
	object, err := plainObject(k, o)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(object) // a copy, and one form for all numbers
	if err != nil {
		return nil, err
	}
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, err
	}
	for _, path := range slices.Concat(passing[""], passing[k.Kind]) {
		removePath(out, strings.Split(path, "."))
	}
	return out, nil
}

func removePath(m map[string]any, path []string) {
	for len(path) > 1 {
		next, ok := m[path[0]].(map[string]any)
		if !ok {
			return
		}
		m, path = next, path[1:]
	}
	delete(m, path[0])
}

// fieldChanges compares maps field by field, and all else as a whole.
func fieldChanges(path string, a, b map[string]any) []FieldChange {
	keys := map[string]bool{}
	for key := range a {
		keys[key] = true
	}
	for key := range b {
		keys[key] = true
	}
	var out []FieldChange
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		below := strings.TrimPrefix(path+"."+key, ".")
		if strings.ContainsAny(key, "./") {
			below = fmt.Sprintf("%s[%q]", path, key)
		}
		x, hasX := a[key]
		y, hasY := b[key]
		mx, isMapX := x.(map[string]any)
		my, isMapY := y.(map[string]any)
		switch {
		case isMapX && isMapY:
			out = append(out, fieldChanges(below, mx, my)...)
		case !plain.Equal(x, y) || hasX != hasY:
			out = append(out, FieldChange{Path: below, Before: jsonText(x, hasX), After: jsonText(y, hasY)})
		}
	}
	return out
}

func jsonText(v any, there bool) string {
	if !there {
		return ""
	}
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}

// schedulerList is what the schedulers of a Difference are called.
const schedulerList = "schedulers"

func schedulerChanges(a, b []Scheduler) []Change {
	change := func(name string, what ChangeKind) Change {
		namespace, name, _ := strings.Cut(name, "/")
		return Change{Kind: "Scheduler", List: schedulerList, Namespace: namespace, Name: name, Change: what}
	}
	old := map[string]Scheduler{}
	for _, s := range a {
		old[s.Name] = s
	}
	var out []Change
	for _, s := range b {
		was, ok := old[s.Name]
		delete(old, s.Name)
		if !ok {
			out = append(out, change(s.Name, Added))
			continue
		}
		x, y := schedulerFields(was), schedulerFields(s)
		if fields := fieldChanges("", x, y); len(fields) > 0 {
			c := change(s.Name, Changed)
			c.Fields = fields
			out = append(out, c)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(old)) {
		out = append(out, change(name, Removed))
	}
	return out
}

func schedulerFields(s Scheduler) map[string]any {
	profiles := make([]any, len(s.Profiles))
	for i, p := range s.Profiles {
		profiles[i] = p
	}
	return map[string]any{"configuration": s.Configuration, "profiles": profiles, "ready": s.Ready}
}
