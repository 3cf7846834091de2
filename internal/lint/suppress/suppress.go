// Package suppress lets people say where a finding is wanted as it is, and why.
//
// It maps the comments of policies and manifests, and annotations of objects, to
// Ignores, and takes the findings away that they are for. What is wrong with an
// Ignore (it has no reason, its rule is unknown, nothing is there to ignore) is a
// finding in turn. The package must not know where texts and objects come from, nor
// how findings are printed.
package suppress

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Ignore is what one place says is to be ignored.
type Ignore struct {
	// Rule is whose findings are ignored, Reason why.
	Rule, Reason string
	// Range is where it is written: the comment, or the annotation.
	Range diag.Range
	// Subject is the object that it is on, or empty.
	Subject string

	covers func(diag.Finding) bool
	// remove is how to take it out; nil where that is not known.
	remove *diag.Fix
}

// The rules of what is wrong with an Ignore.
const (
	// NoReason is for one that does not say why; it ignores nothing.
	NoReason = "ignore/no-reason"
	// UnknownRule is for one whose rule there is not.
	UnknownRule = "ignore/unknown-rule"
	// Unused is for one without a finding.
	Unused = "ignore/unused"
	// Impossible is for one of an error that stops compile and apply.
	Impossible = "ignore/impossible"
	// Malformed is for what begins as one and goes on otherwise.
	Malformed = "ignore/malformed"
)

// Rules is what must be known of rules.
type Rules struct {
	// Known are the names of all rules.
	Known []string
	// Fatal reports whether a finding stops the program, so that it cannot be ignored.
	Fatal func(diag.Finding) bool
	// Ran reports whether a rule had all that it needs, and looked: only then is an
	// Ignore of it that has nothing to ignore not needed.
	Ran func(rule string) bool
}

// Apply returns the findings that no Ignore takes away, with those about the Ignores
// themselves, sorted, and those that were taken away.
func Apply(findings diag.Findings, ignores []Ignore, rules Rules) (left diag.Findings, ignored []diag.Ignored) {
	used, impossible := make([]bool, len(ignores)), make([]*diag.Finding, len(ignores))
	last := -1 // the Ignore that hides what was asked for last
	hide := func(f diag.Finding) bool {
		hidden := false
		for i, ignore := range ignores {
			if ignore.Rule != f.Rule || !ignore.covers(f) {
				continue
			}
			used[i] = true
			if rules.Fatal(f) {
				impossible[i] = &f
			} else {
				hidden, last = true, i
			}
		}
		return hidden
	}
	for _, f := range findings {
		whole := f
		if hide(f) || !keepSubjects(&f, hide) {
			ignored = append(ignored, diag.Ignored{Finding: whole, Reason: ignores[last].Reason, Range: ignores[last].Range})
		} else {
			left = append(left, f)
		}
	}
	for i, ignore := range ignores {
		switch {
		case !slices.Contains(rules.Known, ignore.Rule):
			left = append(left, ignore.unknown(rules.Known))
		case impossible[i] != nil:
			f := ignore.finding(Impossible, fmt.Sprintf("the error of %q stops compile and apply, and cannot be ignored; mend it", ignore.Rule))
			f.Related = []diag.Related{{Range: impossible[i].Range, Message: "the error"}}
			left = append(left, f)
		case !used[i] && rules.Ran(ignore.Rule):
			f := ignore.finding(Unused, fmt.Sprintf("there is no finding of %q here to ignore; take this out", ignore.Rule))
			f.Fix = ignore.remove
			left = append(left, f)
		}
	}
	return left.Sort(), ignored
}

// keepSubjects takes those subjects off a finding about several that hide picks, and
// reports whether any is left.
func keepSubjects(f *diag.Finding, hide func(diag.Finding) bool) bool {
	var left []string
	for _, subject := range f.Subjects {
		one := *f
		one.Subject, one.Subjects = subject, nil
		if !hide(one) {
			left = append(left, subject)
		}
	}
	if len(left) == len(f.Subjects) {
		return true
	}
	f.Subject, f.Subjects = diag.JoinSubjects(left), left
	if len(left) == 1 {
		f.Subjects = nil
	}
	return len(left) > 0
}

func (i Ignore) finding(rule, message string) diag.Finding {
	return diag.Finding{Rule: rule, Severity: diag.Warning, Range: i.Range, Subject: i.Subject, Message: message}
}

func (i Ignore) unknown(known []string) diag.Finding {
	message := fmt.Sprintf("there is no rule %q", i.Rule)
	if near, ok := diag.Nearest(i.Rule, known); ok {
		message += fmt.Sprintf("; did you mean %q?", near)
	} else {
		message += "; copy the name from the end of the finding"
	}
	return i.finding(UnknownRule, message)
}

// directive is what a comment begins with that is meant for us.
const (
	directivePrefix = "sched:"
	directive       = directivePrefix + "ignore"
)

// parse reads the text of a comment. It is not for us where neither an Ignore nor a
// finding comes of it.
func parse(text string, at diag.Range) (*Ignore, *diag.Finding) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, directivePrefix) {
		return nil, nil
	}
	word, rest := cutSpace(text)
	if next, _ := cutSpace(rest); word == directivePrefix && next != strings.TrimPrefix(directive, directivePrefix) {
		return nil, nil // somebody's own words
	}
	if word != directive {
		f := Ignore{Range: at}.finding(Malformed, fmt.Sprintf("unknown comment %q; it is \"%s RULE REASON\"", word, directive))
		return nil, &f
	}
	return entry(rest, at)
}

// entry reads "RULE REASON".
func entry(text string, at diag.Range) (*Ignore, *diag.Finding) {
	rule, reason := cutSpace(strings.TrimSpace(text))
	ignore := Ignore{Rule: rule, Reason: reason, Range: at}
	switch {
	case rule == "":
		f := ignore.finding(Malformed, fmt.Sprintf("say what to ignore and why: \"%s RULE REASON\"", directive))
		return nil, &f
	case !strings.ContainsFunc(ignore.Reason, unicode.IsLetter):
		f := ignore.finding(NoReason, fmt.Sprintf("say behind the rule why %q is ignored here; without a reason it is not", rule))
		return nil, &f
	}
	return &ignore, nil
}

// cutSpace cuts the text around its first white space.
func cutSpace(s string) (before, after string) {
	i := strings.IndexAny(s, " \t")
	if i < 0 {
		return s, ""
	}
	return s[:i], strings.TrimSpace(s[i:])
}
