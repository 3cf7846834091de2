package scheduler_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
)

// TestStatusOfPodGroups holds that PodGroup objects of both groups get the status
// that users of scheduler-plugins know, from the first member to the last.
func TestStatusOfPodGroups(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, p *plane) {
		l := newLab(t, p, 4)
		l.podGroup("new", 2)
		l.podGroupOf(olderPodGroups, "old", 2, 0)
		member := func(gang string, i int) *corev1.Pod {
			if gang == "new" {
				return l.member(gang, i)
			}
			return l.pod(fmt.Sprintf("%s-%d", gang, i), map[string]string{gangkey.LabelOlder: gang})
		}
		l.create(member("new", 0))
		l.create(member("old", 0))
		l.untilStatus(podGroups, "new", map[string]any{"phase": "Pending", "running": int64(0), "succeeded": int64(0), "failed": int64(0)})
		l.create(member("new", 1))
		l.create(member("old", 1))
		running := map[string]any{"phase": "Running", "running": int64(2), "succeeded": int64(0), "failed": int64(0)}
		l.untilStatus(podGroups, "new", running)
		running["scheduled"] = int64(2)
		l.untilStatus(olderPodGroups, "old", running)
		for _, name := range []string{"old-0", "old-1"} {
			l.setPhase(name, corev1.PodSucceeded)
		}
		l.untilStatus(olderPodGroups, "old", map[string]any{
			"phase": "Finished", "running": int64(0), "succeeded": int64(2), "failed": int64(0), "scheduled": int64(2),
		})
		l.setPhase("new-0", corev1.PodFailed)
		l.untilStatus(podGroups, "new", map[string]any{"phase": "Failed", "running": int64(1), "succeeded": int64(0), "failed": int64(1)})
		// As a job's controller does.
		l.delete("new-0")
		l.create(member("new", 2))
		l.untilStatus(podGroups, "new", map[string]any{"phase": "Running", "running": int64(2), "succeeded": int64(0), "failed": int64(0)})
	})
}

// TestStatusOfAnother holds that a status that another controller writes is left
// to it, whether it was there first or came later.
func TestStatusOfAnother(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, p *plane) {
		l := newLab(t, p, 6)
		for _, name := range []string{"first", "later", "ours"} {
			l.podGroup(name, 2)
		}
		theirs := map[string]any{"phase": "PreScheduling"}
		l.otherWritesStatus("first")
		for i := range 2 {
			l.create(l.member("first", i))
			l.create(l.member("later", i))
		}
		l.untilBound("first", 2)
		l.untilStatus(podGroups, "later", map[string]any{"phase": "Running", "running": int64(2), "succeeded": int64(0), "failed": int64(0)})
		l.otherWritesStatus("later")
		l.untilStatus(podGroups, "later", theirs) // what we had written is gone
		for _, name := range []string{"first-0", "later-0"} {
			l.setPhase(name, corev1.PodSucceeded)
		}
		// What came after that is written, so that would be.
		for i := range 2 {
			l.create(l.member("ours", i))
		}
		l.untilStatus(podGroups, "ours", map[string]any{"phase": "Running", "running": int64(2), "succeeded": int64(0), "failed": int64(0)})
		l.untilStatus(podGroups, "first", theirs)
		l.untilStatus(podGroups, "later", theirs)
		for _, name := range []string{"first", "later"} {
			got := l.getPodGroup(podGroups, name)
			for _, entry := range got.GetManagedFields() {
				if entry.Subresource == "status" && entry.Manager != "other-controller" {
					t.Errorf("%s writes the status of %s beside the other controller", entry.Manager, name)
				}
			}
		}
	})
}

// otherWritesStatus writes a phase as another controller would.
func (l *lab) otherWritesStatus(name string) {
	l.Helper()
	patch := []byte(`{"status":{"phase":"PreScheduling"}}`)
	options := metav1.PatchOptions{FieldManager: "other-controller"}
	if _, err := l.dynamic.Resource(podGroups).Namespace(l.namespace).Patch(l.Context(), name, types.MergePatchType, patch, options, "status"); err != nil {
		l.Fatal(err)
	}
}

func (l *lab) getPodGroup(gvr schema.GroupVersionResource, name string) *unstructured.Unstructured {
	l.Helper()
	got, err := l.dynamic.Resource(gvr).Namespace(l.namespace).Get(l.Context(), name, metav1.GetOptions{})
	if err != nil {
		l.Fatal(err)
	}
	return got
}

// untilStatus waits until the status of a PodGroup object has these fields and no
// other, except for the time at which its first member got a node: a status with a
// member that has run must have it.
func (l *lab) untilStatus(gvr schema.GroupVersionResource, name string, want map[string]any) {
	l.Helper()
	l.until(fmt.Sprintf("status %v of %s", want, name), func(context.Context) (bool, string) {
		status, _, err := unstructured.NestedMap(l.getPodGroup(gvr, name).Object, "status")
		if err != nil {
			return false, err.Error()
		}
		started, _ := status["scheduleStartTime"].(string)
		delete(status, "scheduleStartTime")
		should := want["phase"] != "Pending" && want["running"] != nil
		return fmt.Sprint(status) == fmt.Sprint(want) && (started != "") == should, fmt.Sprint(status, " started ", started)
	})
}

// setPhase ends a pod that runs.
func (l *lab) setPhase(name string, phase corev1.PodPhase) {
	l.Helper()
	pods := l.client.CoreV1().Pods(l.namespace)
	l.until(name+" running", func(ctx context.Context) (bool, string) { // or kwok would write over what follows
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return pod.Status.Phase == corev1.PodRunning, string(pod.Status.Phase)
	})
	patch := fmt.Appendf(nil, `{"status":{"phase":%q}}`, phase)
	if _, err := pods.Patch(l.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		l.Fatal(err)
	}
}
