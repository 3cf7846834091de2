package replay

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/internal/simulate/engine"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate/store"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/podgroup"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/recording"
)

// Replay follows one recording. Make one with New and end it with Close. It may be
// used from one goroutine.
type Replay struct {
	engine   *engine.Engine
	follower *follower

	objects map[string]store.Object // all but pods, by key
	pods    map[types.UID]*corev1.Pod
	members map[types.UID]member
	placed  map[types.UID]string
	have    map[types.UID]held
}

// member is what the recording says of a pod as one of a group.
type member struct {
	group types.NamespacedName
	gated bool
}

// held is what the engine was given of a pod.
type held struct {
	version *corev1.Pod
	node    string
	nominee string
}

// New returns a Replay whose engine has the options, apart from the Decider. Time is
// the recording's.
func New(ctx context.Context, o engine.Options) (*Replay, error) {
	f := &follower{}
	o.Decider = f
	e, err := engine.New(ctx, o)
	if err != nil {
		return nil, err
	}
	return &Replay{
		engine: e, follower: f,
		objects: map[string]store.Object{}, pods: map[types.UID]*corev1.Pod{}, members: map[types.UID]member{}, placed: map[types.UID]string{}, have: map[types.UID]held{},
	}, nil
}

// Close ends the replay.
func (r *Replay) Close() { r.engine.Close() }

// Step follows the next cycle of the recording, and says where the simulator differs.
// The error is ctx's, or says that the recording cannot be followed.
func (r *Replay) Step(ctx context.Context, c recording.Cycle) (Result, error) {
	r.engine.SetTime(c.Time)
	if err := r.take(c); err != nil {
		return Result{}, err
	}
	if err := r.catchUp(c); err != nil {
		return Result{}, err
	}
	var placed []*corev1.Pod
	for uid := range r.placed {
		placed = append(placed, r.pods[uid])
	}
	r.follower.follow(c, placed)
	var names []types.NamespacedName
	for _, a := range c.Attempts {
		names = append(names, types.NamespacedName{Namespace: a.Namespace, Name: a.Name})
	}
	held := r.engine.Attempt(ctx, names...)
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	attempts, evictions := r.engine.Attempts(), r.engine.Evictions()
	result := Result{Invalid: r.interfered(c)}
	if result.Invalid == "" {
		result = r.follower.compare(c, attempts, evictions, held)
	}
	result.Pods = make([]*corev1.Pod, len(c.Attempts))
	for i, a := range c.Attempts {
		result.Pods[i] = r.pods[a.UID]
	}
	r.distrust()
	return result, nil
}

// seatsHeld is why a cycle is invalid in which the simulator would have used a node
// where the scheduler holds seats, or went by scores of nodes that such seats took from
// it.
const seatsHeld = "seats are held, as the running scheduler's timers and failed binds have it"

// membersLost is why a cycle is invalid in which members of a group were on a node that
// is gone. They are in no snapshot and in no recording, and upstream trips over them
// (framework/preemption, newDomainForWorkloadPreemption) or counts them.
const membersLost = "members of a group are on a node that is lost"

// interfered says why what the scheduler did in the cycle hung on something that is in
// no recording; empty if it did not.
func (r *Replay) interfered(c recording.Cycle) string {
	has := func(part string) bool {
		return slices.ContainsFunc(c.Attempts, func(a recording.Attempt) bool { return strings.Contains(a.Message, part) })
	}
	switch {
	case slices.ContainsFunc(c.Attempts, func(a recording.Attempt) bool { return a.Deleted }):
		return "the pod was deleted while it was tried"
	case r.lostMember(c), has("PodGroupPostFilter plugins: not found"):
		return "a member of the group was deleted, or came, while it was tried"
	case has("from snapshot: nodeinfo not found"):
		return membersLost
	case has("seats are held for gang"):
		return seatsHeld
	case c.Unsteady:
		return "nominations changed while the pod was tried"
	}
	return ""
}

// lostMember reports whether a member of the group waited for nothing and was not
// tried: after the group had been taken from the queue it was deleted, or came into the
// group, as by a gate that opened. Upstream skips one that is deleted, and may trip over
// what its plugins do not know of it (schedule_one_podgroup.go,
// DynamicResources.PodGroupPostFilter), also where it is gone altogether by then.
func (r *Replay) lostMember(c recording.Cycle) bool {
	if c.Group == "" || len(c.Attempts) == 0 {
		return false
	}
	group := types.NamespacedName{Namespace: c.Attempts[0].Namespace, Name: c.Group}
	return slices.ContainsFunc(c.Waiting, func(uid types.UID) bool {
		m, ok := r.members[uid]
		return ok && m.group == group && !m.gated && !slices.ContainsFunc(c.Attempts, func(a recording.Attempt) bool { return a.UID == uid })
	})
}

// distrust has the engine be given again the pods that it may have changed: what it
// made of them is not what became of the real ones.
func (r *Replay) distrust() {
	for uid, h := range r.have {
		if pod, ok := r.engine.Pod(nameOf(h.version)); !ok || pod.UID != uid {
			delete(r.have, uid)
		} else if h.node == "" {
			h.version = h.version.DeepCopy() // another pointer: not what is wanted
			r.have[uid] = h
		}
	}
}

// take takes in what the cycle says of the cluster.
func (r *Replay) take(c recording.Cycle) error {
	for _, o := range c.Put {
		object, err := decode(o)
		if err != nil {
			return err
		}
		if pod, ok := object.(*corev1.Pod); ok {
			delete(r.members, pod.UID)
			if group := pod.Spec.SchedulingGroup; group != nil && group.PodGroupName != nil {
				r.members[pod.UID] = member{types.NamespacedName{Namespace: pod.Namespace, Name: *group.PodGroupName}, len(pod.Spec.SchedulingGates) > 0}
				if podgroup.IsVirtual(*group.PodGroupName) {
					pod.Spec.SchedulingGroup = nil
				}
			}
			r.pods[pod.UID] = pod
			continue
		}
		r.objects[o.Key] = object
		if err := r.put(object); err != nil {
			return fmt.Errorf("cycle %d: %w", c.Number, err)
		}
	}
	for _, key := range c.Gone {
		object := r.objects[key]
		delete(r.objects, key)
		if group, ok := object.(*schedulingv1beta1.PodGroup); object == nil || ok && podgroup.IsVirtual(group.Name) {
			continue
		}
		if err := r.engine.Remove(object); err != nil {
			return fmt.Errorf("cycle %d: %w", c.Number, err)
		}
	}
	for uid, node := range c.Placed {
		if node == "" {
			delete(r.placed, uid)
		} else {
			r.placed[uid] = node
		}
	}
	return nil
}

// put puts an object that is no pod.
func (r *Replay) put(object store.Object) error {
	if group, ok := object.(*schedulingv1beta1.PodGroup); ok && podgroup.IsVirtual(group.Name) {
		if source, ok := sourceOf(group); ok {
			return r.engine.Put(source)
		}
		return nil
	}
	copied, ok := object.DeepCopyObject().(store.Object)
	if !ok {
		return fmt.Errorf("copy a %T", object)
	}
	return r.engine.Put(copied)
}

// catchUp brings the engine's pods to what the scheduler saw.
func (r *Replay) catchUp(c recording.Cycle) error {
	want := map[types.UID]held{}
	for uid, node := range r.placed {
		want[uid] = held{version: r.pods[uid], node: node}
	}
	for _, uid := range c.Waiting {
		if _, placed := want[uid]; !placed {
			want[uid] = held{version: r.pods[uid], nominee: c.Nominated[uid]}
		}
	}
	for uid, w := range want {
		if w.version == nil {
			return fmt.Errorf("cycle %d: the recording does not say what pod %s is", c.Number, uid)
		}
	}
	for _, uid := range sorted(r.have) {
		h := r.have[uid]
		w, still := want[uid]
		pod, ok := r.engine.Pod(nameOf(h.version))
		if still && ok && (pod.Spec.NodeName == w.node || pod.Spec.NodeName == "" && r.engine.Idle(uid)) {
			continue
		}
		delete(r.have, uid)
		if ok && pod.UID == uid {
			if err := r.engine.Remove(pod); err != nil {
				return fmt.Errorf("cycle %d: %w", c.Number, err)
			}
		}
	}
	for _, placed := range []bool{true, false} {
		for _, uid := range sorted(want) {
			w := want[uid]
			if (w.node != "") != placed || r.have[uid] == w {
				continue
			}
			pod := w.version.DeepCopy()
			pod.Spec.NodeName = w.node
			if err := r.engine.Put(pod); err != nil {
				return fmt.Errorf("cycle %d: %w", c.Number, err)
			}
			if w.node == "" && pod.Status.NominatedNodeName != w.nominee {
				if err := r.engine.Nominate(nameOf(pod), w.nominee); err != nil {
					return fmt.Errorf("cycle %d: %w", c.Number, err)
				}
			}
			r.have[uid] = w
		}
	}
	return nil
}

func sorted(m map[types.UID]held) []types.UID { return slices.Sorted(maps.Keys(m)) }

func nameOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}
