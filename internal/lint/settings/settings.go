// Package settings says how much the findings of each rule weigh in a repository.
//
// It maps a settings file and flags to severities by rule, and findings to the same
// with those severities. The package must not know what rules look for, nor read
// files.
package settings

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/lint/suppress"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/yamldoc"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// FileName is the name of the settings file.
const FileName = ".kubectl-sched.yaml"

// What a settings file begins with.
const (
	APIVersion = "kubectl-sched.github.io/v1alpha1"
	Kind       = "LintSettings"
)

// Off is the severity of a rule whose findings are not wanted at all.
const Off diag.Severity = "off"

var severities = []string{string(diag.Error), string(diag.Warning), string(diag.Info), string(Off)}

// Settings is what a file and the flags say.
type Settings struct {
	// Severity is that of the findings of a rule, in the place of the rule's own.
	Severity map[string]Override
	// Baseline is the file of known findings, relative to the settings file; empty for
	// none.
	Baseline string
}

// Override is the severity of a rule's findings.
type Override struct {
	Severity diag.Severity
	// Range is where it is said; zero for a flag.
	Range diag.Range
}

// Find returns the settings file that is nearest to a folder, upward to the root of
// the git repository that it is in; outside of a repository only the folder itself
// counts. It returns false if there is none.
func Find(dir string) (string, bool) {
	var found string
	for at := dir; ; at = filepath.Dir(at) {
		if info, err := os.Stat(filepath.Join(at, FileName)); found == "" && err == nil && info.Mode().IsRegular() {
			found = filepath.Join(at, FileName)
		}
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil {
			return found, found != ""
		}
		if at == filepath.Dir(at) {
			own := filepath.Join(dir, FileName)
			return own, found == own
		}
	}
}

// Flag reads "RULE=SEVERITY".
func Flag(text string, known []string) (rule string, o Override, err error) {
	rule, severity, ok := strings.Cut(text, "=")
	if !ok {
		return "", o, fmt.Errorf("%q is not RULE=SEVERITY", text)
	}
	if problem := unknownRule(rule, known); problem != "" {
		return "", o, errors.New(problem)
	}
	if problem := unknownSeverity(severity); problem != "" {
		return "", o, errors.New(problem)
	}
	return rule, Override{Severity: diag.Severity(severity)}, nil
}

func unknownRule(rule string, known []string) string {
	if slices.Contains(known, rule) {
		return ""
	}
	problem := fmt.Sprintf("there is no rule %q", rule)
	if near, ok := diag.Nearest(rule, known); ok {
		problem += fmt.Sprintf("; did you mean %q?", near)
	}
	return problem
}

func unknownSeverity(severity string) string {
	if slices.Contains(severities, severity) {
		return ""
	}
	return fmt.Sprintf("there is no severity %q; it is one of %s", severity, strings.Join(severities, ", "))
}

// Parse reads a settings file. Everything in it that is not known is an error; known
// are the rules that there are.
func Parse(file string, data []byte, known []string) (Settings, diag.Findings) {
	p := &parser{file: file, known: known, out: Settings{Severity: map[string]Override{}}}
	docs := yamldoc.Split(data)
	p.doc = docs[0]
	if len(docs) > 1 {
		p.doc = docs[1]
		p.complain(&yamldoc.Node{Start: docs[1].Start, End: docs[1].Start}, "there is more than one document; write all settings in one")
		return p.out, p.findings
	}
	if problem := yamldoc.CheckText(data); problem != nil {
		p.problem(problem)
		return p.out, p.findings
	}
	root, _, err := p.doc.TreeValue()
	if err != nil {
		p.problem(err)
		return p.out, p.findings
	}
	p.settings(root)
	return p.out, p.findings
}

type parser struct {
	file     string
	known    []string
	doc      yamldoc.Doc
	out      Settings
	findings diag.Findings
}

const rule = "input/settings"

func (p *parser) problem(err error) {
	f := diag.Finding{Rule: rule, Severity: diag.Error, Range: diag.At(diag.Pos{File: p.file}), Message: err.Error()}
	var problem *yamldoc.Problem
	if errors.As(err, &problem) {
		f.Range = diag.At(diag.Pos{File: p.file, Line: problem.Line, Column: problem.Column})
		f.Message = problem.Message
	}
	p.findings = append(p.findings, f)
}

func (p *parser) at(n *yamldoc.Node) diag.Range {
	position := func(offset int) diag.Pos {
		line, column := p.doc.Position(offset)
		return diag.Pos{File: p.file, Line: line, Column: column}
	}
	return diag.Range{Start: position(n.Start), End: position(n.End)}
}

func (p *parser) complain(n *yamldoc.Node, message string) {
	p.findings = append(p.findings, diag.Finding{Rule: rule, Severity: diag.Error, Range: p.at(n), Message: message})
}

// fields calls do for each entry of a mapping.
func (p *parser) fields(n *yamldoc.Node, what string, do func(name string, key, value *yamldoc.Node)) {
	if n == nil || n.Kind != yamldoc.Mapping {
		if n == nil {
			n = &yamldoc.Node{Start: p.doc.Start, End: p.doc.Start}
		}
		p.complain(n, what+" is not written as names with values")
		return
	}
	seen := map[string]bool{}
	for i, key := range n.Keys {
		name, ok := yamldoc.KeyOf(key)
		switch {
		case !ok:
			p.complain(key, "this is no name")
		case seen[name]:
			p.complain(key, fmt.Sprintf("%q is there twice", name))
		default:
			seen[name] = true
			do(name, key, n.Values[i].Resolve())
		}
	}
}

func (p *parser) settings(root *yamldoc.Node) {
	var version, kind bool
	readers := map[string]func(value *yamldoc.Node){
		"apiVersion": func(n *yamldoc.Node) { version = p.constant(n, APIVersion) },
		"kind":       func(n *yamldoc.Node) { kind = p.constant(n, Kind) },
		"severity":   p.severity,
		"baseline":   p.baseline,
	}
	before := len(p.findings)
	p.fields(root, "the file", func(name string, key, value *yamldoc.Node) {
		read, ok := readers[name]
		if ok {
			read(value)
			return
		}
		message := fmt.Sprintf("unknown field %q", name)
		names := slices.Sorted(maps.Keys(readers))
		if near, ok := diag.Nearest(name, names); ok {
			message += fmt.Sprintf("; did you mean %q?", near)
		} else {
			message += "; allowed are " + strings.Join(names, ", ")
		}
		p.complain(key, message)
	})
	if len(p.findings) == before && (!version || !kind) {
		p.complain(root, fmt.Sprintf("the file must begin with apiVersion: %s and kind: %s", APIVersion, Kind))
	}
}

func (p *parser) constant(n *yamldoc.Node, want string) bool {
	if n.Kind == yamldoc.Scalar && n.Value == want {
		return true
	}
	p.complain(n, fmt.Sprintf("this must be %q", want))
	return false
}

func (p *parser) severity(n *yamldoc.Node) {
	p.fields(n, "severity", func(name string, key, value *yamldoc.Node) {
		if problem := unknownRule(name, p.known); problem != "" {
			p.complain(key, problem)
			return
		}
		text, ok := value.Value.(string)
		if value.Value == false {
			text, ok = string(Off), true // what YAML makes of a plain off
		}
		switch {
		case value.Kind != yamldoc.Scalar || !ok:
			p.complain(value, "this is no severity; it is one of "+strings.Join(severities, ", "))
		case unknownSeverity(text) != "":
			p.complain(value, unknownSeverity(text))
		default:
			p.out.Severity[name] = Override{diag.Severity(text), p.at(key)}
		}
	})
}

func (p *parser) baseline(n *yamldoc.Node) {
	text, ok := n.Value.(string)
	if n.Kind != yamldoc.Scalar || !ok || !filepath.IsLocal(text) {
		p.complain(n, "the baseline must be a file in this folder or below")
		return
	}
	p.out.Baseline = text
}

// Apply returns the findings with the severities of the settings, sorted. An error
// that fatal picks stays one; that an override would have it otherwise is a finding.
func (s Settings) Apply(findings diag.Findings, fatal func(diag.Finding) bool) diag.Findings {
	left := make(diag.Findings, 0, len(findings))
	kept := map[string]diag.Finding{}
	for _, f := range findings {
		o, ok := s.Severity[f.Rule]
		switch {
		case !ok:
		case o.Severity != diag.Error && fatal(f):
			if _, seen := kept[f.Rule]; !seen {
				kept[f.Rule] = f
			}
		case o.Severity == Off:
			continue
		default:
			f.Severity = o.Severity
		}
		left = append(left, f)
	}
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		o := s.Severity[name]
		left = append(left, diag.Finding{
			Rule: suppress.Impossible, Severity: diag.Warning, Range: o.Range,
			Message: fmt.Sprintf("the errors of %q stop compile and apply, and cannot be %q; mend them", name, o.Severity),
			Related: []diag.Related{{Range: kept[name].Range, Message: "the first of them"}},
		})
	}
	return left.Sort()
}
