package queueing_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/utils/ptr"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/queueing"
)

func TestMain(m *testing.M) {
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{string(features.GenericWorkload): true}); err != nil {
		panic(err)
	}
	metrics.Register() // the queue counts in them
	m.Run()
}

// pod returns a pod that was created so many seconds after the first.
func pod(name string, created int, priority int32) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "ns", UID: types.UID(name),
			CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 1, 0, 0, created, 0, time.UTC)),
		},
		Spec: corev1.PodSpec{Priority: &priority},
	}
}

// spy is a queue that notes what is done with it.
type spy struct {
	queue.SchedulingQueue
	did []string
}

func (s *spy) Run(klog.Logger) { s.did = append(s.did, "run") }

func (s *spy) Delete(logger klog.Logger, p *corev1.Pod) {
	s.did = append(s.did, "delete "+p.Name)
	s.SchedulingQueue.Delete(logger, p)
}

func (s *spy) Add(ctx context.Context, p *corev1.Pod) {
	s.did = append(s.did, "add "+p.Name)
	s.SchedulingQueue.Add(ctx, p)
}

func (s *spy) MoveAllToActiveOrBackoffQueue(_ klog.Logger, event fwk.ClusterEvent, _, _ any, _ queue.PreEnqueueCheck) {
	s.did = append(s.did, "move "+event.Label())
}

// newSpy returns one around the scheduler's queue, with the pods in it.
func newSpy(t *testing.T, pods ...*corev1.Pod) *spy {
	t.Helper()
	of := queue.NewTestQueue(t.Context(), (&queuesort.PrioritySort{}).Less)
	t.Cleanup(of.Close)
	for _, p := range pods {
		of.Add(t.Context(), p)
	}
	return &spy{SchedulingQueue: of}
}

// partsNamed says that the pods of these names have siblings with nodes.
type partsNamed struct {
	names []string
	queue queue.SchedulingQueue
	heard []string // ComeFirst, and what the queue had then
}

func (p *partsNamed) HasPlacedSiblings(pod *corev1.Pod) bool {
	return slices.Contains(p.names, pod.Name)
}

func (p *partsNamed) ComeFirst(pods []*corev1.Pod) {
	for _, pod := range pods {
		p.heard = append(p.heard, pod.Name)
	}
	p.heard = append(p.heard, fmt.Sprintf("%d queued", len(p.queue.PodsInActiveQ())))
}

// TestPartsFirst holds that pods whose siblings have nodes are scheduled before all of
// their priority, others from the oldest on, and before the queue itself runs.
func TestPartsFirst(t *testing.T) {
	t.Parallel()
	// Heard of in this order, as a list of the API server may have it.
	s := newSpy(t, pod("newest", 9, 0), pod("rest-b", 8, 0), pod("urgent", 7, 1), pod("oldest", 1, 0), pod("rest-a", 8, 0), pod("same-b", 5, 0), pod("same-a", 5, 0))
	parts := &partsNamed{names: []string{"rest-a", "rest-b"}, queue: s}
	q := queueing.PartsFirst(t.Context(), s, parts)
	q.Run(klog.Background())
	if want := []string{"rest-a", "rest-b", "0 queued"}; !slices.Equal(parts.heard, want) {
		t.Errorf("who comes first is told %q, want %q", parts.heard, want)
	}
	if last := s.did[len(s.did)-1]; last != "run" {
		t.Errorf("%s after the queue ran: %q", last, s.did)
	}
	var got []string
	for range 7 {
		entity, err := q.Pop(klog.Background())
		if err != nil {
			t.Fatal(err)
		}
		entity.ForEachPodInfo(func(info *framework.QueuedPodInfo) bool {
			got = append(got, info.Pod.Name)
			return true
		})
	}
	if want := []string{"urgent", "rest-a", "rest-b", "oldest", "same-a", "same-b", "newest"}; !slices.Equal(got, want) {
		t.Errorf("scheduled %q, want %q", got, want)
	}
}

// TestNoParts holds that the queue is left as it is where nothing is bound in part.
func TestNoParts(t *testing.T) {
	t.Parallel()
	s := newSpy(t, pod("b", 2, 0), pod("a", 1, 0))
	parts := &partsNamed{names: []string{"not there"}, queue: s}
	queueing.PartsFirst(t.Context(), s, parts).Run(klog.Background())
	if want := []string{"run"}; !slices.Equal(s.did, want) || parts.heard != nil {
		t.Errorf("the queue did %q, and %q was told to come first; want %q and nothing", s.did, parts.heard, want)
	}
}

// TestTellOfRoom holds that it is told of pods that have left their nodes and of nothing
// else, after the queue has heard of it.
func TestTellOfRoom(t *testing.T) {
	t.Parallel()
	s := newSpy(t)
	q := queueing.TellOfRoom(s, func(p *corev1.Pod) { s.did = append(s.did, "told of "+p.Name) })
	move := func(event fwk.ClusterEvent, before, after any) {
		q.MoveAllToActiveOrBackoffQueue(klog.Background(), event, before, after, nil)
	}
	move(framework.EventAssignedPodDelete, pod("gone", 1, 0), nil)
	move(framework.EventAssignedPodAdd, nil, pod("came", 1, 0))
	move(framework.EventUnscheduledPodDelete, pod("never placed", 1, 0), nil)
	move(framework.EventAssignedPodDelete, &corev1.Node{}, nil)
	left, came, unplaced := framework.EventAssignedPodDelete.Label(), framework.EventAssignedPodAdd.Label(), framework.EventUnscheduledPodDelete.Label()
	want := []string{"move " + left, "told of gone", "move " + came, "move " + unplaced, "move " + left}
	if !slices.Equal(s.did, want) {
		t.Errorf("got %q, want %q", s.did, want)
	}
}

// TestRunWith holds that a companion begins when the queue runs, not before.
func TestRunWith(t *testing.T) {
	t.Parallel()
	s, began := newSpy(t), make(chan context.Context, 1)
	q := queueing.RunWith(t.Context(), s, func(ctx context.Context) { began <- ctx })
	select {
	case <-began:
		t.Fatal("it began before the queue ran")
	default:
	}
	q.Run(klog.Background())
	if ctx := <-began; ctx != t.Context() {
		t.Error("it has another context")
	}
	if want := []string{"run"}; !slices.Equal(s.did, want) {
		t.Errorf("the queue did %q, want %q", s.did, want)
	}
}

// groups are pod groups of which so many members have nodes.
type groups struct {
	fwk.PodGroupManager
	fwk.PodGroupStateLister
	placed map[string]int
}

func (g groups) PodGroupStates() fwk.PodGroupStateLister { return g }

func (g groups) Get(namespace, name string) (fwk.PodGroupState, error) {
	n, known := g.placed[namespace+"/"+name]
	if !known {
		return nil, fmt.Errorf("no pod group %s/%s", namespace, name)
	}
	return state{placed: n}, nil
}

type state struct {
	fwk.PodGroupState
	placed int
}

func (s state) ScheduledPodsCount() int { return s.placed }

// TestGroupParts holds that a pod has placed siblings if its group is known and has
// members with nodes.
func TestGroupParts(t *testing.T) {
	t.Parallel()
	parts := queueing.GroupParts(groups{placed: map[string]int{"ns/part": 2, "ns/none": 0, "other/elsewhere": 3}})
	for group, want := range map[string]bool{"part": true, "none": false, "elsewhere": false, "": false} {
		p := pod("p", 1, 0)
		if group != "" {
			p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To(group)}
		}
		if got := parts.HasPlacedSiblings(p); got != want {
			t.Errorf("member of group %q: placed siblings %v, want %v", group, got, want)
		}
	}
}
