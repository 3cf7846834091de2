package apply

import (
	"cmp"
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

	"github.com/kubectl-sched/kubectl-sched/internal/cluster"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
)

// The labels and annotations on the objects that hold the state of a set.
const (
	revisionLabel     = "kubectl-sched.github.io/revision"
	stateLabel        = "kubectl-sched.github.io/state"
	partsAnnotation   = "kubectl-sched.github.io/parts"
	finishAnnotation  = "kubectl-sched.github.io/finished"
	scopeAnnotation   = "kubectl-sched.github.io/scope"
	managerAnnotation = "kubectl-sched.github.io/field-manager"
)

// revisionKey is the key of a revision's content in its ConfigMaps.
const revisionKey = "revision"

// State is what the cluster knows of a set: its recorded scope and its
// revisions. The zero revisions mean that the set has never been applied.
type State struct {
	Set   Set
	Scope Scope
	// Revisions are sorted by number, the oldest first.
	Revisions []*Revision

	parent *corev1.ConfigMap
	// read is when the state was read.
	read time.Time
}

// Exists reports whether the set is known in the cluster.
func (s *State) Exists() bool { return s.parent != nil }

// groupKinds returns the kinds of the objects that the set may have in the
// cluster: those that its parent names, which is written before the first of
// them is made.
func (s *State) groupKinds() []schema.GroupKind {
	if s.parent == nil {
		return nil
	}
	var kinds []schema.GroupKind
	for name := range strings.SplitSeq(s.parent.Annotations[applySetGroupKinds], ",") {
		if name != "" {
			kinds = append(kinds, schema.ParseGroupKind(name))
		}
	}
	return kinds
}

// Manager is the field manager that the set is written under.
func (s *State) Manager() string {
	if s.parent != nil && s.parent.Annotations[managerAnnotation] != "" {
		return s.parent.Annotations[managerAnnotation]
	}
	return FieldManager
}

// ManagerFor returns the field manager to write the set under, if the user asks
// for this one; empty for the set's own. It does not change while the set is in
// the cluster: what one manager owns another cannot take away.
func (s *State) ManagerFor(asked string) (string, error) {
	switch {
	case asked == "" || asked == s.Manager():
		return s.Manager(), nil
	case s.parent == nil:
		return asked, nil
	}
	return "", fmt.Errorf("set %q is written under the field manager %q, not %q; leave --field-manager out, or take the set out first (kubectl sched delete --set %s) and apply it anew under the other name",
		s.Set.Name, s.Manager(), asked, s.Set.Name)
}

// Latest returns the newest revision, or nil.
func (s *State) Latest() *Revision {
	if len(s.Revisions) == 0 {
		return nil
	}
	return s.Revisions[len(s.Revisions)-1]
}

// step is the step of the newest revision.
func (s *State) step() Step {
	if latest := s.Latest(); latest != nil {
		return latest.Step
	}
	return Step{}
}

// Revision returns the revision of that number, or nil.
func (s *State) Revision(number int) *Revision {
	for _, r := range s.Revisions {
		if r.Number == number {
			return r
		}
	}
	return nil
}

// inForce returns the revisions whose fields may be in the cluster, the newest
// last: the newest that is complete, and every one begun after it.
func (s *State) inForce() []*Revision {
	for i := len(s.Revisions) - 1; i >= 0; i-- {
		if s.Revisions[i].State == Complete {
			return s.Revisions[i:]
		}
	}
	return s.Revisions
}

// Records is what the revisions in force say is ours in each object, by UID: the
// reader of workloads takes it where an annotation was stripped.
func (s *State) Records() map[types.UID]*ownership.Record {
	records := map[types.UID]*ownership.Record{}
	for _, r := range s.inForce() {
		for uid, record := range r.records() {
			records[uid] = record
		}
	}
	return records
}

// LoadState reads the state of the set. A set that does not exist is no error.
func LoadState(ctx context.Context, c *cluster.Client, set Set) (*State, error) {
	state := &State{Set: set, read: time.Now()}
	maps := c.Kube.CoreV1().ConfigMaps(set.Namespace)
	parent, err := maps.Get(ctx, set.parentName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return state, nil
	}
	if err != nil {
		return nil, stateError("read", set, err)
	}
	if parent.Labels[applySetID] != set.ApplySetID() {
		return nil, fmt.Errorf("set %q: ConfigMap %s/%s is not the parent of a set (its label %s is %q); take another --set, or remove it",
			set.Name, parent.Namespace, parent.Name, applySetID, parent.Labels[applySetID])
	}
	if err := json.Unmarshal([]byte(parent.Annotations[scopeAnnotation]), &state.Scope); err != nil {
		return nil, fmt.Errorf("set %q: scope recorded in ConfigMap %s/%s: %w", set.Name, parent.Namespace, parent.Name, err)
	}
	state.parent = parent

	list, err := maps.List(ctx, metav1.ListOptions{LabelSelector: ownership.SetLabel + "=" + set.Label() + "," + revisionLabel})
	if err != nil {
		return nil, stateError("read", set, err)
	}
	byName := map[string]*corev1.ConfigMap{}
	for i := range list.Items {
		byName[list.Items[i].Name] = &list.Items[i]
	}
	for i := range list.Items {
		head := &list.Items[i]
		if head.Labels[stateLabel] == "" {
			continue
		}
		revision, err := readRevision(set, head, byName)
		if err != nil {
			return nil, fmt.Errorf("set %q: ConfigMap %s/%s: %w", set.Name, head.Namespace, head.Name, err)
		}
		state.Revisions = append(state.Revisions, revision)
	}
	slices.SortFunc(state.Revisions, func(a, b *Revision) int { return cmp.Compare(a.Number, b.Number) })
	return state, nil
}

func readRevision(set Set, head *corev1.ConfigMap, byName map[string]*corev1.ConfigMap) (*Revision, error) {
	count, err := strconv.Atoi(head.Annotations[partsAnnotation])
	if err != nil {
		return nil, fmt.Errorf("annotation %s: %w", partsAnnotation, err)
	}
	number, err := strconv.Atoi(head.Labels[revisionLabel])
	if err != nil {
		return nil, fmt.Errorf("label %s: %w", revisionLabel, err)
	}
	var parts [][]byte
	for i := range count {
		part, ok := byName[set.revisionName(number, i)]
		if !ok {
			return nil, fmt.Errorf("part %d of revision %d is missing", i, number)
		}
		parts = append(parts, part.BinaryData[revisionKey])
	}
	revision, err := decodeRevision(parts)
	if err != nil {
		return nil, err
	}
	revision.parts = count
	revision.State = RevisionState(head.Labels[stateLabel])
	if text := head.Annotations[finishAnnotation]; text != "" {
		if revision.Finished, err = time.Parse(time.RFC3339, text); err != nil {
			return nil, fmt.Errorf("annotation %s: %w", finishAnnotation, err)
		}
	}
	return revision, nil
}

// stateError explains an API error on the objects that hold the state.
func stateError(verb string, set Set, err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%s set %q: its state is in namespace %q, which you may not use; name one that you may with --set-namespace: %w", verb, set.Name, set.Namespace, err)
	}
	return fmt.Errorf("%s set %q in namespace %q: %w", verb, set.Name, set.Namespace, err)
}
