package report

import (
	"crypto/sha256"
	_ "embed" // for the page
	"encoding/base64"
	"fmt"
	"html/template"
	"io"

	"github.com/kubectl-sched/kubectl-sched/internal/preview"
	"github.com/kubectl-sched/kubectl-sched/internal/review"
)

// The page, its style and its script. html/template escapes by context whatever comes
// from the repository or the cluster; the page loads nothing, and its policy lets run
// nothing but the one script.
var (
	//go:embed review.html.tmpl
	reviewPage string
	//go:embed review.css
	reviewStyle string
	//go:embed review.js
	reviewScript string
)

// page is what the template is given.
type page struct {
	Review  *review.Review
	Options Options
	Policy  string
	Style   template.CSS
	Script  template.JS
}

// hashed is how a Content-Security-Policy names a text that may be used.
func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// reviewHTML writes the review as a page by itself.
func reviewHTML(w io.Writer, r *review.Review, o Options) error {
	t, err := template.New("review").Funcs(template.FuncMap{
		"name":      func(text string) string { return printable(o.named(text)) },
		"clusters":  clustersOf,
		"restarts":  restartSentence,
		"places":    placementLine,
		"nothing":   nothingChanges,
		"findings":  newFindings,
		"gains":     gains,
		"value":     valueChange,
		"origins":   o.originLines,
		"place":     o.place,
		"says":      sentence,
		"wheres":    wheres,
		"cause":     causeLine,
		"waiting":   func(x review.Waiting) string { return waitingLine(x, mostMoves) },
		"simulated": simulatedOn,
		"share":     func(s review.Share) string { return share(s.Before, s.After, s.Total) },
		"change":    func(c review.Count) string { return change(c.Before, c.After) },
		"groups":    groupsOf,
		"group":     func(p preview.Place) string { return placeName(p.Pool, p.Zone) },
		"percent":   func(part, total int64) int64 { return part * 100 / max(total, 1) },
	}).Parse(reviewPage)
	if err != nil {
		return fmt.Errorf("the page of a review: %w", err)
	}
	return t.Execute(w, page{
		Review: r, Options: o,
		Policy: "default-src 'none'; base-uri 'none'; form-action 'none'; style-src " + hashed(reviewStyle) + "; script-src " + hashed(reviewScript),
		Style:  template.CSS(reviewStyle), Script: template.JS(reviewScript),
	})
}

// nodeGroup is the nodes of a pool in a zone.
type nodeGroup struct {
	Place preview.Place
	Nodes []review.Node
}

// groupsOf returns the nodes of the picture, which are sorted, by group.
func groupsOf(nodes []review.Node) []nodeGroup {
	var out []nodeGroup
	for _, n := range nodes {
		if len(out) == 0 || out[len(out)-1].Place != n.Place {
			out = append(out, nodeGroup{Place: n.Place})
		}
		last := &out[len(out)-1]
		last.Nodes = append(last.Nodes, n)
	}
	return out
}
