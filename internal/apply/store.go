package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
)

// store writes the state of one set.
type store struct {
	maps typedcorev1.ConfigMapInterface
	set  Set
	tool string
	// manager is the field manager of all writes of the set.
	manager string
}

// saveParent makes the parent of the set say scope and which kinds of objects
// the set has, and returns it. It must say so before the first object is made,
// and until the last is gone: otherwise an interrupted run could leave objects
// that nobody finds again. It names the run that is writing the set, nil for
// none.
func (s *store) saveParent(ctx context.Context, parent *corev1.ConfigMap, scope Scope, kinds []schema.GroupKind, writer *Writer) (*corev1.ConfigMap, error) {
	text, err := json.Marshal(scope)
	if err != nil {
		return nil, fmt.Errorf("encode scope: %w", err)
	}
	annotations := map[string]string{
		applySetTooling:   FieldManager + "/" + s.tool,
		scopeAnnotation:   string(text),
		managerAnnotation: s.manager,
		// Empty is allowed, absent is not.
		applySetGroupKinds: groupKindList(kinds),
	}
	if parent == nil {
		made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name:        s.set.parentName(),
			Labels:      map[string]string{applySetID: s.set.ApplySetID(), ownership.SetLabel: s.set.Label()},
			Annotations: annotations,
		}}
		if err := setWriter(made, writer); err != nil {
			return nil, err
		}
		parent, err = s.maps.Create(ctx, made, metav1.CreateOptions{FieldManager: s.manager})
		if apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("set %q: another run has just created it; run the command again: %w", s.set.Name, err)
		}
		if err != nil {
			return nil, stateError("create", s.set, err)
		}
		return parent, nil
	}
	changed := parent.DeepCopy()
	for key, value := range annotations {
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, key, value)
	}
	if err := setWriter(changed, writer); err != nil {
		return nil, err
	}
	changed, err = s.maps.Update(ctx, changed, metav1.UpdateOptions{FieldManager: s.manager})
	if apierrors.IsConflict(err) {
		return nil, fmt.Errorf("set %q: another run has changed it meanwhile; run the command again: %w", s.set.Name, err)
	}
	if err != nil {
		return nil, stateError("update", s.set, err)
	}
	return changed, nil
}

// groupKindList writes kinds as the ApplySet specification has them: "Kind.group",
// sorted, each once.
func groupKindList(kinds []schema.GroupKind) string {
	names := make([]string, len(kinds))
	for i, gk := range kinds {
		names[i] = gk.String()
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

// open writes a new revision. The head comes last and is what makes it visible:
// of two runs that open the same number, one fails.
func (s *store) open(ctx context.Context, parent *corev1.ConfigMap, r *Revision) error {
	parts, err := r.encode()
	if err != nil {
		return err
	}
	for i := len(parts) - 1; i >= 0; i-- {
		object := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Name: s.set.revisionName(r.Number, i),
				Labels: map[string]string{
					ownership.SetLabel: s.set.Label(),
					revisionLabel:      strconv.Itoa(r.Number),
				},
				// With the parent the revisions go, whoever deletes it.
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: parent.Name, UID: parent.UID}},
			},
			BinaryData: map[string][]byte{revisionKey: parts[i]},
		}
		if i == 0 {
			object.Labels[stateLabel] = string(Open)
			object.Annotations = map[string]string{partsAnnotation: strconv.Itoa(len(parts))}
		}
		_, err := s.maps.Create(ctx, object, metav1.CreateOptions{FieldManager: s.manager})
		if apierrors.IsAlreadyExists(err) && i > 0 {
			// Left by a run that ended before its head was written.
			_, err = s.maps.Update(ctx, object, metav1.UpdateOptions{FieldManager: s.manager})
		}
		if apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("set %q: another run has just opened revision %d; run the command again when it is done: %w", s.set.Name, r.Number, err)
		}
		if err != nil {
			return stateError("write", s.set, err)
		}
	}
	r.State, r.parts = Open, len(parts)
	return nil
}

// finish records how the run of the revision ended.
func (s *store) finish(ctx context.Context, r *Revision, state RevisionState, now time.Time) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"labels":      map[string]any{stateLabel: string(state)},
		"annotations": map[string]any{finishAnnotation: now.UTC().Format(time.RFC3339)},
	}})
	if err != nil {
		return fmt.Errorf("encode the end of revision %d: %w", r.Number, err)
	}
	_, err = s.maps.Patch(ctx, s.set.revisionName(r.Number, 0), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: s.manager})
	if err != nil {
		return stateError("write", s.set, err)
	}
	r.State, r.Finished = state, now
	return nil
}

// forget deletes the oldest revisions until limit are left; those in force stay.
func (s *store) forget(ctx context.Context, state *State, limit int) error {
	keep := state.inForce()
	old := state.Revisions[:len(state.Revisions)-len(keep)]
	surplus := len(state.Revisions) - max(limit, 1)
	for i := 0; i < min(surplus, len(old)); i++ {
		if err := s.remove(ctx, old[i]); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes one revision, its head first: without it the rest is not seen.
func (s *store) remove(ctx context.Context, r *Revision) error {
	for i := range r.parts {
		err := s.maps.Delete(ctx, s.set.revisionName(r.Number, i), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return stateError("remove an old revision of", s.set, err)
		}
	}
	return nil
}

// removeParent deletes the parent; the garbage collector takes what is left of
// the revisions.
func (s *store) removeParent(ctx context.Context, parent *corev1.ConfigMap) error {
	err := s.maps.Delete(ctx, parent.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &parent.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		return stateError("remove", s.set, err)
	}
	return nil
}
