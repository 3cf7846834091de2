package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/review"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// The formats that reviews have besides.
const (
	// Markdown is for one comment of a pull request.
	Markdown Format = "markdown"
	// HTML is a page by itself.
	HTML Format = "html"
)

// reviewWriters has one writer for each format of reviews.
var reviewWriters = []struct {
	format Format
	write  func(io.Writer, *review.Review, Options) error
}{
	{Text, reviewText},
	{Markdown, reviewMarkdown},
	{HTML, reviewHTML},
	{JSON, reviewJSON},
	{SARIF, func(w io.Writer, r *review.Review, o Options) error { return findingsSARIF(w, r.Findings, o) }},
}

// ReviewFormats returns the formats that Review writes.
func ReviewFormats() []Format {
	formats := make([]Format, len(reviewWriters))
	for i, f := range reviewWriters {
		formats[i] = f.format
	}
	return formats
}

// Review writes the review in the format. Its files are named as the options name
// those of the head. Errors are those of w, and an unknown format, which names the
// known ones.
func Review(w io.Writer, format Format, r *review.Review, o Options) error {
	for _, f := range reviewWriters {
		if f.format == format {
			return f.write(w, r, o)
		}
	}
	_, err := ParseFormat(string(format), ReviewFormats()...)
	return err
}

func reviewJSON(w io.Writer, r *review.Review, o Options) error {
	found := *r
	found.Findings = nil
	for _, f := range r.Findings {
		found.Findings = append(found.Findings, o.relocate(f))
	}
	found.Ignored = nil
	for _, i := range r.Ignored {
		i.Finding, i.Range = o.relocate(i.Finding), o.relocate(diag.Finding{Range: i.Range}).Range
		found.Ignored = append(found.Ignored, i)
	}
	return o.documents(w, JSON, "Review", map[string]any{
		"base": r.Base, "head": r.Head, "policies": orEmpty(r.Policies), "sections": orEmpty(r.Sections),
		"findings": orEmpty(found.Findings), "ignored": orEmpty(found.Ignored), "mended": r.Mended, "problem": r.Problem, "nothing": r.Nothing(),
	})
}

// orEmpty is the list, never null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// nothingChanges is what a review says of a change that does nothing.
func nothingChanges(r *review.Review) string {
	return fmt.Sprintf("0 pods move, 0 new findings: the policies, the compiled fields and the pods are the same as with %s.", r.Base)
}

// placementLine says in a sentence what becomes of the pods.
func placementLine(s review.Section) string {
	p := s.Placement
	switch {
	case s.Unknown:
		return "Which pods would move is not known: there is no snapshot of the cluster."
	case p == nil:
		return "0 pods move: nothing that scheduling reads is different."
	}
	parts := []string{amount(p.Moved, "pod moves", "pods move")}
	if p.ByTie > 0 {
		parts[0] += fmt.Sprintf(" (and %d by nothing but a tie)", p.ByTie)
	}
	if p.Added > 0 {
		parts = append(parts, amount(p.Added, "pod is added", "pods are added"))
	}
	if p.Removed > 0 {
		parts = append(parts, amount(p.Removed, "pod goes", "pods go"))
	}
	counted := func(c review.Count, one, many string) {
		switch {
		case c.Before == 0 && c.After == 0:
		case c.Before == c.After:
			parts = append(parts, amount(c.After, one, many)+" as before")
		default:
			parts = append(parts, fmt.Sprintf("%s (%d before)", amount(c.After, one, many), c.Before))
		}
	}
	counted(p.Pending, "pod stays Pending", "pods stay Pending")
	counted(p.NeedsNodes, "pod needs new nodes", "pods need new nodes")
	counted(p.Evicted, "pod is evicted for others", "pods are evicted for others")
	if len(p.Stuck) > 0 {
		parts = append(parts, amount(len(p.Stuck), "rollout comes to a halt", "rollouts come to a halt"))
	}
	return strings.Join(parts, ", ") + "."
}

// movesTitle is the heading of the workloads whose pods are not where they were.
func movesTitle(p *review.Placement) string {
	if p.Moved+p.ByTie == 0 && p.Added+p.Removed > 0 {
		return "Pods that come or go"
	}
	return "Pods that move"
}

// restartSentence says what restarts.
func restartSentence(s review.Section) string {
	return restarting(s.Restarts.Workloads, s.Restarts.Pods, s.Restarts.Budgets)
}

// simulatedOn says what the placement was simulated on. It names no age, so that the
// same review is the same text tomorrow.
func simulatedOn(p *review.Placement) string {
	text := "Both sides simulated on " + amount(p.Nodes, "node", "nodes") + " and " + amount(p.Pods, "pod", "pods")
	if p.Cluster != "" {
		text += " of cluster " + p.Cluster
	}
	if !p.Taken.IsZero() {
		text += ", as of " + p.Taken.UTC().Format("2006-01-02 15:04 UTC")
	}
	return text + fmt.Sprintf(", with seed %d.", p.Seed)
}

// gains says in words what happens to a field, with "gain" or "lose" where it is one.
func gains(f review.FieldChange) string {
	verb := "change"
	switch {
	case len(f.Removed) == 0:
		verb = "gain"
	case len(f.Added) == 0:
		verb = "lose"
	}
	if len(f.Workloads) == 1 {
		return "1 workload " + verb + "s " + f.Field
	}
	return fmt.Sprintf("%d workloads %s the same %s", len(f.Workloads), verb, f.Field)
}

// valueChange says how a value changed.
func valueChange(v review.Value) string {
	switch {
	case v.Before == "":
		return v.Path + ": " + v.After + " (new)"
	case v.After == "":
		return v.Path + ": " + v.Before + " (gone)"
	}
	return v.Path + ": " + v.Before + " → " + v.After
}

// wheres says how many pods are in which group of nodes.
func wheres(list []review.Where) string { return strings.Join(placesOf(list, " "), ", ") }

// placesOf are the groups of nodes, each with its number of pods behind the space.
func placesOf(list []review.Where, space string) []string {
	if len(list) == 0 {
		return []string{"-"}
	}
	parts := make([]string, len(list))
	for i, w := range list {
		parts[i] = fmt.Sprintf("%s%s%d", placeName(w.Pool, w.Zone), space, w.Pods)
	}
	return parts
}

// placeName names a group of nodes.
func placeName(pool, zone string) string {
	switch name := strings.Trim(pool+"/"+zone, "/"); name {
	case "":
		return "nodes"
	default:
		return name
	}
}

// originLines names the policies' lines, a line each.
func (o Options) originLines(origins []compiler.Origin) []string {
	var lines []string
	for _, origin := range origins {
		lines = append(lines, originText([]compiler.Origin{origin}, o))
	}
	return lines
}

// clustersOf is the heading of a section; empty where the policies name no clusters.
func clustersOf(s review.Section) string {
	if len(s.Clusters) == 0 {
		return ""
	}
	if len(s.Clusters) == 1 {
		return "Cluster " + s.Clusters[0]
	}
	return "Clusters " + strings.Join(s.Clusters, ", ")
}

// causeLine says why some nodes do not take a pod.
func causeLine(c review.Cause) string {
	return fmt.Sprintf("%s: %s (%s)", amount(c.Nodes, "node", "nodes"), c.Reason, c.Plugin)
}

// waitingLine says which pods of a workload wait.
func waitingLine(w review.Waiting, most int) string {
	if w.Verdict == "needs nodes" {
		return fmt.Sprintf("%s: %s new nodes of pool %s", w.Workload, amount(len(w.Pods), "pod needs", "pods need"), w.Pool)
	}
	names := strings.Join(w.Pods[:min(most, len(w.Pods))], ", ")
	if len(w.Pods) > most {
		names += fmt.Sprintf(" and %d more", len(w.Pods)-most)
	}
	return fmt.Sprintf("%s: %s (%s): %s", w.Workload, amount(len(w.Pods), "pod", "pods"), w.Verdict, names)
}

// newFindings counts the findings of a review in words.
func newFindings(r *review.Review) string {
	text := amount(len(r.Findings), "new finding", "new findings")
	if n := len(r.Ignored); n > 0 {
		text += fmt.Sprintf(", %d more that the change says to ignore", n)
	}
	if r.Mended > 0 {
		text += fmt.Sprintf(", %d fixed", r.Mended)
	}
	return text
}

// because says which rule is ignored, why, and where that is written.
func (o Options) because(i diag.Ignored) string {
	return i.Finding.Rule + ", ignored because of \"" + i.Reason + "\", " + o.place(i.Range.Start)
}
