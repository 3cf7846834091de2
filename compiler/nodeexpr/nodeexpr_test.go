package nodeexpr_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/compiler/nodeexpr"
)

const limit = 512

// world is every node that differs in what the drawn expressions speak of.
func world() []*corev1.Node {
	var out []*corev1.Node
	for _, name := range []string{"n1", "n2", "n3"} {
		for _, a := range []string{"-", "x", "y", "z", ""} {
			// 01 is a number too: with it, "not 1, above 0, below 2" has a node.
			for _, b := range []string{"-", "-1", "0", "1", "01", "2", "3", "x"} {
				n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
				if a != "-" {
					n.Labels["a"] = a
				}
				if b != "-" {
					n.Labels["b"] = b
				}
				out = append(out, n)
			}
		}
	}
	return out
}

// expr draws an expression together with its meaning.
func expr(t *rapid.T, depth int, exact bool) (nodeexpr.Expr, func(*corev1.Node) bool) {
	kinds := 6
	if depth > 0 {
		kinds = 9
	}
	label := func(k string) func(*corev1.Node) (string, bool) {
		return func(n *corev1.Node) (string, bool) { v, ok := n.Labels[k]; return v, ok }
	}
	get := label("a")
	values := rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y", ""}), 1, 3).Draw(t, "values")
	bound := int64(rapid.IntRange(0, 2).Draw(t, "bound"))
	kind := rapid.IntRange(0, kinds-1).Draw(t, "kind")
	if exact && kind == 4 {
		kind = 5
	}
	switch kind {
	case 0:
		return nodeexpr.In(nodeexpr.Label("a"), values...), func(n *corev1.Node) bool { v, ok := get(n); return ok && slices.Contains(values, v) }
	case 1:
		return nodeexpr.NotIn(nodeexpr.Label("a"), values...), func(n *corev1.Node) bool { v, ok := get(n); return !ok || !slices.Contains(values, v) }
	case 2:
		return nodeexpr.Exists(nodeexpr.Label("b")), func(n *corev1.Node) bool { _, ok := label("b")(n); return ok }
	case 3:
		return nodeexpr.In(nodeexpr.NodeName, "n1", "n2"), func(n *corev1.Node) bool { return n.Name != "n3" }
	case 4:
		number := func(n *corev1.Node) (int64, bool) {
			var v int64
			s, ok := label("b")(n)
			_, err := fmt.Sscanf(s, "%d", &v)
			return v, ok && err == nil
		}
		if rapid.Bool().Draw(t, "greater") {
			return nodeexpr.Greater(nodeexpr.Label("b"), bound), func(n *corev1.Node) bool { v, ok := number(n); return ok && v > bound }
		}
		return nodeexpr.Less(nodeexpr.Label("b"), bound), func(n *corev1.Node) bool { v, ok := number(n); return ok && v < bound }
	case 5:
		return nodeexpr.In(nodeexpr.Label("b"), "1", "x"), func(n *corev1.Node) bool { v := n.Labels["b"]; return v == "1" || v == "x" }
	case 6:
		e, m := expr(t, depth-1, true)
		not, err := nodeexpr.Not(limit, e)
		if err != nil {
			t.Skip(err)
		}
		return not, func(n *corev1.Node) bool { return !m(n) }
	}
	a, ma := expr(t, depth-1, exact)
	b, mb := expr(t, depth-1, exact)
	if kind == 7 {
		return nodeexpr.Or(a, b), func(n *corev1.Node) bool { return ma(n) || mb(n) }
	}
	and, err := nodeexpr.And(limit, a, b)
	if err != nil {
		t.Skip(err)
	}
	return and, func(n *corev1.Node) bool { return ma(n) && mb(n) }
}

// TestMeaning checks that expressions mean what they are made of: by Matches,
// by the scheduler's reading of their terms, and read back from these.
func TestMeaning(t *testing.T) {
	t.Parallel()
	nodes := world()
	rapid.Check(t, func(t *rapid.T) {
		e, means := expr(t, 3, false)
		terms := e.Terms()
		selector := &corev1.NodeSelector{NodeSelectorTerms: terms}
		judge, err := nodeaffinity.NewNodeSelector(selector)
		if err != nil {
			t.Fatalf("the scheduler cannot read %v: %v", terms, err)
		}
		back, err := nodeexpr.FromSelector(selector)
		if err != nil {
			t.Fatal(err)
		}
		holds := 0
		for _, n := range nodes {
			want := means(n)
			if want {
				holds++
			}
			if got := e.Matches(n.Labels, n.Name); got != want {
				t.Fatalf("%q on %s %v: Matches is %v", e, n.Name, n.Labels, got)
			}
			if e.IsTrue() {
				continue
			}
			if got := judge.Match(n); got != want {
				t.Fatalf("%q on %s %v: the scheduler says %v", e, n.Name, n.Labels, got)
			}
			if got := back.Matches(n.Labels, n.Name); got != want {
				t.Fatalf("%q reads back as %q", e, back)
			}
		}
		if e.IsFalse() != (holds == 0) || e.IsTrue() && holds != len(nodes) {
			t.Fatalf("%q holds for %d of %d nodes, but IsFalse is %v and IsTrue is %v", e, holds, len(nodes), e.IsFalse(), e.IsTrue())
		}
	})
}

// TestImplies checks implication, which must be exact where no numbers are
// compared.
func TestImplies(t *testing.T) {
	t.Parallel()
	nodes := world()
	rapid.Check(t, func(t *rapid.T) {
		a, _ := expr(t, 2, true)
		b, _ := expr(t, 2, true)
		want := !slices.ContainsFunc(nodes, func(n *corev1.Node) bool {
			return a.Matches(n.Labels, n.Name) && !b.Matches(n.Labels, n.Name)
		})
		if got := nodeexpr.Implies(a, b); got != want {
			t.Fatalf("%q implies %q: %v, want %v", a, b, got, want)
		}
	})
}

// TestDisjoint checks that exactly one term holds wherever the expression does.
func TestDisjoint(t *testing.T) {
	t.Parallel()
	nodes := world()
	rapid.Check(t, func(t *rapid.T) {
		e, means := expr(t, 3, true)
		d, err := nodeexpr.Disjoint(limit, e)
		if err != nil {
			t.Skip(err)
		}
		for _, n := range nodes {
			count := 0
			for _, term := range d.Split() {
				if term.Matches(n.Labels, n.Name) {
					count++
				}
			}
			if want := means(n); count > 1 || (count == 1) != want {
				t.Fatalf("%q as %q: %d terms hold on %s %v, want %v", e, d, count, n.Name, n.Labels, want)
			}
		}
	})
}

func TestString(t *testing.T) {
	t.Parallel()
	key := nodeexpr.Label("k")
	for _, test := range []struct {
		expr func() (nodeexpr.Expr, error)
		want string
	}{
		{func() (nodeexpr.Expr, error) { return nodeexpr.True(), nil }, "any node"},
		{func() (nodeexpr.Expr, error) { return nodeexpr.False(), nil }, "no node"},
		{func() (nodeexpr.Expr, error) { return nodeexpr.In(key, "b", "a", "b"), nil }, "k in (a, b)"},
		{func() (nodeexpr.Expr, error) { return nodeexpr.Not(limit, nodeexpr.Exists(key)) }, "no k"},
		{func() (nodeexpr.Expr, error) { return nodeexpr.Or(nodeexpr.In(key, "a"), nodeexpr.In(key, "b")), nil }, "k in (a, b)"},
		{func() (nodeexpr.Expr, error) { return nodeexpr.Or(nodeexpr.In(key, "a"), nodeexpr.Exists(key)), nil }, "k is there"},
		{func() (nodeexpr.Expr, error) {
			return nodeexpr.And(limit, nodeexpr.Exists(key), nodeexpr.NotIn(key, "a"))
		}, "k is there and k not in (a)"},
		{func() (nodeexpr.Expr, error) {
			return nodeexpr.And(limit, nodeexpr.Greater(key, 1), nodeexpr.Greater(key, 3), nodeexpr.NotIn(key, "2", "5"))
		}, "k not in (5) and k > 3"},
		{func() (nodeexpr.Expr, error) {
			return nodeexpr.And(limit, nodeexpr.Greater(key, 1), nodeexpr.Less(key, 2))
		}, "no node"},
		{func() (nodeexpr.Expr, error) {
			return nodeexpr.And(limit, nodeexpr.In(key, "1", "5", "x"), nodeexpr.Less(key, 2))
		}, "k = 1"},
		{func() (nodeexpr.Expr, error) {
			return nodeexpr.And(limit, nodeexpr.In(nodeexpr.NodeName, "n"), nodeexpr.NotIn(nodeexpr.NodeName, "n"))
		}, "no node"},
	} {
		got, err := test.expr()
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	_, err := nodeexpr.Not(limit, nodeexpr.Greater(nodeexpr.Label("cores"), 8))
	var inexact *nodeexpr.InexactError
	if !errors.As(err, &inexact) || inexact.Operator != "Gt" || inexact.Bound != 8 || inexact.Key.Name != "cores" {
		t.Errorf("not cores > 8: %v", err)
	}
	many := make([]nodeexpr.Expr, 8)
	for i := range many {
		many[i] = nodeexpr.Or(nodeexpr.Exists(nodeexpr.Label(fmt.Sprint("a", i))), nodeexpr.Exists(nodeexpr.Label(fmt.Sprint("b", i))))
	}
	if _, err := nodeexpr.And(64, many...); !errors.Is(err, nodeexpr.ErrTooMany) {
		t.Errorf("256 terms: %v", err)
	}
	for _, r := range []corev1.NodeSelectorRequirement{
		{Key: "k", Operator: "Near"},
		{Key: "k", Operator: corev1.NodeSelectorOpIn},
		{Key: "k", Operator: corev1.NodeSelectorOpExists, Values: []string{"x"}},
		{Key: "k", Operator: corev1.NodeSelectorOpGt, Values: []string{"many"}},
		{Key: "k", Operator: corev1.NodeSelectorOpGt},
	} {
		if e, err := nodeexpr.FromTerm(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{r}}); err == nil {
			t.Errorf("%v reads as %q", r, e)
		}
	}
	for _, r := range []corev1.NodeSelectorRequirement{
		{Key: "metadata.uid", Operator: corev1.NodeSelectorOpIn, Values: []string{"x"}},
		{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"x", "y"}},
		{Key: "metadata.name", Operator: corev1.NodeSelectorOpExists},
	} {
		if e, err := nodeexpr.FromTerm(corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{r}}); err == nil {
			t.Errorf("field %v reads as %q", r, e)
		}
	}
}
