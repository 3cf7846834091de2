package adopt

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

// document writes the proposal as CUE, in CUE's own form.
func (w *work) document() ([]byte, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "// Placement as it was found, made by \"kubectl sched import\". It compiles to the\n"+
		"// same fields; docs/adoption.md says how to go on.\npackage %s\n\nimport %q\n\n", w.Package, policy.ModulePath+"/policy")
	b.WriteString("// These tie the fields below to the schema, so that plain \"cue vet\" and the\n// editor check them too.\n")
	b.WriteString("pools: [string]: policy.#Pool\npolicies: [string]: policy.#Policy\n")
	pools := w.policyPools(false)
	if len(pools) > 0 {
		b.WriteString("\npools: {\n")
		for i := range pools {
			comment(&b, w.poolComment(pools[i].Name))
			fmt.Fprintf(&b, "%s: %s\n", label(pools[i].Name), cueOf(poolTree(&pools[i])))
		}
		b.WriteString("}\n")
	}
	if len(w.policies) > 0 {
		b.WriteString("\npolicies: {\n")
		for i, d := range w.policies {
			if i > 0 {
				b.WriteString("\n")
			}
			comment(&b, d.comment())
			fmt.Fprintf(&b, "%s: %s\n", label(d.policy.Name), cueOf(policyTree(&d.policy)))
		}
		b.WriteString("}\n")
	}
	return load.Format([]byte(b.String()), "imported.cue")
}

// commentWidth is how long a line of a comment may be.
const commentWidth = 76

// comment writes a text as comment lines.
func comment(b *strings.Builder, paragraphs []string) {
	for _, text := range paragraphs {
		line := ""
		for _, w := range strings.Fields(printable(text)) {
			if line != "" && len(line)+1+len(w) > commentWidth {
				fmt.Fprintln(b, "//", line)
				line = ""
			}
			line = strings.TrimPrefix(line+" "+w, " ")
		}
		if line != "" {
			fmt.Fprintln(b, "//", line)
		}
	}
}

// printable replaces what could end a comment or hide in it.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x2028 || r == 0x2029 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0xfeff || r == '\uFFFD' {
			return '?'
		}
		return r
	}, text)
}

// shown is how many workloads a comment names.
const shown = 3

// comment is what the policy's comment says.
func (d *draft) comment() []string {
	refs := refsOf(d.members)
	texts := make([]string, 0, shown)
	for _, t := range d.members[:min(shown, len(d.members))] {
		texts = append(texts, t.ref()+t.where())
	}
	found := strings.Join(texts, ", ")
	if more := len(refs) - len(texts); more > 0 {
		found += fmt.Sprintf(" and %d more", more)
	}
	found = fmt.Sprintf("Found in %s: %s.", count(len(refs), "workload"), found)
	if len(refs) == 1 {
		found = "Found in " + texts[0] + "."
	}
	out := []string{found}
	var whys []string
	for _, p := range d.phrases {
		if p.rank == byRaw && !slices.Contains(whys, p.why) {
			whys = append(whys, p.why)
			out = append(out, "raw: "+p.why+".")
		}
	}
	return out
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// ref names the template.
func (t *template) ref() string {
	if len(t.w.Templates) > 1 && t.t.Name != "" {
		return fmt.Sprintf("%s (%s)", t.w.Ref(), t.t.Name)
	}
	return t.w.Ref()
}

// where says in what file and line the object begins; empty for one of a cluster.
func (t *template) where() string {
	at := t.w.Source.At()
	switch {
	case at.Start.File == "":
		return ""
	case at.Start.File == "-":
		return fmt.Sprintf(" (standard input, line %d)", at.Start.Line)
	case at.Start.Line == 0:
		return fmt.Sprintf(" (%s)", at.Start.File)
	}
	return fmt.Sprintf(" (%s:%d)", at.Start.File, at.Start.Line)
}

func refsOf(ts []*template) []string {
	out := make([]string, len(ts))
	for i, t := range ts {
		out[i] = t.ref()
	}
	return out
}

// policyTree is the policy as a document says it, without what is a default.
func policyTree(p *policy.Policy) *tree {
	out := &tree{}
	out.add("workloads", p.Workloads)
	if p.Level == policy.Default {
		out.add("level", p.Level)
	}
	if p.Nodes != nil {
		out.add("nodes", p.Nodes)
	}
	if len(p.Spread) > 0 {
		entries := &tree{}
		for _, name := range sortedKeys(p.Spread) {
			s := p.Spread[name]
			e := &tree{}
			if s.MaxSkew != 1 {
				e.add("maxSkew", s.MaxSkew)
			}
			e.add("strength", s.Strength)
			if s.MinDomains != nil {
				e.add("minDomains", *s.MinDomains)
			}
			e.subject(s.Of)
			e.plain(s.Plain)
			entries.add(name, e)
		}
		out.add("spread", entries)
	}
	out.colocations("together", p.Together)
	out.colocations("apart", p.Apart)
	if p.Tolerate != nil {
		out.add("tolerate", p.Tolerate)
	}
	if p.Priority != nil {
		out.add("priority", p.Priority)
	}
	if p.Raw != nil {
		out.add("raw", p.Raw)
	}
	return out
}

func (t *tree) subject(s policy.Subject) {
	if s.Kind == policy.ByLabels {
		t.add("of", s)
	}
}

func (t *tree) plain(plain bool) {
	if plain {
		t.add("plain", true)
	}
}

func (t *tree) colocations(intent string, all map[string]policy.Colocation) {
	if len(all) == 0 {
		return
	}
	entries := &tree{}
	for _, name := range sortedKeys(all) {
		c := all[name]
		e := &tree{}
		if c.On != "node" {
			e.add("on", c.On)
		}
		e.add("strength", c.Strength)
		if c.Strength == policy.Prefer && c.Weight != defaultWeight {
			e.add("weight", c.Weight)
		}
		e.subject(c.Of)
		e.plain(c.Plain)
		entries.add(name, e)
	}
	t.add(intent, entries)
}

func poolTree(p *policy.Pool) *tree {
	out := &tree{}
	out.add("nodes", p.Nodes)
	if p.Dedicated != nil {
		dedicated := *p.Dedicated
		dedicated.Guard = "" // It is off where nothing is said.
		out.add("dedicated", dedicated)
	}
	if p.ManagedBy != policy.ManagedNodeGroup {
		out.add("managedBy", p.ManagedBy)
	}
	if p.Karpenter != nil {
		out.add("karpenter", p.Karpenter)
	}
	if p.NodeGroup != nil {
		out.add("nodeGroup", p.NodeGroup)
	}
	return out
}
