package compiler

import (
	"fmt"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// TestJoin holds the joining of spreads to its laws: the order and the grouping
// of policies never matter, and saying a thing twice adds nothing.
func TestJoin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		wish := func(name string) spreadWish {
			return spreadWish{
				key:        "zone",
				require:    rapid.Bool().Draw(t, name+" require"),
				maxSkew:    int32(rapid.IntRange(1, 5).Draw(t, name+" maxSkew")),
				minDomains: int32(rapid.IntRange(0, 5).Draw(t, name+" minDomains")),
				origins:    []Origin{{Policy: name, Range: diag.At(diag.Pos{File: name, Line: rapid.IntRange(1, 3).Draw(t, name+" line")})}},
			}
		}
		a, b, c := wish("a"), wish("b"), wish("c")
		same := func(law string, x, y spreadWish) {
			if !reflect.DeepEqual(x, y) {
				t.Fatalf("%s: %+v is not %+v", law, x, y)
			}
		}
		same("commutative", a.join(b), b.join(a))
		same("associative", a.join(b).join(c), a.join(b.join(c)))
		same("idempotent", a.join(a), a)
		ab := a.join(b)
		if ab.require != (a.require || b.require) || ab.maxSkew > a.maxSkew || ab.maxSkew > b.maxSkew || ab.minDomains < a.minDomains || ab.minDomains < b.minDomains {
			t.Fatalf("the join %+v is weaker than %+v or %+v", ab, a, b)
		}
	})
}

// TestCanonicalSelector checks that selectors are alike exactly if they select
// the same of all labels of a small world.
func TestCanonicalSelector(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) *metav1.LabelSelector {
			out := &metav1.LabelSelector{}
			if rapid.Bool().Draw(t, name+" literal") {
				out.MatchLabels = map[string]string{"a": rapid.SampledFrom([]string{"1", "2"}).Draw(t, name+" value")}
			}
			for range rapid.IntRange(0, 2).Draw(t, name+" expressions") {
				out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{
					Key: rapid.SampledFrom([]string{"a", "b"}).Draw(t, name+" key"), Operator: metav1.LabelSelectorOpIn,
					Values: rapid.SliceOfN(rapid.SampledFrom([]string{"1", "2"}), 1, 2).Draw(t, name+" values"),
				})
			}
			return out
		}
		a, b := draw("a"), draw("b")
		if canonicalSelector(a) != canonicalSelector(b) {
			return
		}
		for i := range 9 {
			l := map[string]string{}
			for j, k := range []string{"a", "b"} {
				if v := i / (1 + 2*j) % 3; v > 0 {
					l[k] = fmt.Sprint(v)
				}
			}
			if selects(a, l) != selects(b, l) {
				t.Fatalf("%v and %v count as the same, but differ on %v", a, b, l)
			}
		}
	})
}
