package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/apply"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// ChangeSummary returns what a reader must know first of a change set, a line
// each: which workloads restart, how many pods, which PodDisruptionBudgets they
// touch; new objects; changes of nodes. It is nil where nothing changes.
func ChangeSummary(c *apply.ChangeSet) []string {
	if c.Empty() {
		return nil
	}
	lines := []string{restartLine(c)}
	if c.Step.Admission() {
		lines = append(lines, StepLine(c.Step, c.Scope))
	}
	for _, d := range c.Disruptions {
		lines = append(lines, fmt.Sprintf("  PodDisruptionBudget %s/%s covers %s and allows %s now",
			d.Namespace, d.Name, some(d.Workloads), plural(int(d.Allowed), "disruption")))
	}
	for _, o := range c.Objects {
		if o.Action != apply.Keep {
			lines = append(lines, fmt.Sprintf("%s %s", o.Action, o.Ref()))
		}
	}
	lines = append(lines, nodeLines(c)...)
	return lines
}

// StepLine says in words how far admission policies are rolled out.
func StepLine(step apply.Step, scope apply.Scope) string {
	if step.Observe {
		return "observes in " + scope.Where() + ": changes no pod, and the audit log says which it would"
	}
	return "places new pods in " + scope.Where() + "; pods that run stay as they are"
}

// restartLine names the workloads that restart, and the pods in them.
func restartLine(c *apply.ChangeSet) string {
	_, pods := c.Restarts()
	var names []string
	for _, w := range c.Workloads {
		if w.Restarts {
			names = append(names, w.Workload.Ref())
		}
	}
	return restarting(names, pods, c.Disruptions)
}

// restarting says which workloads restart, with how many pods and budgets.
func restarting(workloads []string, pods int, disruptions []apply.Disruption) string {
	if len(workloads) == 0 {
		return "restarts no workload"
	}
	line := fmt.Sprintf("restarts %s (%s): %s", plural(len(workloads), "workload"), plural(pods, "pod"), some(workloads))
	if len(disruptions) == 0 {
		return line + "; no PodDisruptionBudget covers them"
	}
	var budgets []string
	for _, d := range disruptions {
		budgets = append(budgets, d.Namespace+"/"+d.Name)
	}
	return line + "; PodDisruptionBudgets: " + some(budgets)
}

// mostNamed is how many of a list are named; the rest is counted.
const mostNamed = 5

// some names the first of a list.
func some(names []string) string {
	text := strings.Join(names[:min(mostNamed, len(names))], ", ")
	if len(names) > mostNamed {
		text += fmt.Sprintf(" and %d more", len(names)-mostNamed)
	}
	return text
}

// ChangeEffects writes what happens to each workload, with the policies' lines,
// instead of the objects' YAML.
func ChangeEffects(w io.Writer, c *apply.ChangeSet, o Options) error {
	var b strings.Builder
	t := newTextWriter(&b, o)
	for _, change := range c.Workloads {
		switch change.Action {
		case apply.Update:
			heading := change.Workload.Ref()
			if change.Restarts {
				heading += fmt.Sprintf(" (restarts %s)", plural(change.Pods, "pod"))
			}
			t.heading(heading, diag.Pos{})
			t.effects(change)
		case apply.Withdraw:
			t.heading(change.Workload.Ref(), diag.Pos{})
			t.field("withdraws", "all of the set's fields; no policy of it matches any more")
		default: // nothing happens to it
		}
	}
	for _, o := range c.Objects {
		if o.Action != apply.Keep {
			t.heading(o.Ref(), diag.Pos{})
			t.field("action", string(o.Action))
			t.because("", o.Origins)
		}
	}
	for _, n := range c.Nodes {
		switch n.Action {
		case apply.Create, apply.Update:
			t.heading("Node "+n.Name, diag.Pos{})
			b.WriteString("  " + t.style.paint(green, "+ "+n.Mark().String()) + "\n")
			for _, origin := range n.Origins {
				fmt.Fprintf(&b, "    from: pool %q at %s\n", n.Pool, o.pos(origin.Range.Start))
			}
		case apply.Delete:
			t.heading("Node "+n.Name, diag.Pos{})
			b.WriteString("  " + t.style.paint(red, "- "+n.Mark().String()) + "\n")
		default:
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// effects writes what the policies add to one workload.
func (t textWriter) effects(change apply.WorkloadChange) {
	none := true
	for _, compiled := range change.Changes {
		if name := change.Workload.Templates[compiled.Template].Name; name != "" {
			t.field("template", name)
		}
		for _, e := range compiled.Effects {
			none = false
			t.b.WriteString("  " + t.style.paint(green, "+ "+e.Field) + "\n")
			t.value(e.Value)
			t.because(e.Reason, e.Origins)
		}
	}
	if none {
		t.field("effects", "its fields go back to what was recorded")
	}
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
