package simulate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
)

// A rollout goes on as soon as one pod is ready, so that old and new pods are counted
// together for as long as it takes. With a hard spread over both the pods of each
// moment are even, and what is left at the end need not be.
func TestRolloutPodByPod(t *testing.T) {
	t.Parallel()
	d := deployment("web", 6, "100m")
	s := world(zones(2), d, "a0", "a1", "b0", "b1", "c0", "c1")
	out := run(t, s, Rollout{spread(d)})
	counts := slices.Sorted(maps.Values(perZone(s, out)))
	// What the real controllers end with, by which of the pods are ready first.
	for _, want := range [][]int{{2, 2, 2}, {1, 2, 3}, {3, 3}} {
		if slices.Equal(counts, want) {
			return
		}
	}
	t.Errorf("zones have %v pods, want an end that clusters come to", counts)
}

// However large, a rollout never has more pods than the surge allows, nor fewer than
// must be kept, and comes to its end.
func TestRolloutKeepsToItsBounds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		replicas            int32
		surge, unavailable  string
		mostPods, leastPods int
	}{
		{6, "25%", "25%", 8, 5}, {4, "1", "0", 5, 4}, {4, "0", "1", 4, 3}, {600, "10%", "0", 660, 600},
	} {
		d := deployment("web", test.replicas, "1m")
		surge, unavailable := intstr.Parse(test.surge), intstr.Parse(test.unavailable)
		d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &unavailable}
		nodes := zones(3)
		for _, n := range nodes {
			n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("1000")
		}
		s := world(nodes, d, slices.Repeat([]string{"a0", "b0", "c0"}, int(test.replicas))[:test.replicas]...)
		changed := d.DeepCopy()
		changed.Spec.Template.Spec.PriorityClassName = "other"
		w := newWorld(t, s)
		most, least := 0, len(w.pods)
		w.Hear(1, func(Progress) { most, least = max(most, len(w.pods)), min(least, len(w.pods)) })
		if err := w.Take(t.Context(), Rollout{changed}); err != nil {
			t.Fatal(err)
		}
		out := w.Outcome()
		if most != test.mostPods || least < test.leastPods {
			t.Errorf("%+v: there were from %d to %d pods", test, least, most)
		}
		news := 0
		for _, p := range out.Pods {
			if p.New && p.After != "" {
				news++
			}
		}
		if news != int(test.replicas) || len(out.Pods) != news || len(out.Stuck) > 0 {
			t.Errorf("%+v: %d of %d pods are new, stuck: %+v", test, news, len(out.Pods), out.Stuck)
		}
	}
}

// statefulSet returns a set of pods on the nodes.
func statefulSet(s *snapshot.Snapshot, nodes ...string) *appsv1.StatefulSet {
	n := int32(len(nodes))
	sts := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "db"},
		Spec:       appsv1.StatefulSetSpec{Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}, Template: template("db", "3")},
	}
	s.StatefulSets = []*appsv1.StatefulSet{sts}
	for i, node := range nodes {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: fmt.Sprintf("db-%d", i), UID: types.UID(fmt.Sprintf("db-%d", i)), Labels: map[string]string{"app": "db"},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(sts, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))},
			},
			Spec: *sts.Spec.Template.Spec.DeepCopy(), Status: corev1.PodStatus{Phase: corev1.PodRunning},
		}
		pod.Spec.NodeName = node
		s.Pods = append(s.Pods, pod)
	}
	return sts
}

// The pods of a StatefulSet that may be unavailable together change places, as they
// cannot one by one.
func TestStatefulSetMaxUnavailable(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		most  string
		order appsv1.PodManagementPolicyType
		want  map[string]string
		stuck string
	}{
		// db-2 wants zone a and db-0 is there: in order nothing can move.
		"one by one":       {"1", appsv1.OrderedReadyPodManagement, map[string]string{"db-0": "a0", "db-1": "b0", "db-2": string(Waiting)}, "db-2"},
		"all at once":      {"3", appsv1.OrderedReadyPodManagement, map[string]string{"db-0": "a0", "db-1": string(Waiting)}, "db-1"},
		"all in parallel":  {"100%", appsv1.ParallelPodManagement, map[string]string{"db-0": string(Waiting), "db-1": string(Waiting), "db-2": "a0"}, "db-1"},
		"less than a pod":  {"10%", appsv1.ParallelPodManagement, map[string]string{"db-0": "a0", "db-1": "b0", "db-2": string(Waiting)}, "db-2"},
		"two at the least": {"67%", appsv1.ParallelPodManagement, map[string]string{"db-0": "a0", "db-1": string(Waiting), "db-2": string(Waiting)}, "db-2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &snapshot.Snapshot{Taken: taken, Nodes: zones(1)}
			sts := statefulSet(s, "a0", "b0", "c0")
			changed := sts.DeepCopy()
			most := intstr.Parse(test.most)
			changed.Spec.PodManagementPolicy = test.order
			changed.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: &most}
			changed.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "a"}
			out := run(t, s, Rollout{changed})
			if diff := cmp.Diff(test.want, on(out)); diff != "" {
				t.Error(diff)
			}
			if len(out.Stuck) != 1 || out.Stuck[0].At != test.stuck {
				t.Errorf("stuck is %+v, want at %s", out.Stuck, test.stuck)
			}
		})
	}
}

// A DaemonSet replaces as many pods at a time as may be unavailable, and stops when so
// many find no room.
func TestDaemonSetMaxUnavailable(t *testing.T) {
	t.Parallel()
	for _, most := range []int{1, 2} {
		s := &snapshot.Snapshot{Taken: taken, Nodes: zones(1)}
		ds := &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "agent", UID: "agent"},
			Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}}, Template: template("agent", "1")},
		}
		s.DaemonSets = []*appsv1.DaemonSet{ds}
		for _, node := range []string{"a0", "b0", "c0"} {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "shop", Name: "old-" + node, UID: types.UID("old-" + node), Labels: map[string]string{"app": "agent"},
					OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(ds, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))},
				},
				Spec: *ds.Spec.Template.Spec.DeepCopy(), Status: corev1.PodStatus{Phase: corev1.PodRunning},
			}
			pod.Spec.NodeName = node
			s.Pods = append(s.Pods, pod)
		}
		changed := ds.DeepCopy()
		unavailable := intstr.FromInt32(int32(most))
		changed.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &unavailable}
		changed.Spec.Template.Spec.Containers[0].Resources.Requests["cpu"] = *s.Nodes[0].Status.Allocatable.Memory() // more than there is
		out := run(t, s, Rollout{changed})
		old := 0
		for _, p := range out.Pods {
			if strings.HasPrefix(p.Pod.Name, "old-") {
				old++
			}
		}
		if old != 3-most || len(out.Stuck) != 1 {
			t.Errorf("with %d unavailable %d old pods are left and stuck is %+v, want %d and one", most, old, out.Stuck, 3-most)
		}
	}
}
