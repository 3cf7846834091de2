package compiler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// missed is a policy or a pool that a workload is left out of only because nobody
// said in which namespace it is.
type missed struct {
	// of is "policy" or "pool".
	of, name string
	// at is where namespaces are asked for.
	at diag.Range
}

// miss notes what a workload misses, once.
func (c *compilation) miss(w *workload.Workload, m missed) {
	if c.unsaid == nil {
		c.unsaid = map[*workload.Workload][]missed{}
	}
	if !slices.Contains(c.unsaid[w], m) {
		c.unsaid[w] = append(c.unsaid[w], m)
	}
}

// elsewhere finds the policies that select a workload in other namespaces.
type elsewhere struct {
	c *compilation
	x *index
	// misses are what is missed where a policy does not select.
	misses map[*policy.Policy]missed
}

// elsewhere returns nil where every workload's namespace is known.
func (c *compilation) elsewhere() *elsewhere {
	if !slices.ContainsFunc(c.Workloads, func(w *workload.Workload) bool { return w.NamespaceUnsaid }) {
		return nil
	}
	e := &elsewhere{c: c, misses: map[*policy.Policy]missed{}}
	var anywhere []*rule
	for _, r := range c.rules {
		if path := r.selects.namespacePath(); path != nil {
			anywhere = append(anywhere, &rule{Policy: r.Policy, anchors: r.anchors, selects: r.selects.anyNamespace()})
			e.misses[r.Policy] = missed{"policy", r.Name, r.author.at(append([]string{"workloads"}, path...)...)}
		}
	}
	e.x = newIndex(c.facts, anywhere)
	return e
}

// notePolicies notes the policies that select the template in some namespace, and
// did not here; whether uncertain ones do, only the admission surface finds out.
func (e *elsewhere) notePolicies(w *workload.Workload, t *workload.Template, selected, uncertain []*rule) {
	if e == nil || !w.NamespaceUnsaid {
		return
	}
	if e.c.admitting() {
		selected = slices.Concat(selected, uncertain)
	}
	somewhere, _ := e.x.matching(w, t)
	for _, r := range somewhere {
		if !slices.ContainsFunc(selected, func(s *rule) bool { return s.Policy == r.Policy }) {
			e.c.miss(w, e.misses[r.Policy])
		}
	}
}

// namespacePath returns where the selection asks for namespaces; nil if it does not.
func (s *selection) namespacePath() []string {
	switch {
	case s.namespaces != nil:
		return []string{"namespaces"}
	case len(s.namespaceLabels) > 0:
		return []string{"namespaceLabels"}
	case s.not != nil:
		if path := s.not.namespacePath(); path != nil {
			return append([]string{"not"}, path...)
		}
	}
	return nil
}

// anyNamespace returns what is selected in some namespace or other.
func (s *selection) anyNamespace() *selection {
	out := *s
	out.namespaces, out.namespaceLabels = nil, nil
	if s.not != nil && s.not.namespacePath() != nil {
		// What it leaves out in some namespaces it leaves in others.
		out.not = nil
	}
	return &out
}

// noteGrant notes the pool that would grant the template its nodes in some
// namespace, and does not here.
func (c *compilation) noteGrant(p *pool, w *workload.Workload, t *workload.Template) {
	if !w.NamespaceUnsaid {
		return
	}
	anywhere := &grants{accounts: slices.Clone(p.grants.accounts)}
	for i := range anywhere.accounts {
		anywhere.accounts[i].namespace = nil
	}
	if _, v := anywhere.lacks(c.facts, w, t); v != yes {
		return
	}
	field := "namespaces"
	switch {
	case p.grants.namespaces != nil:
	case p.grants.namespaceLabels != nil:
		field = "namespaceLabels"
	default:
		field = "serviceAccounts"
	}
	c.miss(w, missed{"pool", p.Name, p.Positions.At("dedicated", "grants", field)})
}

// mostPlaces is how many places are shown of those that a workload misses: in a large
// document nearly every policy may ask for a namespace.
const mostPlaces = 3

// reportUnsaidNamespaces warns of each workload that is left out for want of a
// namespace, as what is rendered by helm is: nothing would come of it, without a word.
func (c *compilation) reportUnsaidNamespaces() {
	for _, w := range c.Workloads {
		all := c.unsaid[w]
		if len(all) == 0 {
			continue
		}
		var policies, pools []string
		var related []diag.Related
		for _, m := range all {
			words := "policy %q selects by namespace"
			if m.of == "pool" {
				words = "pool %q is granted by namespace"
				pools = append(pools, m.name)
			} else {
				policies = append(policies, m.name)
			}
			if len(related) < mostPlaces {
				related = append(related, diag.Related{Range: m.at, Message: fmt.Sprintf(words, m.name)})
			}
		}
		var out []string
		if len(policies) > 0 {
			out = append(out, leftOut(policies, "policy", "policies", "does not select it", "do not select it"))
		}
		if len(pools) > 0 {
			out = append(out, leftOut(pools, "pool", "pools", "is not granted to it", "are not granted to it"))
		}
		c.report(finding{
			rule: "workload/no-namespace", severity: warning, subject: w.Ref(), at: w.Source.At("metadata", "namespace"), related: related,
			message: fmt.Sprintf("it names no namespace and counts as one of %q, where %s; set metadata.namespace, or say which one it goes to", w.Namespace, strings.Join(out, " and ")),
			fix:     &diag.Fix{Message: "name the namespace with -n (for a KRM function, with spec.namespace)"},
		})
	}
}

// leftOut says of one or of several what they do not do.
func leftOut(names []string, one, many, does, do string) string {
	if len(names) == 1 {
		return fmt.Sprintf("%s %q %s", one, names[0], does)
	}
	return fmt.Sprintf("%s %s %s", many, quoted(names), do)
}
