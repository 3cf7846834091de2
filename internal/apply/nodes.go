package apply

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/nodeexpr"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// wantedMarks are the marks that the nodes of a pool are to have.
type wantedMarks struct {
	pool  string
	marks []Mark
	// members are the names of the nodes; those in yielded are not to have the
	// pool's taint, since a pool within it taints them.
	members, yielded []string
	// selector picks nodes besides the members; nil for none.
	selector []corev1.NodeSelectorTerm
	// except are nodes that the selector does not speak of.
	except  []string
	origins []compiler.Origin
}

// marksOf returns the marks that are ours to write, of pools whose nodes nobody
// else makes, and what is to be remembered of those pools.
func marksOf(plan *compiler.Plan) ([]wantedMarks, []PoolItem) {
	var wanted []wantedMarks
	var pools []PoolItem
	for _, effect := range plan.Nodes {
		if effect.ManagedBy != policy.ManagedLive {
			continue
		}
		w := wantedMarks{pool: effect.Pool, members: effect.Members, yielded: effect.Yielded, origins: effect.Origins}
		if effect.Taint != nil {
			w.marks = append(w.marks, Mark{Taint: *effect.Taint})
		}
		for _, key := range slices.Sorted(maps.Keys(effect.Labels)) {
			w.marks = append(w.marks, Mark{Label: key, Value: effect.Labels[key]})
		}
		wanted = append(wanted, w)
		pools = append(pools, PoolItem{Name: effect.Pool, Selector: effect.Selector, Marks: w.marks, Origins: effect.Origins})
	}
	return wanted, pools
}

// of returns the marks that the node is to have for the pool.
func (w wantedMarks) of(node *corev1.Node) []Mark {
	if !slices.Contains(w.members, node.Name) && (slices.Contains(w.except, node.Name) || !selected(w.selector, node)) {
		return nil
	}
	if slices.Contains(w.yielded, node.Name) {
		return slices.DeleteFunc(slices.Clone(w.marks), func(m Mark) bool { return m.Label == "" })
	}
	return w.marks
}

// selected reports whether the node meets any one of the terms.
func selected(terms []corev1.NodeSelectorTerm, node *corev1.Node) bool {
	return slices.ContainsFunc(terms, func(t corev1.NodeSelectorTerm) bool {
		e, err := nodeexpr.FromTerm(t)
		return err == nil && e.Matches(node.Labels, node.Name)
	})
}

// examineNodes compares the wanted marks with those on the nodes. One that
// somebody else put there is not touched, unless it is to be taken over.
func (a *Applier) examineNodes(ctx context.Context, in *intent, cs *ChangeSet) (diag.Findings, error) {
	known := slices.ContainsFunc(in.state.inForce(), func(r *Revision) bool { return len(r.Nodes) > 0 })
	if len(in.nodes) == 0 && !known {
		return nil, nil
	}
	nodes, err := a.listNodes(ctx)
	if err != nil {
		return nil, err
	}
	var findings diag.Findings
	for _, node := range nodes {
		kept := booksOf(node)
		wanted := map[string]bool{}
		for _, w := range in.nodes {
			for _, m := range w.of(node) {
				if wanted[m.key()] {
					// Another pool asks for it as well.
					continue
				}
				wanted[m.key()] = true
				change, finding := a.compareMark(node, kept.of(in.state.Set, m), w, m)
				if finding != nil {
					findings = append(findings, *finding)
				}
				if change != nil {
					cs.Nodes = append(cs.Nodes, *change)
				}
			}
		}
		for _, h := range kept[in.state.Set.Label()] {
			if wanted[h.mark.key()] {
				continue
			}
			change := newNodeChange(node, poolOf(in.state, node, h.mark), h.mark)
			change.Action = Delete
			if !in.prune {
				change.Action = Keep
			}
			cs.Nodes = append(cs.Nodes, change)
		}
	}
	slices.SortStableFunc(cs.Nodes, func(a, b NodeChange) int { return cmp.Compare(a.Name, b.Name) })
	return findings, nil
}

func (a *Applier) listNodes(ctx context.Context) ([]*corev1.Node, error) {
	var nodes []*corev1.Node
	p := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return a.Client.Kube.CoreV1().Nodes().List(ctx, o)
	})
	err := p.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		nodes = append(nodes, o.(*corev1.Node))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	return nodes, nil
}

func newNodeChange(node *corev1.Node, pool string, m Mark) NodeChange {
	return NodeChange{Name: node.Name, UID: node.UID, Pool: pool, Taint: m.Taint, Label: m.Label, Value: m.Value, node: node}
}

// compareMark says what has to be done for one mark on one node; nothing if
// somebody else already put it there.
func (a *Applier) compareMark(node *corev1.Node, ours *holding, w wantedMarks, m Mark) (*NodeChange, *diag.Finding) {
	change := newNodeChange(node, w.pool, m)
	change.Origins = w.origins
	now, present := m.on(node)
	switch {
	case !present:
		change.Action = Create
	case ours != nil && now.is(m) && ours.mark.is(m):
		change.Action = Keep
	case ours != nil:
		change.Action = Update
	case now.is(m):
		return nil, nil
	case a.ForceConflicts:
		change.Action, change.takeOver = Update, true
	default:
		f := markConflict(node, w, m, now)
		return nil, &f
	}
	return &change, nil
}

// markConflict tells of a mark of somebody else's in the place of ours.
func markConflict(node *corev1.Node, w wantedMarks, m, now Mark) diag.Finding {
	f := diag.Finding{
		Rule: "apply/taint-conflict", Severity: diag.Error, Subject: "Node " + node.Name,
		Message: fmt.Sprintf("it has the %s, put there by somebody else, and pool %q asks for %s", now, w.pool, m),
		Fix:     &diag.Fix{Message: "remove that taint, give the pool a taint with another key, or take it over with --force-conflicts"},
	}
	if m.Label != "" {
		f.Rule = "apply/label-conflict"
		f.Fix.Message = "remove that label, give the pool another one, or take it over with --force-conflicts"
	}
	if len(w.origins) > 0 {
		f.Policy, f.Range = w.origins[0].Policy, w.origins[0].Range
	}
	return f
}

// poolOf returns the pool that the mark was last put on the node for.
func poolOf(state *State, node *corev1.Node, m Mark) string {
	for _, r := range slices.Backward(state.Revisions) {
		for _, item := range r.Nodes {
			if item.Name == node.Name && item.mark().key() == m.key() {
				return item.Pool
			}
		}
	}
	return ""
}

// recordedMarks are the marks that a revision had on nodes: those recorded for
// each node, and on nodes that joined later what its pools ask for.
func recordedMarks(r *Revision) []wantedMarks {
	var wanted []wantedMarks
	var then []string
	for _, item := range r.Nodes {
		i := slices.IndexFunc(wanted, func(w wantedMarks) bool { return w.pool == item.Pool && w.marks[0].is(item.mark()) })
		if i < 0 {
			i = len(wanted)
			wanted = append(wanted, wantedMarks{pool: item.Pool, marks: []Mark{item.mark()}})
		}
		wanted[i].members = append(wanted[i].members, item.Name)
		then = append(then, item.Name)
	}
	for _, p := range r.Pools {
		wanted = append(wanted, wantedMarks{pool: p.Name, marks: p.Marks, selector: p.Selector, origins: p.Origins, except: then})
	}
	return wanted
}

// nodeDrifts compares the nodes with what the revision left on them, and finds
// the nodes that have joined its pools since.
func nodeDrifts(r *Revision, nodes map[string]*corev1.Node) []Drift {
	var found []Drift
	marked := map[string]bool{}
	for _, item := range r.Nodes {
		node, m := nodes[item.Name], item.mark()
		marked[item.Name] = true
		if node == nil {
			// Nodes come and go; one that is gone needs no mark.
			continue
		}
		now, present := m.on(node)
		d := Drift{Subject: "Node " + item.Name, Field: m.field()}
		switch {
		case present && now.is(m):
			continue
		case node.UID != item.UID:
			d.Message = fmt.Sprintf("it was made anew, without the %s of pool %q; apply again", m, item.Pool)
		case present:
			d.Message = fmt.Sprintf("the %s of pool %q has become %s; apply again", m, item.Pool, now)
		default:
			d.Message = fmt.Sprintf("the %s of pool %q is gone; apply again", m, item.Pool)
		}
		found = append(found, d)
	}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		if !marked[name] {
			found = append(found, newcomer(r, nodes[name])...)
		}
	}
	return found
}

// newcomer returns what a node that the revision did not write lacks of what its
// pools ask for.
func newcomer(r *Revision, node *corev1.Node) []Drift {
	var found []Drift
	// Of two pools that ask for different values, one has its way.
	satisfied := map[string]bool{}
	for _, p := range r.Pools {
		for _, m := range p.Marks {
			if now, present := m.on(node); present && now.is(m) && selected(p.Selector, node) {
				satisfied[m.key()] = true
			}
		}
	}
	for _, p := range r.Pools {
		if !selected(p.Selector, node) {
			continue
		}
		for _, m := range p.Marks {
			if !satisfied[m.key()] {
				satisfied[m.key()] = true
				found = append(found, Drift{Subject: "Node " + node.Name, Field: m.field(), Message: fmt.Sprintf("it joined pool %q after revision %d and lacks the %s; apply again", p.Name, r.Number, m)})
			}
		}
	}
	return found
}

// samePools reports whether two revisions' pools ask the same of the same nodes.
func samePools(a, b []PoolItem) bool {
	strip := func(pools []PoolItem) []PoolItem {
		pools = slices.Clone(pools)
		for i := range pools {
			pools[i].Origins = nil
		}
		return pools
	}
	return same(plain(strip(a)), plain(strip(b)))
}
