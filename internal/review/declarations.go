package review

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	wholenumbers "k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Places say how the two sides name places in their files; nil leaves them.
type Places struct{ Base, Head func(diag.Range) diag.Range }

func named(at func(diag.Range) diag.Range, r diag.Range) diag.Range {
	if at == nil {
		return r
	}
	return at(r)
}

// declaration is one that is compared.
type declaration struct {
	values map[string]string // as JSON, by JSON pointer
	at     policy.Positions
}

// Declarations returns what is different in what two documents say.
func Declarations(base, head *policy.Placement, places Places) ([]Declaration, error) {
	before, err := declarations(base)
	if err != nil {
		return nil, err
	}
	after, err := declarations(head)
	if err != nil {
		return nil, err
	}
	var out []Declaration
	for key, b := range before {
		d := Declaration{Sort: key.sort, Name: key.name}
		h, there := after[key]
		if !there {
			d.Action, d.Range = Removed, named(places.Base, b.at[""])
			out = append(out, d)
			continue
		}
		d.Values = changed(b, h, places)
		if d.Action, d.Range = Changed, named(places.Head, h.at[""]); len(d.Values) > 0 {
			out = append(out, d)
		}
	}
	for key, h := range after {
		if _, there := before[key]; !there {
			out = append(out, Declaration{Sort: key.sort, Name: key.name, Action: Added, Range: named(places.Head, h.at[""])})
		}
	}
	slices.SortFunc(out, func(a, b Declaration) int {
		return cmp.Or(cmp.Compare(order[a.Sort], order[b.Sort]), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// order is that in which sorts of declarations are named.
var order = map[string]int{"policy": 1, "pool": 2, "cluster": 3, "kind": 4}

func changed(base, head declaration, places Places) []Value {
	pointers := map[string]bool{}
	for p := range base.values {
		pointers[p] = true
	}
	for p := range head.values {
		pointers[p] = true
	}
	var out []Value
	for _, p := range slices.Sorted(maps.Keys(pointers)) {
		v := Value{Path: dotted(p), Before: base.values[p], After: head.values[p]}
		if v.Before == v.After {
			continue
		}
		steps := steps(p)
		if v.Range = named(places.Head, head.at.At(steps...)); v.After == "" {
			v.Range = named(places.Base, base.at.At(steps...))
		}
		out = append(out, v)
	}
	return out
}

// declared is the name of a declaration.
type declared struct{ sort, name string }

func declarations(p *policy.Placement) (map[declared]declaration, error) {
	out := map[declared]declaration{}
	add := func(sort, name string, v any, at policy.Positions) error {
		values, err := values(v)
		if err != nil {
			return fmt.Errorf("compare %s %q: %w", sort, name, err)
		}
		out[declared{sort, name}] = declaration{values, at}
		return nil
	}
	for _, x := range p.Policies {
		at := x.Positions
		x.Positions, x.Folder = nil, ""
		if err := add("policy", x.Name, x, at); err != nil {
			return nil, err
		}
	}
	for _, x := range p.Pools {
		at := x.Positions
		x.Positions = nil
		if err := add("pool", x.Name, x, at); err != nil {
			return nil, err
		}
	}
	for _, x := range p.Clusters {
		at := x.Positions
		x.Positions = nil
		if err := add("cluster", x.Name, x, at); err != nil {
			return nil, err
		}
	}
	for _, x := range p.Kinds {
		at := x.Positions
		x.Positions = nil
		if err := add("kind", x.Name, x, at); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// values returns the leaves of a value, as JSON, by JSON pointer.
func values(v any) (map[string]string, error) {
	plain, err := plainOf(v)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	var walk func(path []string, v any) error
	walk = func(path []string, v any) error {
		switch v := v.(type) {
		case map[string]any:
			for k, e := range v {
				if err := walk(append(slices.Clone(path), k), e); err != nil {
					return err
				}
			}
		case []any:
			for i, e := range v {
				if err := walk(append(slices.Clone(path), strconv.Itoa(i)), e); err != nil {
					return err
				}
			}
		default:
			text, err := json.Marshal(v)
			if err != nil {
				return err
			}
			out[policy.Pointer(path...)] = string(text)
		}
		return nil
	}
	return out, walk(nil, plain)
}

// plainOf returns the value as JSON has it.
func plainOf(v any) (any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var plain any
	err = wholenumbers.Unmarshal(data, &plain)
	return plain, err
}

func steps(pointer string) []string {
	parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i := range parts {
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(parts[i], "~1", "/"), "~0", "~")
	}
	return parts
}

func dotted(pointer string) string { return strings.Join(steps(pointer), ".") }
