// Package report writes findings and plans for people and for tools.
//
// It maps results, which are plain data, to text on a terminal and to JSON, one
// file for each format of each result. Text names files relative to the
// reader's folder, fits 80 columns and is coloured only where that is asked
// for. The package must not know how results were found, nor decide what a
// command's exit code is.
package report

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// APIVersion is the version of every document of ours. Within one version
// fields are only added.
const APIVersion = "kubectl-sched.github.io/v1alpha1"

// Format is the name of an output format, as -o takes it.
type Format string

// The formats of findings and plans.
const (
	Text Format = "text"
	JSON Format = "json"
	YAML Format = "yaml"
)

// The formats that findings have besides, each for a tool that shows them where
// they belong.
const (
	// SARIF is SARIF 2.1.0, for code scanning and editors.
	SARIF Format = "sarif"
	// GitHub is workflow commands, which GitHub Actions makes annotations of.
	GitHub Format = "github"
	// GitLab is GitLab's code quality report.
	GitLab Format = "gitlab"
	// JUnit is the XML that every CI shows as tests.
	JUnit Format = "junit"
	// RDJSON is the Reviewdog Diagnostic Format.
	RDJSON Format = "rdjson"
)

// ParseFormat returns the format of that name, if it is among the allowed
// ones; the error lists them.
func ParseFormat(name string, allowed ...Format) (Format, error) {
	names := make([]string, len(allowed))
	for i, f := range allowed {
		if string(f) == name {
			return f, nil
		}
		names[i] = string(f)
	}
	return "", fmt.Errorf("unknown output format %q; it is one of: %s", name, strings.Join(names, ", "))
}

// Options says how to write.
type Options struct {
	// Dir is the folder that files are named relative to; empty leaves the
	// names alone.
	Dir string
	// Repository is the folder that files are named relative to in the formats of
	// SARIF, GitHub and GitLab, which look for them from there; empty for Dir.
	Repository string
	// Rule returns what is known of a rule besides its name; nil for nothing.
	Rule func(id string) RuleDoc
	// Version is that of the program, for the formats that say what wrote them.
	Version string
	// Color allows terminal colours.
	Color bool
	// Width is how many columns text may take; 0 for DefaultWidth.
	Width int
	// Now is the time, for what is said of runs that may be going on; zero if that
	// is not known.
	Now time.Time
	// Source returns the text of a file that a finding points into, for the
	// excerpt; false if there is none. Without it there are no excerpts.
	Source func(file string) ([]byte, bool)
	// Names puts the owner's names in the place of the words of an anonymised snapshot,
	// wherever they stand in a text; nil leaves the words.
	Names func(string) string
	// Ignored are findings that somebody has said are meant, for the formats that can
	// say so: SARIF.
	Ignored []diag.Ignored
}

// named returns the text with the owner's names.
func (o Options) named(text string) string {
	if o.Names == nil {
		return text
	}
	return o.Names(text)
}

// table returns an empty table, whose cells will have the owner's names.
func (o Options) table() *table { return &table{names: o.named} }

// RuleDoc is what is known of a rule besides its name. Any of it may be empty.
type RuleDoc struct {
	// Short says in a sentence or two what the rule finds.
	Short string
	// HelpURI is the address of the rule's page.
	HelpURI string
}

func (o Options) rule(id string) RuleDoc {
	if o.Rule == nil {
		return RuleDoc{}
	}
	return o.Rule(id)
}

// DefaultWidth is how many columns text takes if nothing else is said.
const DefaultWidth = 80

// Wrapped returns the text, which may have several lines, in lines of at most
// the options' width; what is broken goes on further in than its line begins.
func (o Options) Wrapped(text string) string {
	lines := strings.Split(o.named(text), "\n")
	for i, line := range lines {
		lead := len(line) - len(strings.TrimLeft(line, " "))
		lines[i] = wrap(line, o.width(), strings.Repeat(" ", lead+4))
	}
	return strings.Join(lines, "\n")
}

func (o Options) width() int {
	if o.Width <= 0 {
		return DefaultWidth
	}
	return o.Width
}

// relative names a file as seen from o.Dir, if it lies below.
func (o Options) relative(file string) string {
	if o.Dir == "" || !filepath.IsAbs(file) {
		return file
	}
	rel, err := filepath.Rel(o.Dir, file)
	if err != nil || !filepath.IsLocal(rel) {
		return file
	}
	return filepath.ToSlash(rel)
}

// Place names a position for people: the file as the options say, the line and
// the column.
func (o Options) Place(p diag.Pos) string { return o.pos(p).String() }

func (o Options) pos(p diag.Pos) diag.Pos {
	p.File = o.relative(p.File)
	return p
}

func (o Options) rng(r diag.Range) diag.Range {
	return diag.Range{Start: o.pos(r.Start), End: o.pos(r.End)}
}
