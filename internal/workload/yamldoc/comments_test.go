package yamldoc_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-sched/kubectl-sched/internal/workload/yamldoc"
)

func TestComments(t *testing.T) {
	t.Parallel()
	const text = `# above
kind: A # beside
plain: a#b # c
quoted: "x # y" # ü
single: 'it''s # not'
# two
	# lines

block: |
  # text
  more
folded: >-
  # text too
# below
flow: {a: 1, # in a map
  b: 2}
long: a
  b # after two lines
# the last
---
# next document
b: 1
`
	type comment struct {
		Text        string
		Line, Below int
	}
	var got []comment
	for _, d := range yamldoc.Split([]byte(text)) {
		for _, c := range d.Comments() {
			got = append(got, comment{text[c.Start:c.End], c.Line, c.Below})
		}
	}
	want := []comment{
		{"# above", 1, 2},
		{"# beside", 2, 2},
		{"# c", 3, 3},
		{"# ü", 4, 4},
		{"# two", 6, 9},
		{"# lines", 7, 9},
		{"# below", 14, 15},
		{"# in a map", 15, 15},
		{"# after two lines", 18, 18},
		{"# the last", 19, 0},
		{"# next document", 21, 22},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, d := range yamldoc.Split([]byte("{\"a\": \"# b\"}")) {
		if c := d.Comments(); c != nil {
			t.Errorf("JSON has comments: %v", c)
		}
	}
}

func FuzzComments(f *testing.F) {
	f.Add("a: 1 # b\n# c\n---\nd: |\n  # e\n")
	f.Add("\"a # b\": [c, # d\n e]\r\n# f\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range yamldoc.Split([]byte(text)) {
			for _, c := range d.Comments() {
				if c.Start < d.Start || c.End > d.End || c.End <= c.Start || text[c.Start] != '#' || c.Below != 0 && c.Below < c.Line {
					t.Fatalf("%q: %+v", text, c)
				}
			}
		}
	})
}
