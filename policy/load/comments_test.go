package load_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

func TestComments(t *testing.T) {
	t.Parallel()
	const file = `// above the package
package p // beside it

// a policy

// of two comments
policies: web: {
	spread: zone: {} // trailing
	text: "// no comment"
	more: """
		// none either
		"""
	// inside
	apart: node: {} // ü, and more
}
policies: {
	// nested
	"a b": {}
	// the last
}
// nothing below
`
	type comment struct {
		Text        string
		At, Line    int
		Column, End int
		Policy      string
		Last        int
	}
	var got []comment
	for _, c := range load.Comments("f.cue", []byte(file)) {
		got = append(got, comment{c.Text, c.Range.Start.Line, c.Line, c.Range.Start.Column, c.Range.End.Column, c.Policy, c.Last})
	}
	want := []comment{
		{" above the package", 1, 2, 1, 21, "", 0},
		{" beside it", 2, 2, 11, 23, "", 0},
		{" a policy", 4, 7, 1, 12, "web", 15},
		{" of two comments", 6, 7, 1, 19, "web", 15},
		{" trailing", 8, 8, 19, 30, "", 0},
		{" inside", 13, 14, 2, 11, "", 0},
		{" ü, and more", 14, 14, 18, 33, "", 0},
		{" nested", 17, 18, 2, 11, "a b", 18},
		{" the last", 19, 20, 2, 13, "", 0},
		{" nothing below", 21, 0, 1, 17, "", 0},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := load.Comments("f.cue", []byte("// x\na: {")); got != nil {
		t.Errorf("a broken file has comments: %v", got)
	}
}
