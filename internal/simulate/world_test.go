package simulate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate/engine"
)

var taken = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func options(t *testing.T) engine.Options {
	t.Helper()
	if err := engine.Gates(); err != nil {
		t.Fatal(err)
	}
	c, err := latest.Default()
	if err != nil {
		t.Fatal(err)
	}
	return engine.Options{Profiles: c.Profiles, Seed: 1}
}

func newWorld(t *testing.T, s *snapshot.Snapshot) *World {
	t.Helper()
	w, err := NewWorld(t.Context(), s, options(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// run takes the steps on the snapshot and returns what came of it.
func run(t *testing.T, s *snapshot.Snapshot, steps ...Step) *Outcome {
	t.Helper()
	w := newWorld(t, s)
	if err := w.Take(t.Context(), steps...); err != nil {
		t.Fatal(err)
	}
	return w.Outcome()
}

func node(name, zone, cpu string) *corev1.Node {
	r := corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110")}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: zone}},
		Status:     corev1.NodeStatus{Capacity: r, Allocatable: r},
	}
}

func zones(perZone int) []*corev1.Node {
	var nodes []*corev1.Node
	for i := range perZone {
		for _, z := range []string{"a", "b", "c"} {
			nodes = append(nodes, node(fmt.Sprintf("%s%d", z, i), z, "4"))
		}
	}
	return nodes
}

func template(app, cpu string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "c", Image: app, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}},
		}}},
	}
}

func deployment(app string, replicas int32, cpu string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: app, UID: types.UID(app)},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, Template: template(app, cpu),
		},
	}
}

// running returns the deployment's ReplicaSet and its pods, on the nodes.
func running(d *appsv1.Deployment, nodes ...string) (*appsv1.ReplicaSet, []*corev1.Pod) {
	n := int32(len(nodes))
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Namespace, Name: d.Name + "-old", UID: d.UID + "-old", CreationTimestamp: metav1.NewTime(taken.Add(-time.Hour)),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: &n, Selector: d.Spec.Selector, Template: *d.Spec.Template.DeepCopy()},
	}
	rs.Spec.Template.Labels = map[string]string{"app": d.Name, "pod-template-hash": "old"}
	var pods []*corev1.Pod
	for i, on := range nodes {
		start := metav1.NewTime(taken.Add(-time.Hour))
		pods = append(pods, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: d.Namespace, Name: fmt.Sprintf("%s-old-%d", d.Name, i), UID: types.UID(fmt.Sprintf("%s-old-%d", d.UID, i)),
				Labels: rs.Spec.Template.Labels, CreationTimestamp: start,
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(rs, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
			},
			Spec:   *d.Spec.Template.Spec.DeepCopy(),
			Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &start, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: start}}},
		})
		pods[i].Spec.NodeName, pods[i].Spec.SchedulerName = on, "default-scheduler"
	}
	return rs, pods
}

func world(nodes []*corev1.Node, d *appsv1.Deployment, on ...string) *snapshot.Snapshot {
	rs, pods := running(d, on...)
	return &snapshot.Snapshot{
		Taken: taken, Nodes: nodes, Namespaces: []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}},
		Deployments: []*appsv1.Deployment{d}, ReplicaSets: []*appsv1.ReplicaSet{rs}, Pods: pods,
	}
}

// perZone counts the placed pods in each zone; "" are those that are nowhere.
func perZone(s *snapshot.Snapshot, out *Outcome) map[string]int {
	zone := map[string]string{}
	for _, n := range s.Nodes {
		zone[n.Name] = n.Labels[corev1.LabelTopologyZone]
	}
	count := map[string]int{}
	for _, p := range out.Pods {
		count[zone[p.After]]++
	}
	return count
}

func spread(d *appsv1.Deployment, matchKeys ...string) *appsv1.Deployment {
	d = d.DeepCopy()
	d.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: d.Spec.Selector, MatchLabelKeys: matchKeys,
	}}
	return d
}

// Story 4's neighbour: pods that were all in one zone are spread when a policy says
// so.
func TestRolloutSpreads(t *testing.T) {
	t.Parallel()
	d := deployment("web", 6, "100m")
	s := world(zones(2), d, "a0", "a0", "a0", "a1", "a1", "a1")
	out := run(t, s, Rollout{spread(d, "pod-template-hash")})
	if diff := cmp.Diff(map[string]int{"a": 2, "b": 2, "c": 2}, perZone(s, out)); diff != "" {
		t.Error(diff)
	}
	if len(out.Stuck) > 0 {
		t.Errorf("stuck: %+v", out.Stuck)
	}
}

// Story 6: as many nodes as replicas, and each pod on a node of its own: nothing
// can surge, and nothing may be unavailable.
func TestRolloutDeadlock(t *testing.T) {
	t.Parallel()
	d := deployment("db", 3, "100m")
	d.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		LabelSelector: d.Spec.Selector, TopologyKey: corev1.LabelHostname,
	}}}}
	s := world(zones(1), d, "a0", "b0", "c0")
	changed := d.DeepCopy()
	changed.Spec.Template.Spec.PriorityClassName = "none"
	out := run(t, s, Rollout{changed})
	if len(out.Stuck) != 1 || out.Stuck[0].Placed != 0 || out.Stuck[0].Old != 3 || out.Stuck[0].MaxUnavailable != 0 {
		t.Errorf("stuck is %+v, want the rollout with no new pod placed and three old ones left", out.Stuck)
	}
	surge, unavailable := intstr.FromInt32(0), intstr.FromInt32(1)
	changed.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &unavailable}
	if out := run(t, s, Rollout{changed}); len(out.Stuck) != 0 {
		t.Errorf("stuck is %+v with maxSurge 0, which is the way out", out.Stuck)
	}
}

func TestLoseZone(t *testing.T) {
	t.Parallel()
	d := deployment("web", 3, "3")
	s := world(zones(1), d, "a0", "b0", "c0")
	out := run(t, s, Lose{[]string{"b0"}})
	verdicts := map[Verdict]int{}
	for _, p := range out.Pods {
		verdicts[p.Verdict]++
	}
	if diff := cmp.Diff(map[Verdict]int{Placed: 2, Waiting: 1}, verdicts); diff != "" {
		t.Error(diff)
	}
	out = run(t, s, Lose{[]string{"b0"}}, AddNodes{Template: s.Nodes[0], Count: 1})
	if i := slices.IndexFunc(out.Pods, func(p Pod) bool { return p.Verdict != Placed }); i >= 0 {
		t.Errorf("with a new node %+v is not placed", out.Pods[i])
	}
}

// A cluster that is full can get nodes, and the pods say how many.
func TestGrow(t *testing.T) {
	t.Parallel()
	d := deployment("web", 3, "3")
	s := world(zones(1), d, "a0", "b0", "c0")
	w := newWorld(t, s)
	if err := w.Take(t.Context(), Scale{Ref{"Deployment", "shop", "web"}, 6}); err != nil {
		t.Fatal(err)
	}
	small, large := node("small", "a", "2"), node("large", "a", "8")
	if err := w.Grow(t.Context(), []Pool{{Name: "small", Template: small}, {Name: "large", Template: large}}); err != nil {
		t.Fatal(err)
	}
	out := w.Outcome()
	if diff := cmp.Diff([]Growth{{Pool: "large", Nodes: 2}}, out.Growth); diff != "" {
		t.Error(diff)
	}
	verdicts := map[Verdict]int{}
	for _, p := range out.Pods {
		verdicts[p.Verdict]++
	}
	if diff := cmp.Diff(map[Verdict]int{Placed: 3, NeedsNodes: 3}, verdicts); diff != "" {
		t.Error(diff)
	}
	if err := w.Take(t.Context(), Scale{Ref{"Deployment", "shop", "web"}, 7}); err != nil {
		t.Fatal(err)
	}
	if err := w.Grow(t.Context(), []Pool{{Name: "small", Template: small}}); err != nil {
		t.Fatal(err)
	}
	for _, p := range w.Outcome().Pods {
		// Three nodes and the two new ones: the small one was taken back.
		if want := "0/5 nodes are available: 5 Insufficient cpu."; p.Verdict == Waiting && !strings.HasPrefix(p.Attempt.Message, want) {
			t.Errorf("message is %q, want %q", p.Attempt.Message, want)
		}
	}
	if len(out.Nodes) != 3 {
		t.Errorf("there are %d nodes, want those that are there", len(out.Nodes))
	}
}

func TestScale(t *testing.T) {
	t.Parallel()
	d := deployment("web", 3, "1")
	s := world(zones(1), d, "a0", "b0", "c0")
	if out := run(t, s, Scale{Ref{"Deployment", "shop", "web"}, 9}); len(out.Pods) != 9 {
		t.Errorf("there are %d pods, want 9", len(out.Pods))
	}
	out := run(t, s, Scale{Ref{"Deployment", "shop", "web"}, 1})
	if len(out.Pods) != 1 {
		t.Errorf("there are %d pods, want 1", len(out.Pods))
	}
	w := newWorld(t, s)
	err := w.Take(t.Context(), Scale{Ref{"StatefulSet", "shop", "web"}, 1})
	if want := "there is no StatefulSet shop/web in the snapshot to scale; there is Deployment shop/web"; err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
}

// The same snapshot, steps and seed give the same outcome.
func TestSameOutcome(t *testing.T) {
	t.Parallel()
	d := deployment("web", 12, "500m")
	s := world(zones(4), d, slices.Repeat([]string{"a0", "b1", "c2"}, 4)...)
	where := func() map[string]string {
		m := map[string]string{}
		for _, p := range run(t, s, Replay{}, Lose{[]string{"a1"}}, Rollout{spread(d)}).Pods {
			m[p.Pod.Name] = p.After
		}
		return m
	}
	first := where()
	if len(slices.Compact(slices.Sorted(maps.Values(first)))) < 3 {
		t.Errorf("all pods are on few nodes: %v", first)
	}
	for range 3 {
		if diff := cmp.Diff(first, where()); diff != "" {
			t.Fatal(diff)
		}
	}
}

// Nodes that are lost are not looked at any more, whether pods were on them or not.
func TestLostNodesAreGone(t *testing.T) {
	t.Parallel()
	d := deployment("web", 2, "1")
	s := world(zones(2), d, "a0", "b1")
	w := newWorld(t, s)
	if err := w.Take(t.Context(), Mark{Nodes: []string{"a1"}, Labels: map[string]string{"pool": "x"}}, Pending{}, Lose{[]string{"a1", "a0"}}); err != nil {
		t.Fatal(err)
	}
	trial, err := w.Try(t.Context(), lone("100", nil))
	if err != nil {
		t.Fatal(err)
	}
	if want := "0/4 nodes are available: 4 Insufficient cpu."; trial.Message != want {
		t.Errorf("message is %q, want %q", trial.Message, want)
	}
}

// Of several default classes pods that name none get the one of the lowest value,
// as the API server's admission has it.
func TestDefaultPriorityClass(t *testing.T) {
	t.Parallel()
	d := deployment("web", 1, "1")
	s := world(zones(1), d, "a0")
	for name, value := range map[string]int32{"high": 100, "low": 10, "mid": 50} {
		s.PriorityClasses = append(s.PriorityClasses, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, GlobalDefault: true})
	}
	out := run(t, s, Scale{Ref{"Deployment", "shop", "web"}, 2})
	for _, p := range out.Pods {
		if p.New && (p.Pod.Spec.PriorityClassName != "low" || *p.Pod.Spec.Priority != 10) {
			t.Errorf("the new pod has class %q and priority %d, want low and 10", p.Pod.Spec.PriorityClassName, *p.Pod.Spec.Priority)
		}
	}
	if len(out.Pods) != 2 {
		t.Errorf("there are %d pods, want 2", len(out.Pods))
	}
}

// A simulation that is cut off says so, and tells pods that it has not come to from
// those that are held.
func TestCutOff(t *testing.T) {
	t.Parallel()
	d := deployment("web", 0, "100m")
	s := world(zones(1), d)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := newWorld(t, s)
	var heard []Progress
	w.Hear(2, func(p Progress) {
		heard = append(heard, p)
		if p.Tried == 4 {
			cancel()
		}
	})
	if err := w.Take(ctx, Scale{Ref{"Deployment", "shop", "web"}, 10}, Pending{}); !errors.Is(err, context.Canceled) {
		t.Fatalf("error is %v, want that it was cancelled", err)
	}
	out := w.Outcome()
	verdicts := map[Verdict]int{}
	for _, p := range out.Pods {
		verdicts[p.Verdict]++
	}
	if diff := cmp.Diff(map[Verdict]int{Placed: 4, Untried: 6}, verdicts); diff != "" || !out.Cut {
		t.Errorf("cut is %v, verdicts differ: %s", out.Cut, diff)
	}
	last := heard[len(heard)-1]
	if want := (Progress{Step: 1, Steps: 2, What: "scale Deployment shop/web to 10", Tried: 4, Waiting: 6}); last != want {
		t.Errorf("progress is %+v, want %+v", last, want)
	}
}
