package scheduler_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubectl-sched/kubectl-sched/internal/sandbox"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/podgroup"
)

// TestContendingGangs holds that of two gangs that each fit alone one starts whole
// and the other not at all, until the first is gone.
func TestContendingGangs(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, p *plane) {
		l := newLab(t, p, 10)
		watch := l.watchBindings()
		l.podGroup("red", 8)
		l.podGroup("blue", 8)
		for i := range 8 {
			l.create(l.member("red", i))
			l.create(l.member("blue", i))
		}
		var winner, loser string
		l.until("one gang whole", func(context.Context) (bool, string) {
			red, blue := l.bound("red"), l.bound("blue")
			winner, loser = "red", "blue"
			if len(blue) > len(red) {
				winner, loser = loser, winner
			}
			return len(red)+len(blue) == 8 && len(red)*len(blue) == 0, fmt.Sprint(red, blue)
		})
		l.untilUnschedulable(loser, 8)
		if bound := l.bound(loser); len(bound) > 0 {
			t.Errorf("gang %s is bound in part: %v", loser, bound)
		}
		l.noLeak()
		for i := range 8 {
			l.delete(fmt.Sprintf("%s-%d", winner, i))
		}
		l.untilBound(loser, 8)
		l.noLeak()
		// Every gang's bindings came in one go: none of the loser's before the
		// winner's last.
		var order []string
		l.until("the watch to show 16 bindings", func(context.Context) (bool, string) {
			var count int
			order, count = watch()
			return count == 16, fmt.Sprint(count)
		})
		if diff := cmp.Diff([]string{winner, loser}, order); diff != "" {
			t.Errorf("order in which gangs were bound (-want +got):\n%s", diff)
		}
	})
}

// watchBindings records which gangs' members get nodes. What it returns gives the
// gangs in that order, one entry for each uninterrupted run of bindings, and how
// many bindings there were by now.
func (l *lab) watchBindings() func() ([]string, int) {
	l.Helper()
	watcher, err := l.client.CoreV1().Pods(l.namespace).Watch(l.Context(), metav1.ListOptions{})
	if err != nil {
		l.Fatal(err)
	}
	var mu sync.Mutex
	var order []string
	seen := map[types.UID]bool{}
	go func() {
		for event := range watcher.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || pod.Spec.NodeName == "" || seen[pod.UID] {
				continue
			}
			gang := pod.Labels[gangkey.Label]
			mu.Lock()
			seen[pod.UID] = true
			if len(order) == 0 || order[len(order)-1] != gang {
				order = append(order, gang)
			}
			mu.Unlock()
		}
	}()
	l.Cleanup(watcher.Stop)
	return func() ([]string, int) {
		mu.Lock()
		defer mu.Unlock()
		return order, len(seen)
	}
}

// TestGangLargerThanPool holds that every member of a gang that does not fit says
// so in the way that autoscalers read, and that events have the numbers.
func TestGangLargerThanPool(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, p *plane) {
		l := newLab(t, p, 5)
		l.podGroup("big", 7)
		for i := range 7 {
			l.create(l.member("big", i))
		}
		l.untilUnschedulable("big", 7)
		l.untilEvent("PodGroup", "big", podgroup.ReasonWaiting, "gang big: 7 of 7 members exist, at least 5 more fit, needs 7", " left")
		l.untilEvent("Pod", "big-3", podgroup.ReasonWaiting, "needs 7")
		if bound := l.bound(""); len(bound) > 0 {
			t.Errorf("bound in part: %v", bound)
		}
		// What an autoscaler would do.
		l.node(5, nil)
		l.node(6, nil)
		l.untilBound("big", 7)
		l.noLeak()
	})
}

// TestMemberDeletedAndMadeAnew holds that a gang that lost a member waits for it,
// and that the new one is as good as the old.
func TestMemberDeletedAndMadeAnew(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, p *plane) {
		l := newLab(t, p, 3)
		l.podGroup("four", 4)
		for i := range 4 {
			l.create(l.member("four", i))
		}
		l.untilUnschedulable("four", 4)
		l.delete("four-2")
		l.node(3, nil)
		l.untilEvent("PodGroup", "four", podgroup.ReasonWaiting, "3 of 4 members exist")
		if bound := l.bound(""); len(bound) > 0 {
			t.Errorf("bound without the fourth: %v", bound)
		}
		l.create(l.member("four", 2))
		l.untilBound("four", 4)
		// A bound member that is lost comes back alone.
		l.replace(l.member("four", 0))
	})
}

// TestMissingPodGroup holds that members whose PodGroup is not there are told so
// and wait, and that the object wakes them.
func TestMissingPodGroup(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, p *plane) {
		l := newLab(t, p, 2)
		for i := range 2 {
			l.create(l.member("lost", i))
		}
		l.untilEvent("Pod", "lost-1", podgroup.ReasonMissing, "create the PodGroup "+l.namespace+"/lost (scheduling.x-k8s.io/v1alpha1)")
		if bound := l.bound(""); len(bound) > 0 {
			t.Errorf("bound without a PodGroup: %v", bound)
		}
		l.podGroup("lost", 2)
		l.untilBound("lost", 2)
	})
}

// TestDeletedPodGroup holds that the members that wait are told when their
// PodGroup goes.
func TestDeletedPodGroup(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, p *plane) {
		l := newLab(t, p, 1)
		l.podGroup("gone", 2)
		for i := range 2 {
			l.create(l.member("gone", i))
		}
		l.untilUnschedulable("gone", 2)
		if err := l.dynamic.Resource(podGroups).Namespace(l.namespace).Delete(t.Context(), "gone", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		l.untilEvent("Pod", "gone-0", podgroup.ReasonMissing, "2 members wait")
		l.podGroup("gone", 1)
		l.untilBound("gone", 1)
	})
}

// TestOldestLabels holds that a gang whose labels alone name it and say its size
// is placed whole.
func TestOldestLabels(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, p *plane) {
		l := newLab(t, p, 3)
		labels := map[string]string{gangkey.LabelOldest: "old", gangkey.LabelMinAvailable: "3"}
		for i := range 2 {
			l.create(l.pod(fmt.Sprintf("old-%d", i), labels))
		}
		l.untilEvent("Pod", "old-0", podgroup.ReasonWaiting, "2 of 3 members exist")
		if bound := l.bound(""); len(bound) > 0 {
			t.Errorf("bound without the third: %v", bound)
		}
		l.create(l.pod("old-2", labels))
		l.untilBound("old", 3)
		l.noLeak()
	})
}

// TestMixedPriority holds that members of two priorities are an event, and that
// the gang starts when they are of one.
func TestMixedPriority(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, p *plane) {
		l := newLab(t, p, 2)
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: l.namespace}, Value: 5}
		if _, err := p.client.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		l.podGroup("mixed", 2)
		high := l.member("mixed", 0)
		high.Spec.PriorityClassName = class.Name
		l.create(high)
		l.create(l.member("mixed", 1))
		l.untilEvent("PodGroup", "mixed", podgroup.ReasonMixed, "mixed-0 has 5 and mixed-1 has 0")
		if bound := l.bound(""); len(bound) > 0 {
			t.Errorf("bound with two priorities: %v", bound)
		}
		l.delete("mixed-1")
		second := l.member("mixed", 1)
		second.Spec.PriorityClassName = class.Name
		l.create(second)
		l.untilBound("mixed", 2)
	})
}

// TestLoneRetry holds that the member of a run that has to start again does not
// wait for those that have succeeded.
func TestLoneRetry(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, p *plane) {
		l := newLab(t, p, 3)
		l.podGroup("run", 3)
		job := &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: "run", Namespace: l.namespace},
			Spec: batchv1.JobSpec{
				Parallelism: ptr.To[int32](3), Completions: ptr.To[int32](3),
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{
						Labels:      map[string]string{gangkey.Label: "run"},
						Annotations: map[string]string{sandbox.RunForAnnotation: "1h"},
					},
					Spec: l.podSpec(),
				},
			},
		}
		job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		if _, err := p.client.BatchV1().Jobs(l.namespace).Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		l.untilBound("run", 3)
		var members []corev1.Pod
		l.until("3 running pods", func(context.Context) (bool, string) { // or kwok would write over what follows
			members = l.pods("run")
			running := 0
			for _, pod := range members {
				if pod.Status.Phase == corev1.PodRunning {
					running++
				}
			}
			return running == 3, fmt.Sprint(running)
		})
		for _, pod := range members[:2] {
			patch := []byte(`{"status":{"phase":"Succeeded"}}`)
			if _, err := p.client.CoreV1().Pods(l.namespace).Patch(t.Context(), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
				t.Fatal(err)
			}
		}
		l.delete(members[2].Name)
		l.until("the retry on a node", func(context.Context) (bool, string) {
			for _, pod := range l.pods("run") {
				if pod.UID != members[0].UID && pod.UID != members[1].UID && pod.UID != members[2].UID {
					return pod.Spec.NodeName != "", fmt.Sprint(pod.Status.Conditions)
				}
			}
			return false, "there is no new pod"
		})
	})
}

// TestGroupsOfTheAPI holds that the API's own PodGroups are placed beside those of
// objects and labels.
func TestGroupsOfTheAPI(t *testing.T) {
	t.Parallel()
	withAPI.start(t)
	l := newLab(t, withAPI, 4)
	l.ownGroup("own", 2)
	l.podGroup("own", 2) // of the same name, and another gang
	for i := range 2 {
		own := l.pod(fmt.Sprintf("api-%d", i), nil)
		own.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("own")}
		l.create(own)
		if i == 0 {
			l.create(l.member("own", 0))
		}
	}
	l.untilBound("api", 2)
	if bound := l.bound("own"); len(bound) > 0 {
		t.Errorf("a member of the gang of the object was bound with the API's group: %v", bound)
	}
	l.create(l.member("own", 1))
	l.untilBound("own", 2)
	l.until("the condition on the API's group", func(ctx context.Context) (bool, string) {
		got, err := l.client.SchedulingV1beta1().PodGroups(l.namespace).Get(ctx, "own", metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		for _, c := range got.Status.Conditions {
			if c.Type == schedulingv1beta1.PodGroupInitiallyScheduled && c.Status == metav1.ConditionTrue {
				return true, ""
			}
		}
		return false, fmt.Sprint(got.Status.Conditions)
	})
}

// ownGroup makes a PodGroup of the API's own.
func (l *lab) ownGroup(name string, minCount int32) {
	l.Helper()
	group := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: l.namespace},
		Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
			Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: minCount},
		}},
	}
	if _, err := l.client.SchedulingV1beta1().PodGroups(l.namespace).Create(l.Context(), group, metav1.CreateOptions{}); err != nil {
		l.Fatal(err)
	}
}
