package compiler

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// systemNamespace is matched only by an entry that names it literally.
const systemNamespace = "kube-system"

// verdict is the outcome of a selection that may lack a fact.
type verdict int

const (
	no verdict = iota
	unknown
	yes
)

func verdictOf(b bool) verdict {
	if b {
		return yes
	}
	return no
}

func (v verdict) not() verdict { return yes - v }

func (v verdict) and(o verdict) verdict { return min(v, o) }

// pattern is a literal or a glob as path.Match has it.
type pattern struct {
	text string
	glob bool
}

func isGlob(s string) bool { return strings.ContainsAny(s, `*?[\`) }

func patterns(texts []string) []pattern {
	if texts == nil {
		return nil
	}
	out := make([]pattern, len(texts))
	for i, t := range texts {
		out[i] = pattern{text: t, glob: isGlob(t)}
	}
	return out
}

func (p pattern) matches(s string) bool {
	if !p.glob {
		return p.text == s
	}
	ok, err := path.Match(p.text, s)
	return ok && err == nil
}

func anyMatches(ps []pattern, s string) bool {
	return slices.ContainsFunc(ps, func(p pattern) bool { return p.matches(s) })
}

func allLiteral(ps []pattern) bool {
	return !slices.ContainsFunc(ps, func(p pattern) bool { return p.glob })
}

// labelPattern is what one label must be.
type labelPattern struct {
	key    string
	exists bool
	values []pattern
}

func labelPatterns(m map[string]policy.Values) []labelPattern {
	out := make([]labelPattern, 0, len(m))
	for _, k := range sortedKeys(m) {
		out = append(out, labelPattern{key: k, exists: slices.Contains(m[k], "*"), values: patterns(m[k])})
	}
	return out
}

func (l labelPattern) matches(labels map[string]string) bool {
	v, ok := labels[l.key]
	return ok && (l.exists || anyMatches(l.values, v))
}

func matchLabels(ls []labelPattern, labels map[string]string) bool {
	return !slices.ContainsFunc(ls, func(l labelPattern) bool { return !l.matches(labels) })
}

// kindPattern is "Kind", in whatever group, or "group/Kind".
type kindPattern struct {
	group    *pattern
	kind     pattern
	coreOnly bool
}

func kindPatterns(texts []string) []kindPattern {
	var out []kindPattern
	for _, t := range texts {
		group, kind, ok := strings.Cut(t, "/")
		if !ok {
			out = append(out, kindPattern{kind: pattern{group, isGlob(group)}})
			continue
		}
		out = append(out, kindPattern{
			group:    &pattern{group, isGlob(group)},
			kind:     pattern{kind, isGlob(kind)},
			coreOnly: group == "core",
		})
	}
	return out
}

func (k kindPattern) matches(group, kind string) bool {
	if k.group != nil && !k.group.matches(group) && (!k.coreOnly || group != "") {
		return false
	}
	return k.kind.matches(kind)
}

// selection is policy.Workloads, prepared for many comparisons.
type selection struct {
	namespaces      []pattern
	namespaceLabels []labelPattern
	kinds           []kindPattern
	names           []pattern
	labels          []labelPattern
	podLabels       []labelPattern
	templates       []pattern
	not             *selection
	// negated says that it stands under not, where kube-system is no exception.
	negated bool
}

func newSelection(w policy.Workloads, negated bool) *selection {
	s := &selection{
		namespaces:      patterns(w.Namespaces),
		namespaceLabels: labelPatterns(w.NamespaceLabels),
		kinds:           kindPatterns(w.Kinds),
		names:           patterns(w.Names),
		labels:          labelPatterns(w.Labels),
		templates:       patterns(w.Templates),
		negated:         negated,
	}
	if w.Pods != nil {
		s.podLabels = labelPatterns(w.Pods.Labels)
	}
	if w.Not != nil {
		s.not = newSelection(*w.Not, true)
	}
	return s
}

// namespace says whether workloads of the namespace can be selected.
func (s *selection) namespace(f facts, name string) verdict {
	if !s.negated && name == systemNamespace && !slices.Contains(s.namespaces, pattern{text: systemNamespace}) {
		return no
	}
	if s.namespaces != nil && !anyMatches(s.namespaces, name) {
		return no
	}
	return f.namespaceHas(name, s.namespaceLabels)
}

func (s *selection) kind(group, kind string) bool {
	return s.kinds == nil || slices.ContainsFunc(s.kinds, func(k kindPattern) bool { return k.matches(group, kind) })
}

// rest says whether the template is selected, for a namespace and a kind that
// are already known to be.
func (s *selection) rest(f facts, w *workload.Workload, t *workload.Template) verdict {
	if s.names != nil && !anyMatches(s.names, w.Name) ||
		!matchLabels(s.labels, w.Labels) ||
		!matchLabels(s.podLabels, t.Labels) ||
		s.templates != nil && !anyMatches(s.templates, t.Name) {
		return no
	}
	if s.not != nil {
		return s.not.selects(f, w, t).not()
	}
	return yes
}

// selects says whether the template is selected.
func (s *selection) selects(f facts, w *workload.Workload, t *workload.Template) verdict {
	if !s.kind(w.Group, w.Kind) {
		return no
	}
	v := s.namespace(f, w.Namespace)
	if v == no {
		return no
	}
	return v.and(s.rest(f, w, t))
}

// namespaceHas says whether the namespace has the labels. Every namespace has
// its name as a label; of one that does not exist (yet) that is all.
func (f facts) namespaceHas(name string, want []labelPattern) verdict {
	if len(want) == 0 {
		return yes
	}
	labels, known := f.Namespaces[name]
	out := yes
	for _, l := range want {
		switch {
		case l.key == corev1.LabelMetadataName:
			out = out.and(verdictOf(l.exists || anyMatches(l.values, name)))
		case known || f.NamespacesKnown:
			out = out.and(verdictOf(l.matches(labels)))
		default:
			out = out.and(unknown)
		}
	}
	return out
}
