package load_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

func TestDescribe(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		path []string
		want load.Field // without its Fields
		err  string
	}{
		"a leaf with a default": {
			path: []string{"policies", "spread", "maxSkew"},
			want: load.Field{Path: "policies.NAME.spread.NAME.maxSkew", Doc: "maxSkew is by how many pods domains may differ (default 1).", Type: "a whole number", Default: "1", Allowed: "maxSkew must be a whole number, at least 1"},
		},
		"names may be written out": {
			path: []string{"policies", "web-ha", "spread", "zone", "strength"},
			want: load.Field{Path: "policies.NAME.spread.NAME.strength", Doc: "Strength says whether an intent binds or only counts.", Type: `"require" or "prefer"`, Required: true, Allowed: `strength must be "require" or "prefer"`},
		},
		"a map is documented by what is in it": {
			path: []string{"pools"},
			want: load.Field{Path: "pools", Doc: "Pool is a set of nodes with a name.", Type: "a map of objects"},
		},
		"a field that refers to itself": {
			path: []string{"policies", "workloads", "not", "not", "names"},
			want: load.Field{Path: "policies.NAME.workloads.not.not.names", Type: "a list of strings"},
		},
		"a typo":       {path: []string{"policies", "spraed"}, err: `policies.NAME has no field "spraed"; did you mean "spread"?`},
		"at the top":   {path: []string{"polices"}, err: `the document has no field "polices"; did you mean "policies"?`},
		"below a leaf": {path: []string{"policies", "level", "x"}, err: `policies.NAME.level has no fields, and so no "x"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := load.Describe(test.path...)
			if err != nil || test.err != "" {
				if err == nil || err.Error() != test.err {
					t.Fatalf("error %v, want %q", err, test.err)
				}
				return
			}
			got.Fields = nil
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestDescribeAll holds that every field of the language can be described, and
// leads to fields that can be.
func TestDescribeAll(t *testing.T) {
	t.Parallel()
	seen := 0
	var visit func(f load.Field, path []string)
	visit = func(f load.Field, path []string) {
		seen++
		if f.Type == "" {
			t.Errorf("%s has no type", f.Path)
		}
		if len(path) > 6 { // #Workloads refers to itself
			return
		}
		for _, child := range f.Fields {
			name := child.Path[len(child.Path)-len(lastOf(child.Path)):]
			next := append(append([]string(nil), path...), name)
			got, err := load.Describe(next...)
			if err != nil {
				t.Errorf("%v: %v", next, err)
				continue
			}
			visit(got, next)
		}
	}
	top, err := load.Describe()
	if err != nil {
		t.Fatal(err)
	}
	visit(top, nil)
	if seen < 60 {
		t.Errorf("only %d fields were described", seen)
	}
}

func lastOf(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '.' {
			return path[i+1:]
		}
	}
	return path
}
