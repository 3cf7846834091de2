package apply

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/pager"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// taintsAnnotation lists, on a node, which of its taints are ours: a JSON map
// from the label of a set to its taints. Taints are one list to the API server,
// with no owner for each, so we keep the books ourselves.
const taintsAnnotation = "kubectl-sched.github.io/taints"

// wantedTaint is a taint that the nodes of a pool are to have.
type wantedTaint struct {
	pool    string
	taint   corev1.Taint
	members []string
	origins []compiler.Origin
}

// taintsOf returns the taints that are ours to write: those of pools whose nodes
// nobody else makes.
func taintsOf(plan *compiler.Plan) []wantedTaint {
	var wanted []wantedTaint
	for _, effect := range plan.Nodes {
		if effect.ManagedBy == policy.ManagedLive && effect.Taint != nil {
			wanted = append(wanted, wantedTaint{effect.Pool, *effect.Taint, effect.Members, effect.Origins})
		}
	}
	return wanted
}

// examineNodes compares the wanted taints with those on the nodes. A taint that
// somebody else put there is never touched.
func (a *Applier) examineNodes(ctx context.Context, in *intent, cs *ChangeSet) (diag.Findings, error) {
	known := slices.ContainsFunc(in.state.inForce(), func(r *Revision) bool { return len(r.Nodes) > 0 })
	if len(in.taints) == 0 && !known {
		return nil, nil
	}
	nodes, err := a.listNodes(ctx)
	if err != nil {
		return nil, err
	}
	var findings diag.Findings
	for _, node := range nodes {
		ours := taintsOfSet(node, in.state.Set)
		wanted := map[string]bool{}
		for _, w := range in.taints {
			if !slices.Contains(w.members, node.Name) {
				continue
			}
			wanted[taintKey(w.taint)] = true
			change, finding := compareTaint(node, ours, w)
			if finding != nil {
				findings = append(findings, *finding)
			}
			if change != nil {
				cs.Nodes = append(cs.Nodes, *change)
			}
		}
		for _, taint := range ours {
			if wanted[taintKey(taint)] {
				continue
			}
			change := NodeChange{Name: node.Name, UID: node.UID, Pool: poolOf(in.state, node, taint), Taint: taint, Action: Delete, Before: node.Spec.Taints}
			change.After = withoutTaint(node.Spec.Taints, taint)
			if !in.prune {
				change.Action, change.After = Keep, change.Before
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

// compareTaint says what has to be done for one taint on one node; nothing if
// somebody else already put it there.
func compareTaint(node *corev1.Node, ours []corev1.Taint, w wantedTaint) (*NodeChange, *diag.Finding) {
	change := &NodeChange{Name: node.Name, UID: node.UID, Pool: w.pool, Taint: w.taint, Origins: w.origins, Action: Create, Before: node.Spec.Taints}
	at := slices.IndexFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&w.taint) })
	isOurs := slices.ContainsFunc(ours, func(t corev1.Taint) bool { return t.MatchTaint(&w.taint) })
	switch {
	case at < 0:
	case isOurs && node.Spec.Taints[at].Value == w.taint.Value:
		change.Action, change.After = Keep, change.Before
		return change, nil
	case isOurs:
		change.Action = Update
	case node.Spec.Taints[at].Value == w.taint.Value:
		return nil, nil
	default:
		f := &diag.Finding{
			Rule: "apply/taint-conflict", Severity: diag.Error, Subject: "Node " + node.Name,
			Message: fmt.Sprintf("it has the taint %s, put there by somebody else, and pool %q asks for %s", node.Spec.Taints[at].ToString(), w.pool, w.taint.ToString()),
			Fix:     &diag.Fix{Message: "remove that taint, or give the pool a taint with another key"},
		}
		if len(w.origins) > 0 {
			f.Policy, f.Range = w.origins[0].Policy, w.origins[0].Range
		}
		return nil, f
	}
	change.After = append(withoutTaint(node.Spec.Taints, w.taint), w.taint)
	return change, nil
}

// taintKey is what no two taints of a node share.
func taintKey(t corev1.Taint) string { return t.Key + ":" + string(t.Effect) }

func withoutTaint(taints []corev1.Taint, gone corev1.Taint) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t corev1.Taint) bool { return t.MatchTaint(&gone) })
}

func poolOf(state *State, node *corev1.Node, taint corev1.Taint) string {
	for _, r := range slices.Backward(state.Revisions) {
		for _, item := range r.Nodes {
			if item.Name == node.Name && taintKey(item.Taint) == taintKey(taint) {
				return item.Pool
			}
		}
	}
	return ""
}

// taintsOfSet returns which taints of the node are the set's.
func taintsOfSet(node *corev1.Node, set Set) []corev1.Taint { return inventory(node)[set.Label()] }

// inventory reads the annotation. One that cannot be read counts as none: then
// nothing is ours, and nothing is taken away.
func inventory(node *corev1.Node) map[string][]corev1.Taint {
	var sets map[string][]corev1.Taint
	if json.Unmarshal([]byte(node.Annotations[taintsAnnotation]), &sets) != nil {
		return nil
	}
	return sets
}

// writeNode carries out the changes of one node, in one request that fails if
// the node has changed meanwhile: kubelets and controllers write taints too.
func (a *Applier) writeNode(ctx context.Context, set Set, changes []NodeChange) error {
	name, uid := changes[0].Name, changes[0].UID
	for attempt := 1; ; attempt++ {
		node, err := a.Client.Kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read node %s: %w", name, err)
		}
		if node.UID != uid {
			return fmt.Errorf("node %s: it was deleted and made anew meanwhile; run the command again", name)
		}
		ops, err := nodeOps(node, set, changes)
		if err != nil {
			return err
		}
		if len(ops) == 0 {
			return nil
		}
		data, err := json.Marshal(append([]operation{atVersion(node.ResourceVersion)}, ops...))
		if err != nil {
			return fmt.Errorf("node %s: encode the patch: %w", name, err)
		}
		_, err = a.Client.Kube.CoreV1().Nodes().Patch(ctx, name, types.JSONPatchType, data, metav1.PatchOptions{FieldManager: a.manager()})
		if err == nil || !isStale(err) || attempt == attempts {
			if err != nil {
				return fmt.Errorf("write the taints of node %s: %w", name, err)
			}
			return nil
		}
	}
}

// nodeOps returns the patch that makes the node's taints, and our books of them,
// what the changes say.
func nodeOps(node *corev1.Node, set Set, changes []NodeChange) ([]operation, error) {
	taints := slices.Clone(node.Spec.Taints)
	sets := inventory(node)
	if sets == nil {
		sets = map[string][]corev1.Taint{}
	}
	ours := sets[set.Label()]
	for _, change := range changes {
		present := slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.MatchTaint(&change.Taint) })
		mine := slices.ContainsFunc(ours, func(t corev1.Taint) bool { return t.MatchTaint(&change.Taint) })
		switch change.Action {
		case Create, Update:
			if present && !mine {
				continue
			}
			taints = append(withoutTaint(taints, change.Taint), change.Taint)
			ours = append(withoutTaint(ours, change.Taint), change.Taint)
		case Delete:
			if mine {
				taints = withoutTaint(taints, change.Taint)
				ours = withoutTaint(ours, change.Taint)
			}
		}
	}
	if sets[set.Label()] = ours; len(ours) == 0 {
		delete(sets, set.Label())
	}
	annotations := maps.Clone(node.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	delete(annotations, taintsAnnotation)
	if len(sets) > 0 {
		text, err := json.Marshal(sets)
		if err != nil {
			return nil, fmt.Errorf("node %s: encode the inventory of taints: %w", node.Name, err)
		}
		annotations[taintsAnnotation] = string(text)
	}
	from := map[string]any{"spec": map[string]any{}, "metadata": map[string]any{}}
	to := map[string]any{"spec": map[string]any{}, "metadata": map[string]any{}}
	put := func(object map[string]any, part, field string, value any, empty bool) {
		if !empty {
			object[part].(map[string]any)[field] = plain(value)
		}
	}
	put(from, "spec", "taints", node.Spec.Taints, len(node.Spec.Taints) == 0)
	put(to, "spec", "taints", taints, len(taints) == 0)
	put(from, "metadata", "annotations", node.Annotations, len(node.Annotations) == 0)
	put(to, "metadata", "annotations", annotations, len(annotations) == 0)
	return difference(from, to), nil
}

// taintWords says what has been done to the taints of one node.
func taintWords(changes []NodeChange) string {
	var words []string
	for _, c := range changes {
		if c.Action == Delete {
			words = append(words, "freed of taint "+c.Taint.ToString())
		} else {
			words = append(words, "tainted "+c.Taint.ToString())
		}
	}
	return strings.Join(words, ", ")
}
