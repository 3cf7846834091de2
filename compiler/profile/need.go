package profile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Origin is the line of a policy that asks for something.
type Origin struct {
	Policy string     `json:"policy"`
	Range  diag.Range `json:"range"`
}

func (o Origin) compare(p Origin) int {
	return cmp.Or(cmp.Compare(o.Policy, p.Policy), o.Range.Start.Compare(p.Range.Start))
}

// Wish is one thing that one line of a policy asks of the profile. Plugin, Pack,
// Balance, MustWin and Fragment make wishes.
type Wish struct {
	// Feature is what the profile is named after: "gang", "pack".
	Feature string
	// Reason says why the built-in fields cannot do it, and what the profile does
	// instead.
	Reason string
	// Origin is who asks for it.
	Origin Origin
	// Ranks says that the wish is about which of the possible nodes is best, and no
	// more: it means nothing for pods that have one node alone, as a DaemonSet's.
	Ranks bool

	settings []setting
}

// key is the wish without who asks for it and why.
func (w Wish) key() string {
	texts := make([]string, len(w.settings))
	for i, s := range w.settings {
		texts[i] = s.text()
	}
	return w.Feature + "\x00" + strings.Join(texts, "\x00")
}

func (w Wish) compare(o Wish) int {
	return cmp.Or(cmp.Compare(w.key(), o.key()), w.Origin.compare(o.Origin), cmp.Compare(w.Reason, o.Reason))
}

// setting is a value at a path of a profile, or of what a profile is made from.
type setting struct {
	path []string
	// value is a JSON value: nil, bool, int64, float64, string, []any, or an empty
	// map[string]any.
	value any
}

// The first elements of paths.
const (
	// enabled, and a plugin: whether it is enabled at all of its extension points.
	pathEnabled = "enabled"
	// weight, and a plugin: what its score counts.
	pathWeight = "weight"
	// wins, and a plugin: its score outweighs all others together.
	pathWins = "wins"
	// args, a plugin, and a path in its arguments.
	pathArgs = "args"
	// points, an extension point, and "enabled" (a list), or "disabled" and a
	// plugin (true).
	pathPoints = "points"
	// fields, and a field of the profile with a single value.
	pathFields = "fields"
)

// separator stands between the elements of a path that is a key; no name has it.
const separator = "\x1f"

// key identifies the path.
func (s setting) key() string { return strings.Join(s.path, separator) }

// under reports whether the path is the given one, or below it.
func (s setting) under(path []string) bool {
	return len(s.path) >= len(path) && slices.Equal(s.path[:len(path)], path)
}

// json is the value as JSON.
func (s setting) json() string {
	data, err := json.Marshal(s.value)
	if err != nil { // Only for what is no JSON value.
		data = fmt.Append(nil, s.value)
	}
	return string(data)
}

// text identifies the setting.
func (s setting) text() string { return s.key() + "=" + s.json() }

// where names the path for a reader, in the words of a KubeSchedulerConfiguration.
func (s setting) where() string {
	rest := strings.Join(s.path[1:], ".")
	switch s.path[0] {
	case pathEnabled:
		return fmt.Sprintf("whether plugin %q is enabled", rest)
	case pathWeight:
		return fmt.Sprintf("the weight of plugin %q", rest)
	case pathArgs:
		return fmt.Sprintf("%s in the arguments of plugin %q", strings.Join(s.path[2:], "."), s.path[1])
	case pathPoints:
		return "plugins." + rest
	}
	return rest
}

// Need is what one workload asks of the profile that schedules its pods. The zero
// Need asks for nothing.
type Need struct {
	wishes []Wish // sorted, no two equal
}

// NewNeed returns the need with the wishes.
func NewNeed(wishes ...Wish) Need {
	out := slices.Clone(wishes)
	slices.SortFunc(out, Wish.compare)
	return Need{wishes: slices.CompactFunc(out, func(a, b Wish) bool { return a.compare(b) == 0 })}
}

// Merge returns the need of a workload that has all of the needs. It is
// associative, commutative and idempotent, so that the order of policies cannot
// matter. What the needs contradict each other in Conflicts tells.
func Merge(needs ...Need) Need {
	var all []Wish
	for _, n := range needs {
		all = append(all, n.wishes...)
	}
	return NewNeed(all...)
}

// Empty reports whether nothing is asked for, so that no profile is needed.
func (n Need) Empty() bool { return len(n.wishes) == 0 }

// Wishes returns what is asked for, in a fixed order.
func (n Need) Wishes() []Wish { return slices.Clone(n.wishes) }

// Origins returns who asks for anything, sorted.
func (n Need) Origins() []Origin {
	var out []Origin
	for _, w := range n.wishes {
		out = append(out, w.Origin)
	}
	slices.SortFunc(out, Origin.compare)
	return slices.Compact(out)
}

// Relocated returns the need with other ranges for those who ask.
func (n Need) Relocated(at func(diag.Range) diag.Range) Need {
	wishes := n.Wishes()
	for i := range wishes {
		wishes[i].Origin.Range = at(wishes[i].Origin.Range)
	}
	return NewNeed(wishes...)
}

// Features returns what a profile for the need is named after, sorted.
func (n Need) Features() []string {
	var out []string
	for _, w := range n.wishes {
		out = append(out, w.Feature)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (n Need) settings() []setting {
	var out []setting
	for _, w := range n.wishes {
		out = append(out, w.settings...)
	}
	return out
}

// Conflict is one thing that two lines of policies ask for in different ways.
type Conflict struct {
	// Subject is what they disagree about, for a sentence: `the weight of plugin
	// "NodeAffinity"`.
	Subject string
	// Values are the two values, as JSON, and Origins who asks for each.
	Values  [2]string
	Origins [2]Origin
}

// Conflicts returns what the need contradicts itself in, in a fixed order: for
// each thing that has two values, the first two.
func (n Need) Conflicts() []Conflict {
	claims := map[string][]claim{}
	for _, w := range n.wishes {
		for _, s := range w.settings {
			path := s.key()
			claims[path] = append(claims[path], claim{s, w.Origin})
		}
	}
	paths := slices.Sorted(maps.Keys(claims))
	var out []Conflict
	for i, path := range paths {
		slices.SortFunc(claims[path], claim.compare)
		for _, c := range claims[path] {
			if first := claims[path][0]; c.text() != first.text() {
				out = append(out, conflict(first, c))
				break
			}
		}
		// What is a value here is no map there.
		if i > 0 && strings.HasPrefix(path, paths[i-1]+separator) {
			out = append(out, conflict(claims[paths[i-1]][0], claims[path][0]))
		}
	}
	return out
}

// claim is a setting with who asks for it.
type claim struct {
	setting
	origin Origin
}

func (c claim) compare(o claim) int {
	return cmp.Or(c.origin.compare(o.origin), cmp.Compare(c.text(), o.text()))
}

func conflict(a, b claim) Conflict {
	return Conflict{Subject: a.where(), Values: [2]string{a.json(), b.json()}, Origins: [2]Origin{a.origin, b.origin}}
}
