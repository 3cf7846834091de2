package profile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/compiler/profile"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
)

// at is the line of a policy.
func at(policy string, line int) profile.Origin {
	return profile.Origin{Policy: policy, Range: diag.At(diag.Pos{File: policy + ".cue", Line: line, Column: 2})}
}

func plugin(t testing.TB, name string, said map[string]any, o profile.Origin) profile.Wish {
	t.Helper()
	w, err := profile.Plugin(name, said, "a reason", o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// wishes draws wishes of every kind, some of which contradict each other.
func wishes(t *rapid.T) []profile.Wish {
	wish := rapid.Custom(func(t *rapid.T) profile.Wish {
		o := at(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "policy"), rapid.IntRange(1, 3).Draw(t, "line"))
		resources := rapid.SampledFrom([]map[string]int{nil, {"cpu": 1}, {"cpu": 2}, {"cpu": 1, "memory": 1}, {"nvidia.com/gpu": 3}}).Draw(t, "resources")
		timeout := rapid.SampledFrom([]map[string]any{nil, {"timeout": "2m"}, {"timeout": "5m"}, {"onPartial": "evict"}}).Draw(t, "gang")
		gang, err := profile.Plugin(args.Gang, timeout, "gangs", o)
		if err != nil {
			t.Fatal(err)
		}
		return rapid.SampledFrom([]profile.Wish{
			profile.Pack(resources, rapid.SampledFrom([]int{0, 80}).Draw(t, "upTo"), "packs", o),
			profile.Balance(resources, "balances", o),
			gang,
			profile.MustWin(rapid.SampledFrom([]profile.Score{profile.NodeScore, profile.SpreadScore, profile.PodScore}).Draw(t, "score"), "wins", o),
			profile.Fragment(map[string]any{"percentageOfNodesToScore": 100.0}, "raw", o),
			profile.Fragment(map[string]any{"pluginConfig": []any{map[string]any{"name": "NodeResourcesFit", "args": map[string]any{"ignoredResources": []any{"example.com/x"}}}}}, "raw", o),
		}).Draw(t, "wish")
	})
	return rapid.SliceOfN(wish, 0, 6).Draw(t, "wishes")
}

// outcome is everything that a need comes to.
func outcome(t testing.TB, n profile.Need) string {
	t.Helper()
	text, err := profile.Configuration([]profile.Profile{profile.Of(n)})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(profile.Of(n).Name, n.Conflicts(), n.Origins(), n.Features(), "\n", string(text))
}

// TestMerge holds that the order in which policies are read cannot matter, nor how
// often one is.
func TestMerge(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		a, b, c := profile.NewNeed(wishes(r)...), profile.NewNeed(wishes(r)...), profile.NewNeed(wishes(r)...)
		whole := outcome(t, profile.Merge(a, b, c))
		for name, other := range map[string]profile.Need{
			"commutative": profile.Merge(c, b, a),
			"associative": profile.Merge(profile.Merge(a, b), c),
			"idempotent":  profile.Merge(a, profile.Merge(b, c, a), b),
			"at once":     profile.NewNeed(slices.Concat(b.Wishes(), c.Wishes(), a.Wishes())...),
		} {
			if got := outcome(t, other); got != whole {
				r.Fatalf("%s: %s", name, cmp.Diff(whole, got))
			}
		}
	})
}

// TestConflictsAreReal holds that a need has a conflict exactly where two wishes say
// something different of one thing: each pair of wishes of a need without conflicts
// has none, and a conflict of the whole is one of some pair.
func TestConflictsAreReal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		all := wishes(r)
		pairs := false
		for i := range all {
			for j := range all[:i] {
				pairs = pairs || len(profile.NewNeed(all[i], all[j]).Conflicts()) > 0
			}
		}
		if whole := len(profile.NewNeed(all...).Conflicts()) > 0; whole != pairs {
			r.Fatalf("the whole has conflicts: %v, some pair: %v", whole, pairs)
		}
	})
}

// TestNames holds that profiles share a name exactly if they are the same, and that
// who asks does not matter.
func TestNames(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		a, b := profile.NewNeed(wishes(r)...), profile.NewNeed(wishes(r)...)
		if a.Empty() || b.Empty() || len(a.Conflicts())+len(b.Conflicts()) > 0 {
			return
		}
		p, q := profile.Of(a), profile.Of(b)
		if same := slices.Equal(a.Features(), b.Features()) && bare(t, p) == bare(t, q); same != (p.Name == q.Name) {
			r.Fatalf("%s and %s: the same is %v\n%s\n%s", p.Name, q.Name, same, bare(t, p), bare(t, q))
		}
	})
}

// bare is the profile as it is written, without its name and comments.
func bare(t testing.TB, p profile.Profile) string {
	t.Helper()
	text, err := profile.Configuration([]profile.Profile{p})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		if trimmed := strings.TrimSpace(line); !strings.HasPrefix(trimmed, "#") && !strings.Contains(trimmed, "schedulerName:") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// TestNamesAreStable holds the names that are in people's manifests.
func TestNamesAreStable(t *testing.T) {
	t.Parallel()
	for want, n := range map[string]profile.Need{
		"placement-pack":             profile.NewNeed(profile.Pack(nil, 0, "r", at("a", 1))),
		"placement-balance":          profile.NewNeed(profile.Balance(map[string]int{"cpu": 1, "memory": 1}, "r", at("a", 1))),
		"placement-nodes-win":        profile.NewNeed(profile.MustWin(profile.NodeScore, "r", at("a", 1))),
		"placement-cache-gang-gpu":   profile.NewNeed(plugin(t, args.Gang, nil, at("a", 1)), plugin(t, args.GPUMemory, nil, at("b", 1)), plugin(t, args.CacheLocality, nil, at("c", 1))),
		"placement-gang":             profile.NewNeed(plugin(t, args.Gang, map[string]any{"timeout": "300s"}, at("a", 1))),
		"placement-gang-1567ab":      profile.NewNeed(plugin(t, args.Gang, map[string]any{"timeout": "2m"}, at("a", 1))),
		"placement-pack-spread-wins": profile.NewNeed(profile.MustWin(profile.SpreadScore, "r", at("a", 1)), profile.Pack(nil, 0, "r", at("b", 1))),
	} {
		if got := profile.Of(n).Name; got != want {
			t.Errorf("the name is %q, want %q", got, want)
		}
	}
}

// TestEmittedIsClean holds that nothing is wrong with any configuration that comes
// of a need without conflicts.
func TestEmittedIsClean(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		var profiles []profile.Profile
		for range 3 {
			n := profile.NewNeed(wishes(r)...)
			if !n.Empty() && len(n.Conflicts()) == 0 {
				profiles = append(profiles, profile.Of(n))
			}
		}
		text, err := profile.Configuration(profiles)
		if err != nil {
			r.Fatal(err)
		}
		if findings := profile.Check("c.yaml", text); len(findings) > 0 && len(profiles) > 0 {
			r.Fatalf("%s\n%s", findings.Error(), text)
		}
		if !profile.IsOurs(text) {
			r.Fatal("it is not known as ours")
		}
	})
}

// TestWinners holds the arithmetic: whatever the scores are, a node that a winner
// gives one point more has the higher total, if the winners do not disagree.
func TestWinners(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		n := profile.NewNeed(append(wishes(r), profile.MustWin(profile.NodeScore, "wins", at("a", 1)))...)
		if len(n.Conflicts()) > 0 {
			return
		}
		p := profile.Of(n)
		winners := p.Winners()
		point := rapid.IntRange(0, 99).Draw(r, "point")
		var better, worse int64
		for name, weight := range p.Weights() {
			if slices.Contains(winners, name) {
				better, worse = better+weight*int64(point+1), worse+weight*int64(point)
				continue
			}
			better += weight * int64(rapid.IntRange(0, 100).Draw(r, name))
			worse += weight * 100
		}
		if better <= worse {
			r.Fatalf("%s: %d is not above %d", p, better, worse)
		}
	})
}

// TestUnknownArguments holds that a wish for arguments that do not exist is refused.
func TestUnknownArguments(t *testing.T) {
	t.Parallel()
	_, err := profile.Plugin(args.Gang, map[string]any{"timeuot": "2m"}, "r", at("a", 1))
	if err == nil || !strings.Contains(err.Error(), `did you mean "timeout"?`) {
		t.Errorf("the error is %v", err)
	}
	if _, err := profile.Plugin("Gangg", nil, "r", at("a", 1)); err == nil {
		t.Error("a plugin that does not exist is taken")
	}
}
