package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// writeNode carries out the changes of one node, in one request that fails if
// the node has changed meanwhile: kubelets and controllers write nodes too.
func (a *Applier) writeNode(ctx context.Context, set Set, changes []NodeChange) error {
	name, uid := changes[0].Name, changes[0].UID
	return a.whileStale(ctx, "Node "+name, func() error {
		node, err := a.Client.Kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if node.UID != uid {
			return &overtakenError{subject: "Node " + name, message: "it was deleted and made anew meanwhile; run the command again"}
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
		_, err = a.Client.Kube.CoreV1().Nodes().Patch(ctx, name, types.JSONPatchType, data, metav1.PatchOptions{FieldManager: FieldManager})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}, func() error { return nil })
}

// nodeOps returns the patch that carries the changes out on the node as it is.
func nodeOps(node *corev1.Node, set Set, changes []NodeChange) ([]operation, error) {
	after, err := changed(node, set, changes)
	if err != nil {
		return nil, err
	}
	return difference(nodeFields(node, true), nodeFields(after, true)), nil
}

// changed returns the node with the changes carried out, and our books of them. A
// mark that somebody else put there since the changes were found stays his; and
// what he made of one of ours does too when ours is withdrawn.
func changed(node *corev1.Node, set Set, changes []NodeChange) (*corev1.Node, error) {
	node = node.DeepCopy()
	kept := booksOf(node)
	for _, change := range changes {
		m := change.Mark()
		now, present := m.on(node)
		ours := kept.of(set, m)
		switch change.Action {
		case Create, Update:
			if present && ours == nil && !change.takeOver {
				continue
			}
			var before *Mark
			if present && ours == nil {
				before = &now
			}
			m.put(node)
			kept.enter(set, m, before)
		case Delete:
			if ours == nil {
				continue
			}
			if present && now.is(ours.mark) {
				m.remove(node)
				if ours.before != nil {
					ours.before.put(node)
				}
			}
			kept.strike(set, m)
		default:
		}
	}
	return node, kept.keep(node)
}

// nodeFields are the fields of a node that we write, as plain JSON.
func nodeFields(node *corev1.Node, withBooks bool) map[string]any {
	metadata, spec := map[string]any{}, map[string]any{}
	if len(node.Labels) > 0 {
		metadata["labels"] = plain(node.Labels)
	}
	if withBooks && len(node.Annotations) > 0 {
		metadata["annotations"] = plain(node.Annotations)
	}
	if len(node.Spec.Taints) > 0 {
		spec["taints"] = plain(node.Spec.Taints)
	}
	return map[string]any{"metadata": metadata, "spec": spec}
}

// nodeComparison shows the changes of one node, without our books.
func nodeComparison(set Set, changes []NodeChange) (Comparison, error) {
	shown := func(node *corev1.Node) map[string]any {
		fields := nodeFields(node, false)
		fields["apiVersion"], fields["kind"] = "v1", "Node"
		fields["metadata"].(map[string]any)["name"] = node.Name
		return fields
	}
	node := changes[0].node
	after, err := changed(node, set, changes)
	if err != nil {
		return Comparison{}, err
	}
	return Comparison{Name: "v1.Node.." + node.Name, Before: shown(node), After: shown(after)}, nil
}

// markWords says what has been done to one node.
func markWords(changes []NodeChange) string {
	var words []string
	for _, c := range changes {
		if c.Action == Delete {
			words = append(words, "freed of "+c.Mark().String())
		} else {
			words = append(words, "given "+c.Mark().String())
		}
	}
	return strings.Join(words, ", ")
}
