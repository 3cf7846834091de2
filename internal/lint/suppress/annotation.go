package suppress

import (
	"strings"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Annotation is the annotation of an object that ignores findings about it: lines of
// "RULE REASON".
const Annotation = "kubectl-sched.github.io/ignore"

// Object is an object that may have the annotation.
type Object struct {
	// Ref names the object as the subject of a finding does ("Deployment shop/web").
	Ref string
	// Annotations are the object's own.
	Annotations map[string]string
	// Range is where the object is written, At where its annotation is; zero for an
	// object from a cluster.
	Range, At diag.Range
}

// Of returns the Ignores of an object's annotation: they are for the findings whose
// subject is the object, and those that are in it.
func Of(o Object) ([]Ignore, diag.Findings) {
	value, ok := o.Annotations[Annotation]
	if !ok {
		return nil, nil
	}
	var ignores []Ignore
	var findings diag.Findings
	for line := range strings.Lines(value) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		ignore, f := entry(line, o.At)
		if f != nil {
			f.Subject = o.Ref
			findings = append(findings, *f)
		}
		if ignore == nil {
			continue
		}
		ignore.Subject = o.Ref
		ignore.covers = o.covers
		ignores = append(ignores, *ignore)
	}
	return ignores, findings
}

func (o Object) covers(f diag.Finding) bool {
	if f.Subject == o.Ref || strings.HasPrefix(f.Subject, o.Ref+" (") {
		return true
	}
	return o.Range.Start.Line > 0 && within(f.Range.Start, o.Range.Start.File, o.Range.Start.Line, o.Range.End.Line)
}
