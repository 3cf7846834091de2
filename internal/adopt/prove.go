package adopt

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

// mostRounds bounds how often the compiler is asked. Each round says at least one
// piece in another way, and the pieces of all templates at once, so that a few are
// enough.
const mostRounds = 100

// settle chooses how each piece is said, until the compiler gives all back that
// is said.
func (w *work) settle(ctx context.Context) error {
	w.prepare()
	for w.rounds = 1; w.rounds <= mostRounds; w.rounds++ {
		w.compose()
		if w.leaveUnselected() {
			continue
		}
		changed, err := w.prove(ctx)
		if err != nil || !changed {
			return err
		}
		w.prepare()
	}
	return fmt.Errorf("the proposal does not settle after %d rounds of compiling; this is a fault of this program: please report it with the manifests", mostRounds)
}

// prepare finds the ways to say each piece, and leaves out those that the loader
// would refuse.
func (w *work) prepare() {
	refused := map[string]bool{}
	for _, t := range w.templates {
		for _, p := range t.pieces {
			if p.phrases != nil && !w.poolsChanged {
				continue
			}
			p.phrases = slices.DeleteFunc(w.phrasesFor(t, p), func(ph phrase) bool {
				if ph.key == "" {
					return false
				}
				if _, known := refused[ph.key]; !known {
					refused[ph.key] = w.refuses(ph)
				}
				return refused[ph.key]
			})
			if w.poolsChanged {
				p.choice = 0
			}
		}
	}
	w.poolsChanged = false
}

// refuses reports whether the loader refuses a policy that says the phrase.
func (w *work) refuses(ph phrase) bool {
	p := policy.Policy{Name: "x", Workloads: policy.Workloads{Namespaces: []string{"x"}}, Level: policy.Mandatory}
	ph.add(&p)
	return load.Check(&policy.Placement{Pools: w.policyPools(true), Policies: []policy.Policy{p}}).HasErrors()
}

// leaveUnselected leaves those alone that no policy could select, and reports
// whether there are any.
func (w *work) leaveUnselected() bool {
	selected := map[*template]bool{}
	for _, d := range w.policies {
		for _, t := range d.members {
			selected[t] = true
		}
	}
	found := false
	for _, t := range w.templates {
		says := slices.ContainsFunc(t.pieces, func(p *piece) bool {
			ph := p.phrases[p.choice]
			return ph.rank != unsaid && ph.key != ""
		})
		if t.left == "" && says && !selected[t] {
			t.left, found = "it has no name, and no label tells it from the others", true
		}
	}
	return found
}

// placement is what the policies come to. Their positions are their own paths, so
// that a finding tells which phrase it is about.
func (w *work) placement() *policy.Placement {
	out := &policy.Placement{Pools: w.policyPools(false)}
	for _, d := range w.policies {
		p := d.policy
		p.Positions = pathsOf(&p)
		out.Policies = append(out.Policies, p)
	}
	return out
}

// pathsOf maps each path below the policy to itself.
func pathsOf(p *policy.Policy) policy.Positions {
	out := policy.Positions{}
	at := func(pointer string) diag.Range { return diag.At(diag.Pos{File: pointer, Line: 1, Column: 1}) }
	out[""] = at("")
	var walk func(v any, path []string)
	walk = func(v any, path []string) {
		pointer := policy.Pointer(path...)
		out[pointer] = at(pointer)
		switch x := v.(type) {
		case map[string]any:
			for k, v := range x {
				walk(v, append(path[:len(path):len(path)], k))
			}
		case []any:
			for i, v := range x {
				walk(v, append(path[:len(path):len(path)], fmt.Sprint(i)))
			}
		}
	}
	tree, _ := plainCopy(p).(map[string]any)
	for intent, entries := range map[string]map[string]policy.Colocation{"together": p.Together, "apart": p.Apart} {
		for name, c := range entries {
			if c.Strength == policy.Require {
				delete(tree[intent].(map[string]any)[name].(map[string]any), "weight") // The document does not say it.
			}
		}
	}
	for _, k := range []string{"nodes", "spread", "together", "apart", "tolerate", "priority", "raw"} {
		if v, ok := tree[k]; ok {
			walk(v, []string{k})
		}
	}
	return out
}

// prove compiles the policies into the workloads as they are, which must change
// nothing, and into the workloads without what is said, which must bring it back.
// Pieces for which that fails are said in the next way. It reports whether there
// were any.
func (w *work) prove(ctx context.Context) (bool, error) {
	placement := w.placement()
	c := &comparison{work: w, byName: map[string]*draft{}, members: map[*draft]map[*template]bool{}, byObject: w.byObject(), demoted: map[*piece]bool{}}
	for _, d := range w.policies {
		c.byName[d.policy.Name] = d
		c.members[d] = map[*template]bool{}
		for _, t := range d.members {
			c.members[d][t] = true
		}
	}
	c.judge(load.Check(placement))
	if len(c.demoted) == 0 {
		var taken []*workload.Workload
		for _, o := range w.Workloads {
			taken = append(taken, stripped(o, imported(c.byObject[o])))
		}
		for _, back := range []bool{false, true} {
			workloads := w.Workloads
			if back {
				workloads = taken
			}
			plan, findings := compiler.CompileContext(ctx, compiler.Request{
				Placement: placement, Workloads: workloads, Surface: policy.SurfaceRender, Now: w.Now,
				// What is known of nodes makes findings about the manifests, and changes
				// nothing of what is compiled.
				Capabilities: capability.Capabilities{Minor: w.Capabilities.Minor},
			})
			if err := ctx.Err(); err != nil {
				return false, err
			}
			c.judge(findings)
			c.compare(plan, workloads, back)
		}
	}
	for p := range c.demoted {
		p.choice++
	}
	return len(c.demoted) > 0 || w.poolsChanged, nil
}

// byObject lists the templates of each object.
func (w *work) byObject() map[*workload.Workload][]*template {
	out := map[*workload.Workload][]*template{}
	for _, t := range w.templates {
		out[t.w] = append(out[t.w], t)
	}
	return out
}

// imported are those templates of which something is imported.
func imported(ts []*template) []*template {
	return slices.DeleteFunc(slices.Clone(ts), func(t *template) bool { return t.left != "" })
}

// comparison finds the pieces that must be said otherwise.
type comparison struct {
	*work
	byName   map[string]*draft
	members  map[*draft]map[*template]bool
	byObject map[*workload.Workload][]*template
	demoted  map[*piece]bool
}

// demote has the piece said in the next way, if there is one.
func (c *comparison) demote(p *piece) {
	if p.choice < len(p.phrases)-1 {
		c.demoted[p] = true
	}
}

// demoteIn demotes the pieces of the template that the policy says, of those that
// fit; all of them if none fits.
func (c *comparison) demoteIn(t *template, d *draft, fits func(*piece) bool) {
	var all, some []*piece
	for _, p := range t.pieces {
		ph := p.phrases[p.choice]
		if ph.rank == unsaid || !slices.ContainsFunc(d.phrases, func(o phrase) bool { return o.key == ph.key }) {
			continue
		}
		all = append(all, p)
		if fits(p) {
			some = append(some, p)
		}
	}
	if len(some) == 0 {
		some = all
	}
	for _, p := range some {
		c.demote(p)
	}
}

var inList = regexp.MustCompile(`/[0-9]+(/|$)`)

// judge demotes what errors are about.
func (c *comparison) judge(findings diag.Findings) {
	for _, f := range findings {
		if f.Severity != diag.Error {
			continue
		}
		d := c.byName[f.Policy]
		if d == nil {
			c.dropPools(f)
			continue
		}
		path := inList.ReplaceAllString(f.Range.Start.File, "$1")
		fits := func(p *piece) bool {
			var alone policy.Policy
			p.phrases[p.choice].add(&alone)
			for own := range pathsOf(&alone) {
				if own = inList.ReplaceAllString(own, "$1"); own != "" && (strings.HasPrefix(path+"/", own+"/") && strings.Count(own, "/") > 1 || own == path) {
					return true
				}
			}
			return false
		}
		for _, t := range d.members {
			if f.Subject == "" || strings.HasPrefix(f.Subject, t.w.Ref()) {
				c.demoteIn(t, d, fits)
			}
		}
	}
}

// compare holds what the plan makes of each template against what shall be.
func (c *comparison) compare(plan *compiler.Plan, workloads []*workload.Workload, back bool) {
	templatesOf := map[*workload.Workload][]*template{}
	for i, o := range workloads {
		templatesOf[o] = c.byObject[c.Workloads[i]]
	}
	changed := map[*template]*compiler.Change{}
	for i := range plan.Changes {
		ch := &plan.Changes[i]
		changed[templatesOf[ch.Workload][ch.Template]] = ch
	}
	for _, t := range c.templates {
		ch := changed[t]
		after := t.t.Pods
		if back && t.left == "" {
			after = t.rest()
		}
		var policies []string
		if ch != nil {
			after, policies = ch.After, ch.Policies
		}
		for _, name := range policies {
			if d := c.byName[name]; !c.members[d][t] {
				c.demoteIn(d.members[0], d, func(*piece) bool { return true })
			}
		}
		if t.left != "" {
			continue
		}
		c.compareTemplate(t, ch, pieces(after), back)
	}
}

// compareTemplate compares one template with what came of it.
func (c *comparison) compareTemplate(t *template, ch *compiler.Change, after []*piece, back bool) {
	have := map[string]bool{}
	for _, p := range after {
		have[p.key] = true
	}
	allowed := map[string]bool{}
	for _, p := range t.pieces {
		said := p.phrases[p.choice].rank != unsaid
		want := p.key
		if back && said {
			want = p.want
		}
		allowed[want] = true
		if !back {
			allowed[p.want] = true // Beside what is out of use there is what takes its place.
		}
		if !have[want] && said {
			c.demote(p)
		}
	}
	for _, a := range t.aside {
		allowed[a.key] = true
	}
	for _, p := range after {
		if allowed[p.key] || ch == nil {
			continue
		}
		for _, e := range ch.Effects {
			for _, o := range e.Origins {
				if d := c.byName[o.Policy]; d != nil && p.sort.in(e.Field) {
					c.demoteIn(t, d, func(own *piece) bool { return own.sort == p.sort })
				}
			}
		}
	}
	if ch != nil && !back && len(ch.Effects) > 0 && !slices.ContainsFunc(t.pieces, func(p *piece) bool { return p.change != "" }) {
		for _, e := range ch.Effects {
			for _, o := range e.Origins {
				if d := c.byName[o.Policy]; d != nil {
					c.demoteIn(t, d, func(own *piece) bool { return own.sort.in(e.Field) })
				}
			}
		}
	}
}
