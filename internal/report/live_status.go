package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kubectl-sched/kubectl-sched/internal/apply"
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
		return documents(w, format, "Status", fields)
	}
	var b strings.Builder
	style := style{o.Color}
	fmt.Fprintf(&b, "set %s (state in namespace %s): %s\n", style.paint(bold, s.Set.Name), s.Set.Namespace, s.Scope)
	if r := s.Revision; r != nil {
		fmt.Fprintf(&b, "revision %d, %s, %s by %s\n", r.Number, r.State, r.Started.Format(time.RFC3339), orNone(r.By))
		switch r.State {
		case apply.Open:
			b.WriteString(style.paint(yellow, "  its run was interrupted or is running now; apply again to finish it, or undo it") + "\n")
		case apply.Failed:
			b.WriteString(style.paint(yellow, "  some of it was refused by the cluster; mend that and apply again, or undo it") + "\n")
		}
	}
	drifted, broken := len(s.Drifts), 0
	for _, entry := range s.Workloads {
		fmt.Fprintf(&b, "\n%s  revision %d, policies %s\n", style.paint(bold, entry.Ref), entry.Revision, orNone(strings.Join(entry.Policies, ", ")))
		for _, d := range entry.Drifts {
			drifted++
			b.WriteString("  " + style.paint(yellow, "drift") + " " + driftText(d) + "\n")
		}
		for _, v := range entry.Violations {
			broken++
			fmt.Fprintf(&b, "  %s pod %s on %s: %s\n", style.paint(red, "violation"), v.Pod, v.Node, v.Reason)
		}
		for _, l := range entry.Places {
			b.WriteString("  " + plural(l.Pods, "pod") + " " + placeText(l) + "\n")
		}
	}
	if len(s.Drifts) > 0 {
		b.WriteString("\n")
	}
	for _, d := range s.Drifts {
		fmt.Fprintf(&b, "%s %s: %s\n", style.paint(yellow, "drift"), d.Subject, driftText(d))
	}
	fmt.Fprintf(&b, "\n%s, %s, %s\n", plural(len(s.Workloads), "workload"), plural(drifted, "drift"), plural(broken, "violation"))
	_, err := io.WriteString(w, b.String())
	return err
}

func placeText(l apply.Landing) string {
	if l.Node == "" {
		return "without a node"
	}
	var more []string
	if l.Zone != "" {
		more = append(more, "zone "+l.Zone)
	}
	if l.Pool != "" {
		more = append(more, "pool "+l.Pool)
	}
	if len(more) == 0 {
		return "on " + l.Node
	}
	return fmt.Sprintf("on %s (%s)", l.Node, strings.Join(more, ", "))
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
