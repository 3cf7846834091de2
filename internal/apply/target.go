package apply

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// target is one workload and what it shall become.
type target struct {
	w *workload.Workload
	// derive computes the object as it shall be from the object as it is: again
	// after somebody else has changed it meanwhile.
	derive   func(*workload.Workload, workload.Stamp) (*workload.Written, error)
	policies []string
	origins  map[string][]compiler.Origin
	changes  []compiler.Change
}

func (t *target) groupKind() schema.GroupKind {
	return schema.GroupKind{Group: t.w.Group, Kind: t.w.Kind}
}

// without derives the object as it is without us. It goes by the record alone,
// so that it works for kinds that only a policy knew.
func without(w *workload.Workload, _ workload.Stamp) (*workload.Written, error) {
	if w.Record == nil {
		return &workload.Written{Object: w.Object}, nil
	}
	object, _ := ownership.Withdraw(w.Object, w.Record)
	return &workload.Written{Object: object}, nil
}

// planned returns the target for the changes that a plan has for one workload.
func planned(changes []compiler.Change) *target {
	t := &target{w: changes[0].Workload, changes: changes, origins: map[string][]compiler.Origin{}}
	after := make(map[int]workload.PodFields, len(changes))
	names := make(map[int]string, len(changes))
	for _, change := range changes {
		after[change.Template] = change.After
		names[change.Template] = t.w.Templates[change.Template].Name
		t.policies = append(t.policies, change.Policies...)
		for _, effect := range change.Effects {
			at := effectPointer(&t.w.Templates[change.Template], effect.Field)
			t.origins[at] = append(t.origins[at], effect.Origins...)
		}
	}
	slices.Sort(t.policies)
	t.policies = slices.Compact(t.policies)
	t.derive = func(w *workload.Workload, stamp workload.Stamp) (*workload.Written, error) {
		for i, name := range names {
			if i >= len(w.Templates) || w.Templates[i].Name != name {
				return nil, &overtakenError{subject: w.Ref(), message: "its pod templates were changed meanwhile; run the command again"}
			}
		}
		return w.Write(after, stamp)
	}
	return t
}

// effectPointer returns the JSON pointer, in the object, of a field that an
// effect names relative to the pod spec.
func effectPointer(t *workload.Template, field string) string {
	steps := strings.Split(field, ".")
	f, below := workload.Field(steps[0]), steps[1:]
	if f == workload.Affinity && len(below) > 0 {
		// Some kinds carry the parts of the affinity in different places.
		f, below = f+"."+workload.Field(below[0]), below[1:]
	}
	if steps[0] == "metadata" && len(steps) > 1 {
		f, below = workload.Field(steps[0]+"."+steps[1]), nil
	}
	if path, ok := t.PathOf(f); ok {
		return pointer(path) + policy.Pointer(below...)
	}
	return pointer(t.PodSpec) + policy.Pointer(steps...)
}

// originsAt returns the policies' lines for the field at the pointer, or for
// what is in it or around it.
func originsAt(origins map[string][]compiler.Origin, at string) []compiler.Origin {
	var found []compiler.Origin
	for _, key := range slices.Sorted(maps.Keys(origins)) {
		if within(key, at) || within(at, key) {
			found = append(found, origins[key]...)
		}
	}
	return uniqueOrigins(found)
}

// within reports whether the pointer inner is outer or leads into it.
func within(inner, outer string) bool {
	return inner == outer || strings.HasPrefix(inner, outer+"/")
}

func uniqueOrigins(origins []compiler.Origin) []compiler.Origin {
	slices.SortStableFunc(origins, func(a, b compiler.Origin) int {
		if c := a.Range.Start.Compare(b.Range.Start); c != 0 {
			return c
		}
		return strings.Compare(a.Policy, b.Policy)
	})
	return slices.CompactFunc(origins, func(a, b compiler.Origin) bool { return a == b })
}

// covers reports whether what the cluster has says all that is wanted: equal,
// but for values that the API server filled in, and for the order of lists that
// the server keeps by their keys.
func covers(got, want any, at string) bool {
	switch w := want.(type) {
	case nil:
		return isEmpty(got)
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return false
		}
		for key, value := range w {
			if !covers(g[key], value, key) {
				return false
			}
		}
		return true
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return false
		}
		if isKeyedList("/" + strings.TrimPrefix(at, "/")) {
			return !slices.ContainsFunc(w, func(want any) bool {
				return !slices.ContainsFunc(g, func(got any) bool { return covers(got, want, "") })
			})
		}
		for i := range w {
			if !covers(g[i], w[i], "") {
				return false
			}
		}
		return true
	}
	return same(got, want)
}

func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// ownedPaths returns the pointers of the fields of both records, sorted.
func ownedPaths(records ...*ownership.Record) []string {
	var paths []string
	for _, r := range records {
		if r == nil {
			continue
		}
		for _, f := range r.Fields {
			paths = append(paths, f.Path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// sameRecord reports whether two records own the same, whichever revisions
// wrote them.
func sameRecord(a, b *ownership.Record) bool {
	if a == nil || b == nil {
		return a == b
	}
	if len(a.Fields) != len(b.Fields) || a.UID != b.UID {
		return false
	}
	for i := range a.Fields {
		f, g := a.Fields[i], b.Fields[i]
		if f.Path != g.Path || f.Template != g.Template || !same(plain(f.Before), plain(g.Before)) || !covers(plain(f.Wrote), plain(g.Wrote), f.Path) {
			return false
		}
	}
	return true
}
