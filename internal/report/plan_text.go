package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/objectyaml"
	"github.com/kubectl-sched/kubectl-sched/internal/report/excerpt"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// plansText writes each plan as its workloads, each with what every policy adds
// to it, why it is said that way, and the policy's line.
func plansText(w io.Writer, plans []Plan, o Options) error {
	var b strings.Builder
	t := newTextWriter(&b, o)
	for i, p := range plans {
		if i > 0 {
			b.WriteByte('\n')
		}
		if len(p.Clusters) > 0 {
			word := "cluster"
			if len(p.Clusters) > 1 {
				word = "clusters"
			}
			b.WriteString(t.style.paint(bold, "# "+word+" "+strings.Join(p.Clusters, ", ")) + "\n")
		}
		t.plan(p)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (t textWriter) plan(p Plan) {
	plan := p.Plan
	separate := false
	block := func() {
		if separate {
			t.b.WriteByte('\n')
		}
		separate = true
	}
	if len(plan.Changes)+len(plan.Objects)+len(plan.Nodes)+len(plan.Profiles)+len(plan.Exceptions) == 0 {
		t.b.WriteString("no policy matches any workload\n")
	}
	for _, c := range plan.Changes {
		block()
		t.change(c)
	}
	for _, object := range plan.Objects {
		block()
		t.object(object)
	}
	for _, n := range plan.Nodes {
		block()
		t.node(n)
	}
	for _, u := range plan.Profiles {
		block()
		t.profile(u)
	}
	for _, o := range p.Overridden {
		block()
		t.heading(fmt.Sprintf("policy %q overridden by %q", o.Policy, o.By), o.Range.Start)
		t.field("for", o.Workload)
		t.field("reason", o.Reason)
	}
	for _, e := range plan.Exceptions {
		block()
		t.exception(e)
	}
}

func (t textWriter) change(c compiler.Change) {
	name := c.Workload.Ref()
	if template := c.Workload.Templates[c.Template].Name; template != "" {
		name += " template " + template
	}
	t.heading(name, c.Workload.Source.At().Start)
	if len(c.Policies) == 0 {
		t.field("policies", "none is in force")
		return
	}
	t.field("policies", strings.Join(c.Policies, ", "))
	if len(c.Effects) == 0 {
		t.field("effects", "none: the manifest says all of it already")
	}
	for _, e := range c.Effects {
		t.b.WriteString("  " + t.style.paint(green, "+ "+e.Field) + "\n")
		t.value(e.Value)
		t.because(e.Reason, e.Origins)
	}
}

func (t textWriter) object(o compiler.Object) {
	t.heading(o.Kind()+" "+o.Object.GetName(), diag.Pos{})
	if class, ok := o.Object.(*schedulingv1.PriorityClass); ok {
		t.field("value", fmt.Sprint(class.Value))
	}
	t.because(o.Reason, o.Origins)
}

func (t textWriter) node(n compiler.NodeEffect) {
	t.heading("nodes of pool "+n.Pool, diag.Pos{})
	for _, taint := range n.Taints {
		t.field("taint", taint.ToString())
	}
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		t.field("label", key+"="+n.Labels[key])
	}
	by := string(n.ManagedBy)
	if len(n.Makers) > 0 {
		by += " (" + strings.TrimPrefix(string(n.Provider)+" ", " ") + strings.Join(n.Makers, ", ") + ")"
	}
	t.field("managed by", by)
	t.field("new nodes", n.NewNodes())
	if len(n.Nodes) > 0 {
		t.field("lacking it", strings.Join(n.Nodes, ", "))
	}
	t.because(n.Reason, n.Origins)
}

func (t textWriter) profile(u compiler.ProfileUse) {
	t.heading("profile "+u.Name, diag.Pos{})
	t.field("level", string(u.Level()))
	if plugins := u.Plugins(); len(plugins) > 0 {
		t.field("plugins", strings.Join(plugins, ", "))
	}
	t.field("pod templates", fmt.Sprint(u.Workloads))
	for _, w := range u.Need.Wishes() {
		t.because("", []compiler.Origin{compiler.Origin(w.Origin)})
	}
	if text := u.Arithmetic(); text != "" {
		t.field("weights", text)
	}
}

func (t textWriter) exception(e compiler.ExceptionUse) {
	t.heading(fmt.Sprintf("exception %q of policy %q", e.Exception, e.Policy), e.Range.Start)
	t.field("spares", e.Workload)
	t.field("reason", e.Reason)
	t.field("last day", e.Expires)
}

func (t textWriter) heading(name string, at diag.Pos) {
	t.b.WriteString(t.style.paint(bold, excerpt.Printable(name)))
	if at.IsValid() {
		t.b.WriteString(t.style.paint(faint, "  "+t.o.pos(at).String()))
	}
	t.b.WriteByte('\n')
}

func (t textWriter) field(name, text string) {
	t.b.WriteString(wrap(fmt.Sprintf("  %s: %s", name, excerpt.Printable(text)), t.o.width(), "    ") + "\n")
}

// value writes a value as indented YAML.
func (t textWriter) value(v any) {
	text, err := objectyaml.Marshal(v)
	if err != nil {
		text = fmt.Appendf(nil, "%v\n", v)
	}
	for line := range strings.Lines(string(text)) {
		t.b.WriteString("      " + strings.TrimRight(line, "\n") + "\n")
	}
}

func (t textWriter) because(reason string, origins []compiler.Origin) {
	for _, o := range origins {
		from := fmt.Sprintf("policy %q at %s", o.Policy, t.o.pos(o.Range.Start))
		if o.Policy == "" {
			from = t.o.pos(o.Range.Start).String()
		}
		t.b.WriteString(wrap("    from: "+from, t.o.width(), "      ") + "\n")
	}
	if reason != "" {
		t.b.WriteString(wrap("    why: "+excerpt.Printable(reason), t.o.width(), "      ") + "\n")
	}
}
