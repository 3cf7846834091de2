package compiler_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/guard"
	"github.com/kubectl-sched/kubectl-sched/compiler/profile"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/test/golden"
)

// TestGolden compiles each case of testdata and compares the outcome with the
// file "want" in it; UPDATE=1 writes that file anew.
//
// A case has policy.yaml (a Placement as people would say it in YAML, so that
// every field has a line), manifests.yaml, and cluster.yaml (what is known of
// the cluster).
func TestGolden(t *testing.T) {
	t.Parallel()
	golden.Run(t, func(t *testing.T, input *txtar.Archive) []txtar.File {
		plan, findings := compiler.Compile(requestOf(t, input))
		checkPlan(t, plan)
		return golden.Result("want", describe(t, plan, findings))
	})
}

// checkPlan holds every plan to what must be true of all of them.
func checkPlan(t testing.TB, plan *compiler.Plan) {
	t.Helper()
	check := func(what string, reason string, origins []compiler.Origin) {
		if reason == "" || len(origins) == 0 {
			t.Errorf("%s has reason %q and %d origins", what, reason, len(origins))
		}
		for _, o := range origins {
			if !o.Range.Start.IsValid() {
				t.Errorf("%s has an origin without a position", what)
			}
		}
	}
	for _, c := range plan.Changes {
		for _, e := range c.Effects {
			check(c.Workload.Ref()+" "+e.Field, e.Reason, e.Origins)
			if e.Value == nil || e.Level == "" {
				t.Errorf("%s %s: effect without value or level", c.Workload.Ref(), e.Field)
			}
		}
		before, after := yamlOf(t, c.Workload.Templates[c.Template].Pods), yamlOf(t, c.After)+yamlOf(t, c.After.Raw)
		if changed := before+"null\n" != after; changed != (len(c.Effects) > 0) {
			t.Errorf("%s: changed is %v, with %d effects", c.Workload.Ref(), changed, len(c.Effects))
		}
	}
	for _, o := range plan.Objects {
		check(o.Kind()+" "+o.Object.GetName(), o.Reason, o.Origins)
	}
	for _, n := range plan.Nodes {
		check("pool "+n.Pool, n.Reason, n.Origins)
	}
}

func describe(t testing.TB, plan *compiler.Plan, findings diag.Findings) string {
	t.Helper()
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&b, "%s %s %s\n", f.Severity, f.Rule, f)
		for _, r := range f.Related {
			fmt.Fprintf(&b, "    %s: %s\n", r.Range.Start, r.Message)
		}
		if f.Fix != nil {
			fmt.Fprintf(&b, "    fix: %s\n", f.Fix.Message)
		}
	}
	for _, c := range plan.Changes {
		fmt.Fprintf(&b, "\n== %s", c.Workload.Ref())
		if name := c.Workload.Templates[c.Template].Name; name != "" {
			fmt.Fprintf(&b, " (%s)", name)
		}
		fmt.Fprintf(&b, " by %s\n", strings.Join(c.Policies, ", "))
		for _, e := range c.Effects {
			value, err := json.Marshal(e.Value)
			if err != nil {
				t.Fatal(err)
			}
			level := ""
			if e.Level != compiler.LevelBuiltin {
				level = fmt.Sprintf(" (%s)", e.Level)
			}
			fmt.Fprintf(&b, "+ %s: %s%s\n  %s\n", e.Field, value, level, e.Reason)
			for _, o := range e.Origins {
				fmt.Fprintf(&b, "  %s %s\n", o.Policy, o.Range.Start)
			}
		}
		if len(c.Effects) > 0 {
			b.WriteString(yamlOf(t, c.After))
			if c.After.Raw != nil {
				b.WriteString("raw:\n" + indent(yamlOf(t, c.After.Raw)))
			}
		}
	}
	for _, o := range plan.Objects {
		if pool, ok := o.Object.GetLabels()[guard.Label]; ok {
			// What is in them has its own goldens.
			fmt.Fprintf(&b, "\n== guard of pool %s: %s %s\n", pool, o.Kind(), o.Object.GetName())
			continue
		}
		fmt.Fprintf(&b, "\n== object\n%s", yamlOf(t, o.Object))
	}
	for _, n := range plan.Nodes {
		describeNodes(&b, n)
	}
	describeProfiles(t, &b, plan.Profiles, !findings.HasErrors())
	for _, e := range plan.Exceptions {
		fmt.Fprintf(&b, "\n== exception %s of %s spares %s until %s: %s (%s)\n", e.Exception, e.Policy, e.Workload, e.Expires, e.Reason, e.Range.Start)
	}
	if len(plan.Unmatched) > 0 {
		fmt.Fprintf(&b, "\n== unmatched: %s\n", strings.Join(plan.Unmatched, ", "))
	}
	return b.String()
}

func describeProfiles(t testing.TB, b *strings.Builder, uses []compiler.ProfileUse, clean bool) {
	t.Helper()
	if len(uses) == 0 {
		return
	}
	var profiles []profile.Profile
	for _, u := range uses {
		fmt.Fprintf(b, "\n== profile %s, for %d\n", u.Name, u.Workloads)
		profiles = append(profiles, u.Profile)
	}
	text, err := profile.Configuration(profiles)
	if err != nil {
		t.Fatal(err)
	}
	b.Write(text)
	if findings := profile.Check("scheduler.yaml", text); clean && len(findings) > 0 {
		t.Errorf("the configuration that was emitted is not clean:\n%s", findings.Error())
	}
}

func describeNodes(b *strings.Builder, n compiler.NodeEffect) {
	fmt.Fprintf(b, "\n== pool %s, managed by %s", n.Pool, n.ManagedBy)
	if n.Makers != nil {
		fmt.Fprintf(b, " %s %v", n.Provider, n.Makers)
	}
	b.WriteString(":")
	for _, t := range n.Taints {
		fmt.Fprintf(b, " taint %s", t.ToString())
	}
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		fmt.Fprintf(b, " label %s=%s", key, n.Labels[key])
	}
	for _, r := range n.Requirements {
		fmt.Fprintf(b, " require %s %s %v", r.Key, r.Operator, r.Values)
	}
	fmt.Fprintf(b, ", missing on %v\n", n.Nodes)
}

func yamlOf(t testing.TB, v any) string {
	t.Helper()
	data, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func indent(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\n  ") + "\n"
}
