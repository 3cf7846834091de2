package gates_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/gates"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/condition"
)

var word = rapid.StringMatching(`[a-z]([-a-z0-9]{0,6}[a-z0-9])?`)

// said draws what a policy may say.
var said = rapid.Custom(func(t *rapid.T) policy.Gates {
	is := func(label string) bool { return rapid.Bool().Draw(t, label) }
	var g policy.Gates
	if is("peers") {
		g.Peers = &policy.Peers{Min: rapid.IntRange(1, 9).Draw(t, "min"), Ready: is("ready"), Labels: map[string]policy.Values{}}
		for _, key := range rapid.SliceOfNDistinct(word, 1, 3, rapid.ID).Draw(t, "keys") {
			values := rapid.SliceOfNDistinct(word, 1, 3, rapid.ID).Draw(t, "values")
			if is("any") {
				values = []string{"*"}
			}
			g.Peers.Labels[key] = values
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "objects") {
		o := policy.AwaitedObject{APIVersion: rapid.SampledFrom([]string{"v1", "batch/v1"}).Draw(t, "version"), Kind: "Job", Name: word.Draw(t, "name")}
		if is("path") {
			o.Path = rapid.SampledFrom([]string{"{.status.phase}", `{.status.conditions[?(@.type=="Ready")].status}`}).Draw(t, "where")
			if is("value") {
				o.Value = new(rapid.String().Draw(t, "what"))
			}
		}
		if g.Object == nil {
			g.Object = map[string]policy.AwaitedObject{}
		}
		g.Object[word.Draw(t, "object")] = o
	}
	if is("quota") {
		g.Quota = word.Draw(t, "quotaName")
	}
	g.Approval = is("approval")
	if is("notBefore") {
		g.NotBefore = "2026-11-30T22:00:00+01:00"
	}
	if is("window") {
		g.Window = &policy.Window{Zone: "Europe/Berlin", From: "22:00", To: "06:00"}
		if is("days") {
			g.Window.Days = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"Mon", "Sat", "Sun"}), 1, 3, rapid.ID).Draw(t, "on")
		}
	}
	return g
})

// What is written for a gate decodes, by the controller's own decoder, to what the
// policy said, and no two gates have one name.
func TestDecodesToWhatWasSaid(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := said.Draw(t, "gates")
		got := policy.Gates{}
		var names []string
		for _, gate := range gates.Of("training", &g) {
			name, err := condition.Name(gate.Short)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, name)
			text, err := condition.Encode(&gate.Condition)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			c, err := condition.Of(map[string]string{name: text}, name)
			if err != nil {
				t.Fatal(err)
			}
			understand(t, &got, &g, c, gate.Short)
		}
		if diff := cmp.Diff(asJSON(t, g), asJSON(t, got)); diff != "" {
			t.Fatalf("said and understood (-said +understood):\n%s", diff)
		}
		if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
			t.Fatalf("names are %q", names)
		}
	})
}

// understand adds what the controller reads to what a policy would have to say.
func understand(t *rapid.T, got, g *policy.Gates, c *condition.Condition, short string) {
	switch c.Kind() {
	case condition.KindPeers:
		selector, err := c.Peers.LabelSelector()
		if err != nil {
			t.Fatal(err)
		}
		for _, probe := range probes(g.Peers.Labels) {
			want := true
			for key, values := range g.Peers.Labels {
				have, ok := probe[key]
				want = want && ok && (slices.Contains(values, "*") || slices.Contains(values, have))
			}
			if selector.Matches(labels.Set(probe)) != want {
				t.Fatalf("selector %q on %v, want %v", c.Peers.Selector, probe, want)
			}
		}
		got.Peers = &policy.Peers{Labels: g.Peers.Labels, Min: c.Peers.Min, Ready: c.Peers.Ready}
	case condition.KindObject:
		if got.Object == nil {
			got.Object = map[string]policy.AwaitedObject{}
		}
		got.Object[strings.TrimPrefix(short, "training.object.")] = policy.AwaitedObject(*c.Object)
	case condition.KindQuota:
		got.Quota = c.Quota.Name
	case condition.KindApproval:
		got.Approval = true
	case condition.KindNotBefore:
		got.NotBefore = c.NotBefore
	case condition.KindWindow:
		w := &policy.Window{Zone: c.Window.Zone, From: c.Window.From, To: c.Window.To}
		for _, d := range c.Window.Days {
			w.Days = append(w.Days, string(d))
		}
		got.Window = w
	}
}

// probes are labels that a selector over the labels can tell apart.
func probes(want map[string]policy.Values) []map[string]string {
	all := map[string]string{}
	for key, values := range want {
		all[key] = values[0]
		if values[0] == "*" {
			all[key] = "whatever"
		}
	}
	out := []map[string]string{all, {}}
	for key, values := range want {
		for _, value := range append(slices.Clone(values), "other-value") {
			probe := map[string]string{}
			for k, v := range all {
				probe[k] = v
			}
			if value != "*" {
				probe[key] = value
			}
			out = append(out, probe)
		}
	}
	return out
}

func asJSON(t *rapid.T, v any) string {
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
