package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
)

// Snapshot writes what is in a snapshot: how old it is, how many objects there are
// of each kind, and how full the nodes of each pool and zone are.
func Snapshot(w io.Writer, format Format, s *snapshot.Snapshot, o Options) error {
	sum := snapshot.Summarize(s)
	if format != Text {
		fields := map[string]any{
			"cluster": s.Cluster, "version": s.Version, "anonymized": s.Anonymized,
			"counts": sum.Counts, "pending": sum.Pending, "groups": sum.Groups,
		}
		if !s.Taken.IsZero() {
			fields["taken"] = s.Taken.UTC().Format(time.RFC3339)
		}
		if len(s.Missing) > 0 {
			fields["missing"] = s.Missing
		}
		if len(s.Schedulers) > 0 {
			fields["schedulers"] = s.Schedulers
		}
		return o.documents(w, format, "SnapshotSummary", fields)
	}
	var b strings.Builder
	b.WriteString(o.Wrapped(snapshotHead(s, o.Now)) + "\n\n")
	t := o.table()
	t.add("COUNT", "WHAT")
	for _, c := range sum.Counts {
		what := c.Name
		if what == "pods" && sum.Pending > 0 {
			what += fmt.Sprintf(", %d of them without a node", sum.Pending)
		}
		t.add(fmt.Sprint(c.Count), what)
	}
	b.WriteString(t.text(o.width()))
	if len(sum.Groups) > 0 {
		b.WriteString("\n" + fillTable(sum.Groups, o).text(o.width()))
	}
	if len(s.Missing) > 0 {
		var names []string
		for _, m := range s.Missing {
			names = append(names, m.Resource)
		}
		b.WriteString("\n" + o.Wrapped("Not known, because whoever took it could not read them: "+strings.Join(names, ", ")) + "\n")
	}
	for _, scheduler := range s.Schedulers {
		b.WriteString("\n" + o.Wrapped(schedulerWords(scheduler)) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// snapshotHead says which snapshot it is and how old.
func snapshotHead(s *snapshot.Snapshot, now time.Time) string {
	text := "A snapshot"
	if s.Cluster != "" {
		text += " of " + s.Cluster
	}
	if s.Version != "" {
		text += ", Kubernetes " + s.Version
	}
	if s.Anonymized {
		text += ", anonymised"
	}
	age, ok := s.Age(now)
	switch {
	case !ok:
		return text + ", written by hand"
	case now.IsZero():
		return text + ", taken at " + s.Taken.UTC().Format(time.RFC3339)
	}
	return text + fmt.Sprintf(", taken %s ago (%s)", duration.HumanDuration(age), s.Taken.UTC().Format(time.RFC3339))
}

func fillTable(groups []snapshot.Group, o Options) *table {
	t := o.table()
	t.add("POOL", "ZONE", "NODES", "PODS", "CPU", "MEMORY")
	for _, g := range groups {
		nodes := fmt.Sprint(g.Nodes)
		if g.Unschedulable > 0 {
			nodes += fmt.Sprintf(" (%d cordoned)", g.Unschedulable)
		}
		t.add(cmp.Or(g.Pool, "-"), cmp.Or(g.Zone, "-"), nodes, fmt.Sprint(g.Pods), shareWords(g, corev1.ResourceCPU), shareWords(g, corev1.ResourceMemory))
	}
	return t
}

// shareWords says how much of a resource is asked for.
func shareWords(g snapshot.Group, name corev1.ResourceName) string {
	share, ok := g.Share(name)
	if !ok {
		return "-"
	}
	have := g.Allocatable[name]
	return fmt.Sprintf("%.0f%% of %s", share*100, have.String())
}

func schedulerWords(s snapshot.Scheduler) string {
	text := "Scheduler " + s.Name
	if !s.Ready {
		text += ", which does not schedule now"
	}
	if len(s.Profiles) > 0 {
		text += ": profiles " + strings.Join(s.Profiles, ", ")
	}
	return text
}
