package cli

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

func TestCollapse(t *testing.T) {
	t.Parallel()
	web := &workload.Workload{Kind: "Deployment", Name: "web"}
	plan := func(cluster string, policies ...string) *compiler.Plan {
		return &compiler.Plan{Cluster: cluster, Changes: []compiler.Change{{Workload: web, Policies: policies}}}
	}
	got := collapse([]clusterPlan{
		{Clusters: []string{"a"}, Plan: plan("a", "p")},
		{Clusters: []string{"b"}, Plan: plan("b", "q")},
		{Clusters: []string{"c"}, Plan: plan("c", "p")},
	})
	var names []string
	for _, c := range got {
		names = append(names, c.Name())
	}
	if diff := cmp.Diff([]string{"a, c", "b"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestUnmatched(t *testing.T) {
	t.Parallel()
	placement := &policy.Placement{
		Clusters: []policy.Cluster{{Name: "a"}, {Name: "b"}},
		Policies: []policy.Policy{{Name: "here"}, {Name: "there"}, {Name: "nowhere"}, {Name: "not-asked"}},
	}
	plans := []clusterPlan{
		{Clusters: []string{"a"}, Plan: &compiler.Plan{Policies: []string{"here", "there", "nowhere"}, Unmatched: []string{"nowhere", "there"}}},
		{Clusters: []string{"b"}, Plan: &compiler.Plan{Policies: []string{"nowhere", "there"}, Unmatched: []string{"nowhere"}}},
	}
	names := func(findings diag.Findings) (names []string) {
		for _, f := range findings {
			names = append(names, f.Policy)
		}
		return names
	}
	if diff := cmp.Diff([]string{"nowhere"}, names(unmatched(placement, plans, extent{}))); diff != "" {
		t.Errorf("over all clusters (-want +got):\n%s", diff)
	}
	if got := names(unmatched(placement, plans[:1], extent{})); got != nil {
		t.Errorf("one cluster of two was judged: %v", got)
	}
}

// TestWithContext holds that another context loses none of kubectl's flags.
func TestWithContext(t *testing.T) {
	t.Parallel()
	config := genericclioptions.NewConfigFlags(true)
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.AddFlags(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		value := "x"
		if f.Value.Type() == "bool" {
			value = "true"
		}
		if err := f.Value.Set(value); err != nil {
			t.Fatal(err)
		}
	})
	other := pflag.NewFlagSet("", pflag.ContinueOnError)
	withContext(config, "elsewhere").AddFlags(other)
	other.VisitAll(func(f *pflag.Flag) {
		want := flags.Lookup(f.Name).Value.String()
		if f.Name == "context" {
			want = "elsewhere"
		}
		if got := f.Value.String(); got != want {
			t.Errorf("--%s is %q, want %q", f.Name, got, want)
		}
	})
}

func TestLintExit(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		findings diag.Findings
		want     int
	}{
		"clean":             {nil, 0},
		"a note":            {diag.Findings{{Rule: "a/b", Severity: diag.Info}}, 0},
		"a warning":         {diag.Findings{{Rule: "a/b", Severity: diag.Warning}}, 1},
		"an error":          {diag.Findings{{Rule: "a/b", Severity: diag.Error}}, 1},
		"an unreadable one": {diag.Findings{{Rule: "a/b", Severity: diag.Error}, {Rule: "input/x", Severity: diag.Error}}, 2},
		"an input warning":  {diag.Findings{{Rule: "input/x", Severity: diag.Warning}}, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newApp(genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard})
			if got := a.exit(&cobra.Command{}, lintExit(test.findings)); got != test.want {
				t.Errorf("exit code %d, want %d", got, test.want)
			}
		})
	}
}

// TestCommandTree holds what every verb owes its user, and that no completion is
// registered for a flag that is not there.
func TestCommandTree(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	root := newRootCommand(newApp(genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: &stderr}))
	if stderr.Len() > 0 {
		t.Errorf("building the commands complains: %s", stderr.String())
	}
	for _, c := range root.Commands() {
		if c.Hidden {
			continue
		}
		if c.Short == "" || c.Long == "" || c.Example == "" || c.GroupID == "" {
			t.Errorf("%s lacks a description, an example or a group", c.Name())
		}
		if strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: %q ends with a full stop", c.Name(), c.Short)
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s has no description", c.Name(), f.Name)
			}
		})
	}
}

func TestParseRef(t *testing.T) {
	t.Parallel()
	web := &workload.Workload{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	for _, args := range [][]string{{"deployment/web"}, {"deploy/web"}, {"Deployment", "web"}, {"deployments.apps/web"}, {"deployments.v1.apps/web"}} {
		ref, err := parseRef(args)
		if err != nil {
			t.Errorf("%v: %v", args, err)
		} else if !ref.matches(web) {
			t.Errorf("%v does not name %s", args, web.Ref())
		}
	}
	for _, args := range [][]string{{"deployment/"}, {"/web"}, {"a/b/c"}} {
		if _, err := parseRef(args); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
	if ref, err := parseRef([]string{"statefulset/web"}); err != nil || ref.matches(web) {
		t.Errorf("a StatefulSet matched %s (%v)", web.Ref(), err)
	}
}
