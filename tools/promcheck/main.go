// Command promcheck reads Prometheus rules and expressions with Prometheus' own
// parser, and prints which metrics and labels they ask for. It is in a module of its
// own, so that Prometheus adds nothing to ours.
//
// It reads an Input as JSON on standard input and writes an Output to standard output.
// It must not know which metrics there are: whoever runs it compares.
package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// Input is what is to be read.
type Input struct {
	// Rules is a rule file.
	Rules string `json:"rules"`
	// Expressions are expressions by what they are called.
	Expressions map[string]string `json:"expressions"`
}

// Output is what came of it.
type Output struct {
	// Errors are mistakes in rules and expressions.
	Errors []string `json:"errors"`
	// Series are the metrics that rules and expressions ask for.
	Series []Series `json:"series"`
}

// Series is one selector.
type Series struct {
	// Of is the rule or the expression.
	Of string `json:"of"`
	// Metric is the metric's name.
	Metric string `json:"metric"`
	// Labels are the labels that it must have.
	Labels []string `json:"labels"`
	// Equal are the values that labels must have.
	Equal map[string]string `json:"equal"`
}

func main() {
	var in Input
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		fmt.Fprintln(os.Stderr, "promcheck: read the input:", err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(check(in)); err != nil {
		fmt.Fprintln(os.Stderr, "promcheck:", err)
		os.Exit(1)
	}
}

func check(in Input) Output {
	out := Output{Errors: []string{}}
	p := parser.NewParser(parser.Options{})
	expressions := maps.Clone(in.Expressions)
	if expressions == nil {
		expressions = map[string]string{}
	}
	groups, errs := rulefmt.Parse([]byte(in.Rules), false, model.UTF8Validation, p, slog.New(slog.DiscardHandler))
	for _, err := range errs {
		out.Errors = append(out.Errors, err.Error())
	}
	if groups != nil {
		for _, g := range groups.Groups {
			for _, r := range g.Rules {
				expressions["alert "+r.Alert+r.Record] = r.Expr
			}
		}
	}
	for _, of := range slices.Sorted(maps.Keys(expressions)) {
		expr, err := p.ParseExpr(expressions[of])
		if err != nil {
			out.Errors = append(out.Errors, of+": "+err.Error())
			continue
		}
		out.Series = append(out.Series, series(of, expr, nil)...)
	}
	return out
}

// series returns the selectors in node, which must have what is grouped by above them.
func series(of string, node parser.Node, by []string) (all []Series) {
	switch n := node.(type) {
	case *parser.AggregateExpr:
		if !n.Without {
			by = slices.Concat(by, n.Grouping)
		}
	case *parser.BinaryExpr:
		var on []string
		if m := n.VectorMatching; m != nil && m.On {
			on = m.MatchingLabels
		}
		left, right := slices.Concat(by, on), slices.Concat(by, on)
		if n.Op == parser.LAND || n.Op == parser.LUNLESS {
			right = on // only whether there is something counts of it
		}
		return append(series(of, n.LHS, left), series(of, n.RHS, right)...)
	case *parser.VectorSelector:
		s := Series{Of: of, Metric: n.Name, Labels: slices.Clone(by), Equal: map[string]string{}}
		for _, m := range n.LabelMatchers {
			if m.Name == model.MetricNameLabel {
				continue
			}
			s.Labels = append(s.Labels, m.Name)
			if m.Type == labels.MatchEqual {
				s.Equal[m.Name] = m.Value
			}
		}
		slices.Sort(s.Labels)
		s.Labels = slices.Compact(s.Labels)
		return []Series{s}
	}
	for child := range parser.ChildrenIter(node) {
		all = append(all, series(of, child, by)...)
	}
	return all
}
