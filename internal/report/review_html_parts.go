package report

import (
	"fmt"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/preview"
	"github.com/kubectl-sched/kubectl-sched/internal/review"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// tile is a number of the summary with what it means.
type tile struct {
	Label, Value, Note string
	// Worse says that the change makes something worse.
	Worse bool
}

// summary are the tiles of a cluster, or of the whole where the title is empty.
type summary struct {
	Title string
	Tiles []tile
}

// summariesOf returns the tiles of the page: in one list where there is one cluster.
func summariesOf(r *review.Review) []summary {
	findings := findingTile(r)
	if r.Nothing() {
		return nil
	}
	if len(r.Sections) == 1 && len(r.Sections[0].Clusters) == 0 {
		return []summary{{Tiles: append(sectionTiles(r.Sections[0]), findings)}}
	}
	var out []summary
	for _, s := range r.Sections {
		out = append(out, summary{clustersOf(s), sectionTiles(s)})
	}
	return append([]summary{{Tiles: []tile{findings}}}, out...)
}

func findingTile(r *review.Review) tile {
	counts := map[diag.Severity]int{}
	for _, f := range r.Findings {
		counts[f.Severity]++
	}
	var parts []string
	for _, s := range []struct {
		severity  diag.Severity
		one, many string
	}{{diag.Error, "error", "errors"}, {diag.Warning, "warning", "warnings"}, {diag.Info, "note", "notes"}} {
		if n := counts[s.severity]; n > 0 {
			parts = append(parts, amount(n, s.one, s.many))
		}
	}
	if n := len(r.Ignored); n > 0 {
		parts = append(parts, fmt.Sprintf("%d more ignored", n))
	}
	if r.Mended > 0 {
		parts = append(parts, fmt.Sprintf("%d fixed", r.Mended))
	}
	return tile{"New findings", fmt.Sprint(len(r.Findings)), strings.Join(parts, ", "), counts[diag.Error]+counts[diag.Warning] > 0}
}

func sectionTiles(s review.Section) []tile {
	restarts := tile{Label: "Workloads that restart", Value: fmt.Sprint(len(s.Restarts.Workloads))}
	if n := len(s.Restarts.Workloads); n > 0 {
		restarts.Note = plural(s.Restarts.Pods, "pod") + "; no PodDisruptionBudget covers them"
		if b := len(s.Restarts.Budgets); b > 0 {
			restarts.Note = plural(s.Restarts.Pods, "pod") + ", under " + plural(b, "PodDisruptionBudget")
		}
	}
	p := s.Placement
	switch {
	case s.Unknown:
		return []tile{{Label: "Pods that move", Value: "?", Note: "no snapshot was given"}, restarts}
	case p == nil:
		return []tile{{Label: "Pods that move", Value: "0", Note: "nothing that scheduling reads is different"}, restarts}
	}
	waits := func(label string, c review.Count) tile {
		t := tile{Label: label, Value: fmt.Sprint(c.After), Note: fmt.Sprintf("%d before", c.Before), Worse: c.After > c.Before}
		if c.Before == c.After {
			t.Note = "as before"
		}
		return t
	}
	out := []tile{waits("Pods that stay Pending", p.Pending)}
	if p.NeedsNodes != (review.Count{}) {
		out = append(out, waits("Pods that need nodes", p.NeedsNodes))
	}
	if p.Evicted != (review.Count{}) {
		out = append(out, waits("Pods evicted for others", p.Evicted))
	}
	if n := len(p.Stuck); n > 0 {
		out = append(out, tile{Label: "Rollouts that halt", Value: fmt.Sprint(n), Note: "with the change alone", Worse: true})
	}
	moves := tile{Label: "Pods that move", Value: fmt.Sprint(p.Moved), Note: fmt.Sprintf("of %d", p.Pods)}
	if p.ByTie > 0 {
		moves.Note += fmt.Sprintf("; %d more by a tie", p.ByTie)
	}
	if p.Added > 0 {
		moves.Note += fmt.Sprintf("; %d added", p.Added)
	}
	if p.Removed > 0 {
		moves.Note += fmt.Sprintf("; %d go", p.Removed)
	}
	return append(out, moves, restarts)
}

// chapter is a part of the page that can be gone to.
type chapter struct{ ID, Title string }

// chaptersOf returns the parts: those of the cluster where there is one, else the
// clusters.
func chaptersOf(r *review.Review) []chapter {
	var out []chapter
	add := func(is bool, id, title string) {
		if is {
			out = append(out, chapter{id, title})
		}
	}
	add(len(r.Findings) > 0, "findings", "Findings")
	add(len(r.Ignored) > 0, "ignored", "Ignored")
	add(len(r.Policies) > 0, "policies", "Policies")
	if len(r.Sections) > 1 {
		for i, s := range r.Sections {
			add(true, fmt.Sprintf("cluster-%d", i), clustersOf(s))
		}
		return out
	}
	for _, s := range r.Sections {
		p := s.Placement
		if p == nil {
			p = &review.Placement{}
		}
		add(len(p.Waiting)+len(p.Stuck) > 0, "waiting-0", "Without a node")
		add(len(s.Fields)+len(s.Objects)+len(s.Workloads) > 0, "fields-0", "Fields")
		add(len(s.Restarts.Workloads) > 0, "restarts-0", "Restarts")
		add(len(p.Moves) > 0, "moves-0", "Moves")
		add(len(p.Picture) > 0, "nodes-0", "Nodes")
	}
	return out
}

// nodeGroup is the nodes of a pool in a zone.
type nodeGroup struct {
	Place preview.Place
	Nodes []pictureNode
	pods  review.Count
	cpu   review.Share
}

// Summary says in words what the group's pictures show.
func (g nodeGroup) Summary() string {
	return fmt.Sprintf("%s; pods %s; CPU requested %s", amount(len(g.Nodes), "node", "nodes"),
		change(g.pods.Before, g.pods.After), share(g.cpu.Before, g.cpu.After, g.cpu.Total))
}

// groupsOf returns the nodes of the picture, which are sorted, by group.
func groupsOf(nodes []review.Node) []nodeGroup {
	var out []nodeGroup
	for _, n := range nodes {
		if len(out) == 0 || out[len(out)-1].Place != n.Place {
			out = append(out, nodeGroup{Place: n.Place})
		}
		g := &out[len(out)-1]
		g.Nodes = append(g.Nodes, pictureNode{n})
		g.pods = review.Count{Before: g.pods.Before + n.Pods.Before, After: g.pods.After + n.Pods.After}
		g.cpu = review.Share{Before: g.cpu.Before + n.CPU.Before, After: g.cpu.After + n.CPU.After, Total: g.cpu.Total + n.CPU.Total}
	}
	return out
}

// pictureNode is a node as it is drawn.
type pictureNode struct{ review.Node }

// levels is how many heights the drawing of a node has.
const levels = 10

// Level is how high a node is filled whose pods ask for so much, from 0 to levels;
// what is not nothing shows.
func (n pictureNode) Level(asked int64) int64 {
	total := max(n.CPU.Total, 1)
	return min((asked*levels+total-1)/total, levels)
}

// Over reports whether more is asked for than the node has.
func (n pictureNode) Over(asked int64) bool { return asked > n.CPU.Total }

// Trend is what the style calls a node that is other than before.
func (n pictureNode) Trend() string {
	switch {
	case n.CPU.After > n.CPU.Before, n.CPU.After == n.CPU.Before && n.Pods.After > n.Pods.Before:
		return " other rise"
	case n.CPU.After < n.CPU.Before, n.Pods.After < n.Pods.Before:
		return " other fall"
	}
	return ""
}

// Says is the node in words.
func (n pictureNode) Says() string {
	return fmt.Sprintf("%s, %s: pods %s, CPU requested %s", n.Name, placeName(n.Place.Pool, n.Place.Zone),
		change(n.Pods.Before, n.Pods.After), share(n.CPU.Before, n.CPU.After, n.CPU.Total))
}

// crowded reports whether more is asked of a node than it has, before or after.
func crowded(nodes []review.Node) bool {
	for _, n := range nodes {
		if p := (pictureNode{n}); p.Over(n.CPU.Before) || p.Over(n.CPU.After) {
			return true
		}
	}
	return false
}
