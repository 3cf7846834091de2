package queueing_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/ptr"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/queueing"
)

// in has p be a member of the group.
func in(group string, p *corev1.Pod) *corev1.Pod {
	p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To(group)}
	return p
}

// TestLateMembers holds that a pod that comes into a group later is taken out of where it
// was and into the group, in the cache and in the queue, as upstream does for pods that go
// and come; that its siblings hear of it; and that other updates are upstream's.
func TestLateMembers(t *testing.T) {
	t.Parallel()
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "g"}}
	joined := "move " + framework.EventUnscheduledPodAdd.Label()
	for name, test := range map[string]struct {
		before, after *corev1.Pod
		did           []string
		queued        []string // the entities in the queue, and the pods of each
		members       int
	}{
		"into its group": {pod("late", 1, 0), in("g", pod("late", 1, 0)), []string{"delete late", "add late", joined}, []string{"g: first late"}, 2},
		"into a group that is not there": {
			pod("late", 1, 0), in("other", pod("late", 1, 0)), []string{"delete late", "add late", joined}, []string{"g: first"}, 1,
		},
		"another of its name, in no group": {in("g", pod("late", 1, 0)), pod("late", 1, 0), []string{"delete late", "add late", joined}, []string{"g: first", "late"}, 1},
		"in the same group":                {in("g", pod("late", 1, 0)), in("g", pod("late", 1, 0)), nil, []string{"g: first late"}, 2},
		"in no group":                      {pod("late", 1, 0), pod("late", 1, 0), nil, []string{"g: first", "late"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSpy(t)
			sched := &scheduler.Scheduler{SchedulingQueue: s, Cache: cache.New(t.Context(), nil, true, false)}
			queueing.LateMembers(sched)
			sched.Cache.AddPodGroup(group)
			sched.SchedulingQueue.AddPodGroup(klog.Background(), group)
			for _, p := range []*corev1.Pod{in("g", pod("first", 0, 0)), test.before} {
				sched.Cache.AddPodGroupMember(p)
				sched.SchedulingQueue.Add(t.Context(), p)
			}
			s.did = nil
			sched.Cache.UpdatePodGroupMember(klog.Background(), test.before, test.after)
			sched.SchedulingQueue.Update(t.Context(), test.before, test.after)
			if diff := cmp.Diff(test.did, s.did); diff != "" {
				t.Errorf("done with the queue (-want +got):\n%s", diff)
			}
			state, err := sched.Cache.PodGroupStates().Get("ns", "g")
			if err != nil {
				t.Fatal(err)
			}
			if all, waiting := state.AllPodsCount(), len(state.UnscheduledPods()); all != test.members || waiting != test.members {
				t.Errorf("the cache knows %d members, %d without a node; want %d", all, waiting, test.members)
			}
			if diff := cmp.Diff(test.queued, drain(t, s)); diff != "" {
				t.Errorf("queued (-want +got):\n%s", diff)
			}
		})
	}
}

// drain takes everything out of the queue and returns it, sorted.
func drain(t *testing.T, s *spy) (entities []string) {
	t.Helper()
	for len(s.PodsInActiveQ()) > 0 {
		given := make(chan framework.QueuedEntityInfo, 1)
		go func() {
			if entity, err := s.Pop(klog.Background()); err == nil {
				given <- entity
			}
		}()
		var entity framework.QueuedEntityInfo
		select {
		case entity = <-given:
		case <-time.After(10 * time.Second):
			t.Fatalf("the queue gives nothing more, and has %d pods", len(s.PodsInActiveQ()))
		}
		says := entity.GetName()
		if _, isGroup := entity.(*framework.QueuedPodGroupInfo); isGroup {
			says += ":"
			var names []string
			entity.ForEachPodInfo(func(info *framework.QueuedPodInfo) bool {
				names = append(names, info.Pod.Name)
				return true
			})
			slices.Sort(names)
			for _, name := range names {
				says += " " + name
			}
		}
		entities = append(entities, says)
	}
	slices.Sort(entities)
	return entities
}
