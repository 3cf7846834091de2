package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-sched/kubectl-sched/internal/apply"
	"github.com/kubectl-sched/kubectl-sched/internal/report/excerpt"
)

// Status writes what a set is like in the cluster: what is applied by which
// revision, what drifted, which pods break a rule now, and where pods are.
func Status(w io.Writer, format Format, s *apply.Status, o Options) error {
	if format != Text {
		fields := map[string]any{
			"set": s.Set.Name, "namespace": s.Set.Namespace, "scope": s.Scope,
			"workloads": statusDocuments(s), "drifts": driftDocuments(s.Drifts), "drifted": s.Drifted(),
		}
		if s.Revision != nil {
			fields["revision"], fields["state"] = s.Revision.Number, s.Revision.State
		}
		if s.Admission != nil {
			fields["admission"] = admissionDocument(s.Admission)
		}
		return documents(w, format, "Status", fields)
	}
	var b strings.Builder
	style := style{o.Color}
	head := wrap(fmt.Sprintf("set %s (state in namespace %s): %s", s.Set.Name, s.Set.Namespace, s.Scope), o.width(), "    ")
	b.WriteString(strings.Replace(head, s.Set.Name, style.paint(bold, s.Set.Name), 1) + "\n")
	if r := s.Revision; r != nil {
		fmt.Fprintf(&b, "revision %d, %s, %s by %s\n", r.Number, r.State, r.Started.Format(time.RFC3339), orNone(r.By))
		if words := unfinished(r, s.Writer, o.Now); words != "" {
			b.WriteString(style.paint(yellow, wrap("  "+words, o.width(), "  ")) + "\n")
		}
	}
	if s.Admission != nil {
		b.WriteString(admissionText(s, o))
	}
	drifted, broken := len(s.Drifts), 0
	line := func(c color, label, text string) {
		text = wrap("  "+label+" "+excerpt.Printable(text), o.width(), "    ")
		b.WriteString(strings.Replace(text, label, style.paint(c, label), 1) + "\n")
	}
	for _, entry := range s.Workloads {
		heading := wrap(fmt.Sprintf("%s  revision %d, policies %s", entry.Ref, entry.Revision, orNone(strings.Join(entry.Policies, ", "))), o.width(), "    ")
		b.WriteString("\n" + strings.Replace(heading, entry.Ref, style.paint(bold, entry.Ref), 1) + "\n")
		for _, d := range entry.Drifts {
			drifted++
			line(yellow, "drift", driftText(d))
		}
		broken += len(entry.Violations)
		for _, text := range violationTexts(entry.Violations) {
			line(red, "violation", text)
		}
		for _, text := range placeTexts(entry.Places) {
			b.WriteString("  " + text + "\n")
		}
	}
	if len(s.Drifts) > 0 {
		b.WriteString("\n")
	}
	for _, d := range s.Drifts {
		line(yellow, "drift", d.Subject+": "+driftText(d))
	}
	fmt.Fprintf(&b, "\n%s, %s, %s\n", plural(len(s.Workloads), "workload"), plural(drifted, "drift"), plural(broken, "violation"))
	_, err := io.WriteString(w, b.String())
	return err
}

// unfinished says what a revision that is not complete waits for.
func unfinished(r *apply.Revision, writer *apply.Writer, now time.Time) string {
	switch r.State {
	case apply.Complete:
	case apply.Failed:
		return "some of it was refused by the cluster; mend that and apply again, or undo it"
	case apply.Open:
		if writer.Active(now) && writer.Revision == r.Number {
			return "it is being written now"
		}
		return "its run was interrupted; apply again to finish it, or undo it"
	}
	return ""
}

// violationTexts says what is wrong with the pods of one workload, once for
// each reason and the policies behind it, the most pods first.
func violationTexts(violations []apply.Violation) []string {
	type kind struct{ reason, policies string }
	groups := map[kind][]apply.Violation{}
	var order []kind
	for _, v := range violations {
		k := kind{v.Reason, strings.Join(v.Policies, ", ")}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], v)
	}
	slices.SortStableFunc(order, func(a, b kind) int { return len(groups[b]) - len(groups[a]) })
	var texts []string
	for _, k := range order {
		var pods []string
		for _, v := range groups[k] {
			pods = append(pods, v.Pod+" on "+v.Node)
		}
		text := fmt.Sprintf("%s: %s", plural(len(pods), "pod"), k.reason)
		if k.policies != "" {
			text += " (policies " + k.policies + ")"
		}
		texts = append(texts, text+": "+some(pods))
	}
	return texts
}

// placeTexts says where the pods of one workload are, by zone and pool; a node
// is named where it is the only one there.
func placeTexts(places []apply.Landing) []string {
	type area struct {
		zone, pool string
		pending    bool
	}
	type content struct {
		pods  int
		nodes []string
	}
	contents := map[area]*content{}
	var order []area
	for _, l := range places {
		key := area{l.Zone, l.Pool, l.Node == ""}
		c := contents[key]
		if c == nil {
			c = &content{}
			contents[key] = c
			order = append(order, key)
		}
		c.pods += l.Pods
		c.nodes = append(c.nodes, l.Node)
	}
	var texts []string
	for _, key := range order {
		c := contents[key]
		text := plural(c.pods, "pod")
		var more []string
		switch {
		case key.pending:
			text += " without a node"
		case len(c.nodes) == 1:
			text += " on " + c.nodes[0]
		default:
			text += " on " + plural(len(c.nodes), "node")
		}
		if key.zone != "" {
			more = append(more, "zone "+key.zone)
		}
		if key.pool != "" {
			more = append(more, "pool "+key.pool)
		}
		if len(more) > 0 {
			text += " (" + strings.Join(more, ", ") + ")"
		}
		texts = append(texts, text)
	}
	return texts
}

func driftText(d apply.Drift) string {
	text := d.Message
	if d.Field != "" {
		text = d.Field + ": " + text
	}
	if len(d.By) > 0 {
		text += " by " + strings.Join(d.By, ", ")
	}
	return text
}

func statusDocuments(s *apply.Status) []map[string]any {
	list := []map[string]any{}
	for _, entry := range s.Workloads {
		violations := []map[string]any{}
		for _, v := range entry.Violations {
			violations = append(violations, map[string]any{"pod": v.Pod, "node": v.Node, "reason": v.Reason})
		}
		places := []map[string]any{}
		for _, l := range entry.Places {
			places = append(places, map[string]any{"node": l.Node, "zone": l.Zone, "pool": l.Pool, "pods": l.Pods, "ready": l.Ready})
		}
		list = append(list, map[string]any{
			"workload": entry.Ref, "revision": entry.Revision, "policies": entry.Policies,
			"drifts": driftDocuments(entry.Drifts), "violations": violations, "places": places,
		})
	}
	return list
}

func driftDocuments(drifts []apply.Drift) []map[string]any {
	list := []map[string]any{}
	for _, d := range drifts {
		list = append(list, map[string]any{"subject": d.Subject, "field": d.Field, "message": d.Message, "by": d.By})
	}
	return list
}
