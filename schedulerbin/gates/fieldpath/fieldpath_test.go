package fieldpath_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/condition"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/fieldpath"
)

// step draws one step of a path.
var step = rapid.Custom(func(t *rapid.T) string {
	return rapid.OneOf(
		rapid.StringMatching(`\.[A-Za-z_.\-*0-9]{1,6}`),
		rapid.StringMatching(`\['(\\\.|[-a-z0-9_./']){1,6}'\]`),
		rapid.StringMatching(`\[[0-9:,*\-]{1,3}\]`),
		rapid.StringMatching(`\[\?\(@\.[a-z]{1,4}==?"[-a-zA-Z ./"]{0,6}"\)\]`),
	).Draw(t, "step")
})

// Whatever path a condition may have, it compiles; and the simple ones find what
// they say.
func TestEveryPathCompiles(t *testing.T) {
	t.Parallel()
	allowed := 0
	rapid.Check(t, func(t *rapid.T) {
		path := "{" + strings.Join(rapid.SliceOfN(step, 1, 4).Draw(t, "steps"), "") + "}"
		c := condition.Condition{Object: &condition.Object{APIVersion: "v1", Kind: "Service", Name: "x", Path: path}}
		if len(c.Validate()) > 0 {
			return
		}
		allowed++
		compiled, err := fieldpath.Compile(path)
		if err != nil {
			t.Fatalf("a condition may have it, and it does not compile: %v", err)
		}
		if _, err := compiled.FindResults(map[string]any{}); err != nil && !strings.Contains(err.Error(), "is not") {
			t.Fatalf("%s fails on an empty object: %v", path, err)
		}
	})
	if allowed == 0 {
		t.Error("no path was allowed")
	}
}

func TestFinds(t *testing.T) {
	t.Parallel()
	object := map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"a.b/c": "yes"}},
		"status": map[string]any{
			"phase":      "Bound",
			"conditions": []any{map[string]any{"type": "Other", "status": "False"}, map[string]any{"type": "Ready", "status": "True"}},
		},
	}
	for path, want := range map[string]string{
		"{.status.phase}":                                   "Bound",
		"{.metadata.labels['a\\.b/c']}":                     "yes",
		"{.status.conditions[0].status}":                    "False",
		`{.status.conditions[?(@.type=="Ready")].status}`:   "True",
		`{.status.conditions[?(@.type=="Unknown")].status}`: "",
		"{.status.nothing}":                                 "",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			c := condition.Condition{Object: &condition.Object{APIVersion: "v1", Kind: "Service", Name: "x", Path: path}}
			if found := c.Validate(); len(found) > 0 {
				t.Fatal(found)
			}
			compiled, err := fieldpath.Compile(path)
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if err := compiled.Execute(&b, object); err != nil {
				t.Fatal(err)
			}
			if got := b.String(); got != want {
				t.Errorf("found %q, want %q", got, want)
			}
		})
	}
}

func ExampleCompile() {
	path, err := fieldpath.Compile("{.status.phase}")
	if err != nil {
		fmt.Println(err)
		return
	}
	var b bytes.Buffer
	_ = path.Execute(&b, map[string]any{"status": map[string]any{"phase": "Bound"}})
	fmt.Println(b.String())
	// Output: Bound
}
