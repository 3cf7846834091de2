package nodeexpr_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/compiler/nodeexpr"
)

func in(key string, values ...string) nodeexpr.Expr {
	return nodeexpr.In(nodeexpr.Label(key), values...)
}

func requirement(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: op, Values: values}
}

func termOf(rs ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: rs}
}

func TestMergeIsLiteral(t *testing.T) {
	t.Parallel()
	or := func(es ...nodeexpr.Expr) nodeexpr.Expr { return nodeexpr.Or(es...) }
	tests := []struct {
		name     string
		own      []corev1.NodeSelectorTerm
		selector map[string]string
		exprs    []nodeexpr.Expr
		want     []corev1.NodeSelectorTerm
	}{
		{
			name: "nothing is asked", own: []corev1.NodeSelectorTerm{termOf(requirement("a", "Exists"))},
			want: []corev1.NodeSelectorTerm{termOf(requirement("a", "Exists"))},
		},
		{
			name: "what is wider than another is not added", exprs: []nodeexpr.Expr{in("a", "1", "2"), in("a", "1"), nodeexpr.Exists(nodeexpr.Label("a"))},
			want: []corev1.NodeSelectorTerm{termOf(requirement("a", "In", "1"))},
		},
		{
			name: "nothing is intersected", exprs: []nodeexpr.Expr{in("a", "1", "2"), in("a", "2", "3")},
			want: []corev1.NodeSelectorTerm{termOf(requirement("a", "In", "1", "2"), requirement("a", "In", "2", "3"))},
		},
		{
			name:  "each term of the manifest keeps its words",
			own:   []corev1.NodeSelectorTerm{termOf(requirement("z", "In", "b", "a"), requirement("a", "Exists")), termOf(requirement("a", "In", "1"))},
			exprs: []nodeexpr.Expr{in("a", "1", "2")},
			want: []corev1.NodeSelectorTerm{
				termOf(requirement("z", "In", "b", "a"), requirement("a", "Exists"), requirement("a", "In", "1", "2")), termOf(requirement("a", "In", "1")),
			},
		},
		{
			name: "the nodeSelector says it", selector: map[string]string{"a": "1"}, exprs: []nodeexpr.Expr{in("a", "1", "2"), or(in("a", "1"), in("b", "1"))},
		},
		{
			name: "a choice takes the term once for each alternative", own: []corev1.NodeSelectorTerm{termOf(requirement("x", "Exists"))},
			exprs: []nodeexpr.Expr{or(in("b", "1"), in("a", "1")), in("c", "1")},
			want: []corev1.NodeSelectorTerm{
				termOf(requirement("x", "Exists"), requirement("c", "In", "1"), requirement("a", "In", "1")),
				termOf(requirement("x", "Exists"), requirement("c", "In", "1"), requirement("b", "In", "1")),
			},
		},
		{
			name:  "a wider choice is met by a narrower one",
			exprs: []nodeexpr.Expr{or(in("a", "1"), in("b", "1"), in("c", "1")), or(in("a", "1"), in("b", "1"))},
			want:  []corev1.NodeSelectorTerm{termOf(requirement("a", "In", "1")), termOf(requirement("b", "In", "1"))},
		},
		{
			name: "an empty term of the manifest holds for no node and stays", own: []corev1.NodeSelectorTerm{{}, termOf(requirement("x", "Exists"))},
			exprs: []nodeexpr.Expr{in("a", "1")},
			want:  []corev1.NodeSelectorTerm{{}, termOf(requirement("x", "Exists"), requirement("a", "In", "1"))},
		},
		{
			name: "a node by its name", exprs: []nodeexpr.Expr{nodeexpr.In(nodeexpr.NodeName, "n2", "n1")},
			want: []corev1.NodeSelectorTerm{
				{MatchFields: []corev1.NodeSelectorRequirement{requirement("metadata.name", "In", "n1")}},
				{MatchFields: []corev1.NodeSelectorRequirement{requirement("metadata.name", "In", "n2")}},
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := nodeexpr.NewTable(test.exprs).Merge(test.own, test.selector, limit)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("terms differ (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMergeMeansAll holds the merged terms against the meaning of the
// expressions, by the scheduler's own judgement, and checks that neither merging
// again nor the order of the expressions matters.
func TestMergeMeansAll(t *testing.T) {
	t.Parallel()
	nodes := world()
	rapid.Check(t, func(t *rapid.T) {
		var own []corev1.NodeSelectorTerm
		manifest, ownMeans := expr(t, 2, false)
		hasOwn := rapid.Bool().Draw(t, "own")
		if hasOwn {
			if own = manifest.Terms(); own == nil {
				t.Skip("the manifest says nothing")
			}
		}
		var exprs []nodeexpr.Expr
		var means []func(*corev1.Node) bool
		for range rapid.IntRange(0, 3).Draw(t, "expressions") {
			e, m := expr(t, 2, false)
			if e.IsFalse() {
				t.Skip("no node can be meant")
			}
			exprs, means = append(exprs, e), append(means, m)
		}
		got, err := nodeexpr.NewTable(exprs).Merge(own, nil, 256)
		if err != nil {
			t.Skip(err)
		}
		pods := &corev1.Affinity{}
		if got != nil {
			pods.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: got}}
		}
		judge := nodeaffinity.NewRequiredNodeAffinity(nil, pods)
		for _, n := range nodes {
			want := !hasOwn || ownMeans(n)
			for _, m := range means {
				want = want && m(n)
			}
			if ok, err := judge.Match(n); err != nil || ok != want {
				t.Fatalf("%v in %v: %s %v is allowed: %v (%v), want %v", exprs, got, n.Name, n.Labels, ok, err, want)
			}
		}
		again, err := nodeexpr.NewTable(exprs).Merge(got, nil, 256)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got, again); diff != "" {
			t.Fatalf("merging again changes the terms:\n%s", diff)
		}
		slices.Reverse(exprs)
		other, err := nodeexpr.NewTable(exprs).Merge(own, nil, 256)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got, other); diff != "" {
			t.Fatalf("the order of the expressions shows:\n%s", diff)
		}
	})
}
