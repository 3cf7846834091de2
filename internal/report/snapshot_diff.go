package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/internal/report/excerpt"
)

// mostChanges is how many lines a kind of object, or the pods of workloads, may
// take; the document for tools has all.
const mostChanges = 15

// SnapshotDiff writes what changed between two snapshots: as text by kinds, with
// pods by their workloads.
func SnapshotDiff(w io.Writer, format Format, d *snapshot.Difference, o Options) error {
	if format != Text {
		fields := map[string]any{"changes": d.Changes}
		if len(d.Unknown) > 0 {
			fields["unknown"] = d.Unknown
		}
		return o.documents(w, format, "SnapshotDiff", fields)
	}
	var b strings.Builder
	if len(d.Changes) == 0 {
		b.WriteString("Nothing changed that matters to scheduling.\n")
	}
	for _, group := range byList(d.Changes) {
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		b.WriteString(o.Wrapped(headline(group)) + "\n")
		if group[0].List == "pods" {
			b.WriteString(podTable(group, o))
			continue
		}
		for i, c := range group {
			if i == mostChanges {
				fmt.Fprintf(&b, "  … and %d more; -o json lists all\n", len(group)-i)
				break
			}
			for _, line := range changeLines(c) {
				b.WriteString(o.Wrapped(line) + "\n")
			}
		}
	}
	if len(d.Unknown) > 0 {
		b.WriteString("\n" + o.Wrapped("Not known, because one of the two could not read it: "+strings.Join(d.Unknown, ", ")) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// byList divides the changes, which are in order, by the lists of their objects.
func byList(changes []snapshot.Change) [][]snapshot.Change {
	var groups [][]snapshot.Change
	for i, c := range changes {
		if i == 0 || c.List != changes[i-1].List {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], c)
	}
	return groups
}

// changeOrder is that of headlines, with a word and a sign for each.
var changeOrder = []struct {
	kind       snapshot.ChangeKind
	word, sign string
}{
	{snapshot.Added, "new", "+"},
	{snapshot.Removed, "gone", "-"},
	{snapshot.Placed, "placed", "~"},
	{snapshot.Moved, "moved", "~"},
	{snapshot.Replaced, "replaced", "~"},
	{snapshot.Changed, "changed", "~"},
}

// headline counts what became of the objects of a list.
func headline(group []snapshot.Change) string {
	counts := map[snapshot.ChangeKind]int{}
	for _, c := range group {
		counts[c.Change]++
	}
	var words []string
	for _, of := range changeOrder {
		if n := counts[of.kind]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, of.word))
		}
	}
	return upperFirst(group[0].List) + ": " + strings.Join(words, ", ")
}

func upperFirst(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

func changeLines(c snapshot.Change) []string {
	name := c.Name
	if c.Namespace != "" {
		name = c.Namespace + "/" + name
	}
	sign := "~"
	for _, of := range changeOrder {
		if of.kind == c.Change {
			sign = of.sign
		}
	}
	lines := []string{"  " + sign + " " + name}
	for _, f := range c.Fields {
		lines = append(lines, fmt.Sprintf("      %s: %s → %s", f.Path, short(f.Before), short(f.After)))
	}
	return lines
}

// mostValue is how long a value may be in a line.
const mostValue = 120

func short(value string) string {
	if value == "" {
		return "none"
	}
	return cut(excerpt.Printable(value), mostValue)
}

// podTable counts the pods of each workload, those with the most first.
func podTable(pods []snapshot.Change, o Options) string {
	counts := map[string]map[snapshot.ChangeKind]int{}
	for _, p := range pods {
		if counts[p.Workload] == nil {
			counts[p.Workload] = map[snapshot.ChangeKind]int{}
		}
		counts[p.Workload][p.Change]++
	}
	all := func(workload string) int {
		n := 0
		for _, count := range counts[workload] {
			n += count
		}
		return n
	}
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(cmp.Compare(all(b), all(a)), cmp.Compare(a, b)) })
	t := o.table()
	t.add("  WORKLOAD", "NEW", "GONE", "PLACED", "MOVED", "REPLACED", "CHANGED")
	for i, name := range names {
		if i == mostChanges {
			break
		}
		row := []string{"  " + name}
		for _, of := range changeOrder {
			cell := ""
			if n := counts[name][of.kind]; n > 0 {
				cell = fmt.Sprint(n)
			}
			row = append(row, cell)
		}
		t.add(row...)
	}
	text := t.text(o.width())
	if len(names) > mostChanges {
		text += fmt.Sprintf("  … and %d more workloads; -o json lists all\n", len(names)-mostChanges)
	}
	return text
}
