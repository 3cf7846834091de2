package apply

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubectlapply "k8s.io/kubectl/pkg/cmd/apply"
)

func TestSetNames(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		set   Set
		label string
		bad   string
	}{
		{set: Set{"shop", DefaultNamespace}, label: "shop"},
		{set: Set{"shop", "team-a"}, label: "shop.team-a"},
		{set: Set{"", "team-a"}, bad: "needs a name"},
		{set: Set{"Shop", "team-a"}, bad: `set name "Shop"`},
		{set: Set{"shop", "Team"}, bad: `namespace of set "shop"`},
		{set: Set{strings.Repeat("s", 40), strings.Repeat("n", 40)}, bad: "take a shorter name"},
	} {
		err := test.set.Validate()
		switch {
		case test.bad == "" && err != nil:
			t.Errorf("%+v: %v", test.set, err)
		case test.bad != "" && (err == nil || !strings.Contains(err.Error(), test.bad)):
			t.Errorf("%+v: error is %v, want it to say %q", test.set, err, test.bad)
		case test.bad != "":
		case test.set.Label() != test.label || setOfLabel(test.label) != test.set:
			t.Errorf("%+v: label is %q, and back %+v", test.set, test.set.Label(), setOfLabel(test.label))
		}
	}
}

// TestApplySetID holds our identity of a set against kubectl's own computation.
func TestApplySetID(t *testing.T) {
	t.Parallel()
	set := Set{"shop", "team-a"}
	parent := &kubectlapply.ApplySetParentRef{Name: set.parentName(), Namespace: set.Namespace, RESTMapping: &meta.RESTMapping{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Scope: meta.RESTScopeNamespace,
	}}
	want := kubectlapply.NewApplySet(parent, kubectlapply.ApplySetTooling{Name: FieldManager, Version: "v1"}, nil, nil).ID()
	if got := set.ApplySetID(); got != want {
		t.Errorf("ID is %s, kubectl has %s", got, want)
	}
}

func TestScopeFits(t *testing.T) {
	t.Parallel()
	set := Set{"shop", DefaultNamespace}
	recorded := Scope{Folders: []string{"a", "b"}, Namespaces: []string{"one", "two"}}
	for name, test := range map[string]struct {
		run    Scope
		change bool
		prune  bool
		rule   string
	}{
		"same":                 {run: recorded, prune: true},
		"fewer-namespaces":     {run: Scope{Folders: recorded.Folders, Namespaces: []string{"one"}}, rule: "apply/not-pruned"},
		"more-namespaces":      {run: Scope{Folders: recorded.Folders, Namespaces: []string{"one", "three", "two"}}, rule: "apply/other-scope"},
		"other-namespaces":     {run: Scope{Folders: recorded.Folders, Namespaces: []string{"three"}}, rule: "apply/other-scope"},
		"all-namespaces":       {run: Scope{Folders: recorded.Folders}, rule: "apply/other-scope"},
		"fewer-folders":        {run: Scope{Folders: []string{"a"}, Namespaces: recorded.Namespaces}, rule: "apply/other-scope"},
		"widened":              {run: Scope{Folders: recorded.Folders}, change: true, prune: true},
		"other-folder-changed": {run: Scope{Folders: []string{"c"}}, change: true, prune: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prune, findings := test.run.fit(set, recorded, test.change)
			rule := ""
			if len(findings) > 0 {
				rule = findings[0].Rule
			}
			if prune != test.prune || rule != test.rule {
				t.Errorf("prune %v with %q, want %v with %q", prune, rule, test.prune, test.rule)
			}
		})
	}
}
