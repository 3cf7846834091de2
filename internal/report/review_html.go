package report

import (
	"crypto/sha256"
	_ "embed" // for the page
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/apply"
	"github.com/kubectl-sched/kubectl-sched/internal/preview"
	"github.com/kubectl-sched/kubectl-sched/internal/report/excerpt"
	"github.com/kubectl-sched/kubectl-sched/internal/review"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
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
		"name":      func(text string) string { return excerpt.Printable(o.named(text)) },
		"clusters":  clustersOf,
		"summaries": summariesOf,
		"chapters":  chaptersOf,
		"nothing":   nothingChanges,
		"gains":     gains,
		"origins":   o.originLines,
		"place":     o.place,
		"says":      sentence,
		"because":   o.because,
		"severity":  severityClass,
		"moves":     movesTitle,
		"wheres":    func(list []review.Where) string { return strings.Join(placesOf(list, "\u00a0"), ", ") },
		"cause":     causeLine,
		"waiting":   func(x review.Waiting) string { return waitingLine(x, mostMoves) },
		"workloads": func(names []string) string { return amount(len(names), "workload", "workloads") },
		"budgets": func(list []apply.Disruption) string {
			return amount(len(list), "PodDisruptionBudget", "PodDisruptionBudgets")
		},
		"ties":      func(list []review.Move) bool { return hasTies(list) },
		"simulated": simulatedOn,
		"share":     func(s review.Share) string { return share(s.Before, s.After, s.Total) },
		"change":    func(c review.Count) string { return change(c.Before, c.After) },
		"same": func(pods review.Count, cpu review.Share) bool {
			return pods.Before == pods.After && cpu.Before == cpu.After
		},
		"groups":  groupsOf,
		"crowded": crowded,
		"group":   func(p preview.Place) string { return placeName(p.Pool, p.Zone) },
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

// severityClass is the class of a severity, of those that the style knows.
func severityClass(f diag.Finding) string {
	switch f.Severity {
	case diag.Error:
		return "error"
	case diag.Warning:
		return "warning"
	case diag.Info:
	}
	return "info"
}

func hasTies(list []review.Move) bool {
	for _, m := range list {
		if m.ByTie > 0 {
			return true
		}
	}
	return false
}
