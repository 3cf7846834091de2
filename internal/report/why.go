package report

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-sched/kubectl-sched/internal/preview"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate/engine"
)

// Why writes why a pod is where it is, or nowhere.
func Why(w io.Writer, format Format, e *preview.Explanation, o Options) error {
	if format != Text {
		return o.documents(w, format, "Explanation", whyDocument(e, o))
	}
	x := explaining{explanation: e, options: o}
	if e.Pod == nil {
		x.withoutPods()
	} else {
		x.pod()
	}
	x.skipped()
	for _, note := range e.Notes {
		x.say("Note: %s.", note)
	}
	_, err := io.WriteString(w, x.b.String())
	return err
}

type explaining struct {
	explanation *preview.Explanation
	options     Options
	b           strings.Builder
}

func (x *explaining) say(format string, args ...any) {
	fmt.Fprintln(&x.b, x.options.Wrapped(fmt.Sprintf(format, args...)))
}

func (x *explaining) pod() {
	x.verdict()
	x.gates()
	x.gang()
	x.causes()
	x.mend()
	x.pools()
	x.choice()
	x.lost()
}

// withoutPods says that the workload has no pods, and whether it should.
func (x *explaining) withoutPods() {
	e := x.explanation
	switch {
	case e.Wanted > 0:
		x.say("%s has no pods, and asks for %d: its controller has made none.", e.Workload, e.Wanted)
	case len(e.Skipped) > 0:
		x.say("%s has no pods: it may run on no node.", e.Workload)
	default:
		x.say("%s has no pods, and asks for none.", e.Workload)
	}
}

// verdict says in a line what there is to explain.
func (x *explaining) verdict() {
	e := x.explanation
	name := "Pod " + e.Pod.Namespace + "/" + e.Pod.Name
	if e.Workload.Kind != "Pod" {
		name += " of " + e.Workload.String()
	}
	switch e.Verdict {
	case simulate.Placed:
		if e.Pod.Spec.NodeName != "" {
			x.say("%s is on node %s.", name, e.Pod.Spec.NodeName)
			return
		}
		x.say("%s has no node, and fits node %s.", name, e.Would)
	case simulate.Gated:
		x.say("%s has no node: no scheduler looks at it yet.", name)
	case simulate.NeedsNodes:
		x.say("%s has no node, and would fit a new node of pool %s: %s would do for all that wait.", name, e.Pool, amount(e.NewNodes, "node", "nodes"))
	case simulate.Unserved:
		x.say("%s has no node: nobody schedules it.", name)
	default:
		x.say("%s has no node: it fits none.", name)
		if e.Message != "" {
			x.say("  %s", e.Message)
		}
	}
}

func (x *explaining) gates() {
	for _, g := range x.explanation.Gates {
		text := "gate " + g.Name + ": " + g.Opener
		if g.For > 0 {
			text += "; in place for " + duration.HumanDuration(g.For)
		}
		x.say("  %s", text)
		if g.Waits != "" {
			x.say("    %s", g.Waits)
		}
	}
	if len(x.explanation.Gates) > 0 && x.explanation.Would != "" {
		x.say("Without the gates it would go to node %s.", x.explanation.Would)
	}
}

// causes says what is in the way of other nodes, and of which least is.
func (x *explaining) causes() {
	e := x.explanation
	if len(e.Causes) == 0 || e.Verdict == simulate.Gated && len(e.Gates) == 0 {
		return // what holds it is not a node
	}
	if e.Would != "" || e.Verdict == simulate.Placed {
		x.say("Not fit are:")
	} else {
		x.say("In the way are:")
	}
	for _, line := range causes(e.Causes, x.options) {
		x.say("  %s", line)
	}
	if e.Nearest != "" {
		var parts []string
		for _, b := range e.Blockers {
			parts = append(parts, fmt.Sprintf("%s (%s)", strings.Join(b.Reasons, ", "), b.Plugin))
		}
		x.say("Nearest is node %s, which lacks only: %s.", e.Nearest, strings.Join(parts, "; "))
	}
}

func (x *explaining) mend() {
	e := x.explanation
	switch {
	case len(e.Mend) > 0:
		x.say("It would fit with this change, which was tried:")
		for _, edit := range e.Mend {
			x.say("  - %s", edit.Text)
		}
	case !e.Mended:
	case e.MendAll:
		x.say("No one or two changes of tolerations, constraints or room would let it fit.")
	default:
		x.say("There was no time to look at every pair of changes that could help.")
	}
}

// choice shows how the best node was told from the second.
func (x *explaining) choice() {
	c := x.explanation.Choice
	if c == nil {
		return
	}
	would := x.explanation.Would
	if on := x.explanation.Pod.Spec.NodeName; on != "" && on != would {
		x.say("Placed today it would go to node %s:", would)
	}
	if x.explanation.Verdict == simulate.Gated && len(x.explanation.Gates) == 0 {
		x.say("By itself it would go to node %s:", would)
	}
	if c.Tied > 0 {
		x.say("%s as good as %s: between them chance decides.", amount(c.Tied, "other node is", "other nodes are"), would)
	} else {
		x.say("%s wins over %s by %d points.", would, c.RunnerUp, c.Total-c.RunnerUpTotal)
	}
	t := x.options.table()
	t.add("PLUGIN", "WEIGHT", strings.ToUpper(x.options.named(would)), strings.ToUpper(x.options.named(c.RunnerUp)))
	for i, s := range c.Scores {
		t.add(s.Plugin, fmt.Sprint(s.Weight), fmt.Sprint(s.Points), points(c.RunnerUpScores, s.Plugin, i))
	}
	t.add("total", "", fmt.Sprint(c.Total), fmt.Sprint(c.RunnerUpTotal))
	x.b.WriteString(t.text(x.options.width()))
}

// points are those of the plugin, which is the i-th as a rule.
func points(scores []engine.Score, plugin string, i int) string {
	if i < len(scores) && scores[i].Plugin == plugin {
		return fmt.Sprint(scores[i].Points)
	}
	return "-"
}

func whyDocument(e *preview.Explanation, o Options) map[string]any {
	document := map[string]any{
		"namespace": e.Workload.Namespace, "workload": e.Workload.String(),
		"causes": causeEntries(e.Causes, o), "notes": append([]string{}, e.Notes...),
	}
	if e.Pod == nil {
		document["wanted"] = e.Wanted
	} else {
		document["name"], document["verdict"] = e.Pod.Name, e.Verdict
		set(document, "node", e.Pod.Spec.NodeName)
	}
	set(document, "message", e.Message)
	set(document, "wouldGoTo", e.Would)
	set(document, "nearestNode", e.Nearest)
	gates := make([]map[string]any, 0, len(e.Gates))
	for _, g := range e.Gates {
		entry := map[string]any{"name": g.Name, "ours": g.Ours, "opener": g.Opener}
		set(entry, "waits", g.Waits)
		if g.For > 0 {
			entry["for"] = g.For.String()
		}
		gates = append(gates, entry)
	}
	document["gates"] = gates
	changes := make([]string, 0, len(e.Mend))
	for _, edit := range e.Mend {
		changes = append(changes, edit.Text)
	}
	document["smallestChange"] = changes
	whyParts(document, e, o)
	if e.Choice != nil {
		document["choice"] = choiceEntry(e.Choice)
	}
	return document
}
