package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"

	"github.com/kubectl-sched/kubectl-sched/internal/simulate/store"
)

// stock returns the default profile.
func stock(t testing.TB) []config.KubeSchedulerProfile {
	t.Helper()
	if err := Gates(); err != nil {
		t.Fatal(err)
	}
	c, err := latest.Default()
	if err != nil {
		t.Fatal(err)
	}
	return c.Profiles
}

func start(t testing.TB, o Options, objects ...store.Object) *Engine {
	t.Helper()
	if o.Profiles == nil {
		o.Profiles = stock(t)
	}
	e, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	put(t, e, objects...)
	return e
}

func put(t testing.TB, e *Engine, objects ...store.Object) {
	t.Helper()
	for _, o := range objects {
		if err := e.Put(o); err != nil {
			t.Fatal(err)
		}
	}
}

func settle(t testing.TB, e *Engine) {
	t.Helper()
	if err := e.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func node(name, zone, cpu string) *corev1.Node {
	r := corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110")}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone}},
		Status:     corev1.NodeStatus{Capacity: r, Allocatable: r},
	}
}

func pod(name, cpu string, edit ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{SchedulerName: "default-scheduler", Containers: []corev1.Container{{
			Name: "c", Image: "web", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	for _, f := range edit {
		f(p)
	}
	return p
}

func priority(n int32) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.Priority = &n } }

func on(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.NodeName, p.Status.Phase = node, corev1.PodRunning
		s := metav1.NewTime(time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC))
		p.Status.StartTime = &s
	}
}

// where returns the node of each attempt's pod, or the message.
func where(attempts []Attempt) map[string]string {
	m := map[string]string{}
	for _, a := range attempts {
		m[a.Pod.Name] = a.Node
		if a.Node == "" {
			m[a.Pod.Name] = a.Message
		}
	}
	return m
}

func TestPlaced(t *testing.T) {
	t.Parallel()
	e := start(t, Options{}, node("a", "z1", "4"), node("b", "z2", "2"),
		pod("big", "3"), pod("small", "1500m"), pod("huge", "8"))
	settle(t, e)
	want := map[string]string{
		"big": "a", "small": "b",
		"huge": "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
	}
	if diff := cmp.Diff(want, where(e.Attempts())); diff != "" {
		t.Error(diff)
	}
	if p, _ := e.Pod(types.NamespacedName{Namespace: "default", Name: "big"}); p == nil || p.Spec.NodeName != "a" {
		t.Errorf("the cluster does not show where the pod is: %v", p)
	}
}

func TestPreempted(t *testing.T) {
	t.Parallel()
	e := start(t, Options{}, node("a", "z1", "4"), node("b", "z2", "4"),
		pod("low-a", "3", on("a"), priority(1)), pod("mid-b", "3", on("b"), priority(5)), pod("high", "3", priority(9)))
	settle(t, e)
	attempts := e.Attempts()
	if len(attempts) != 2 || attempts[0].Nominated != "a" || attempts[1].Node != "a" {
		t.Errorf("attempts are %+v, want one that makes room on a, where the lowest priority is, and one that takes it", attempts)
	}
	evictions := e.Evictions()
	if len(evictions) != 1 || evictions[0].Victim.Name != "low-a" {
		t.Errorf("evicted %+v, want low-a", evictions)
	}
	if _, ok := e.Pod(types.NamespacedName{Namespace: "default", Name: "low-a"}); ok {
		t.Error("the victim is still there")
	}
}

// A pod that waits is tried again when something comes that helps it, and not
// otherwise.
func TestWoken(t *testing.T) {
	t.Parallel()
	e := start(t, Options{}, node("a", "z1", "1"), pod("big", "3"))
	settle(t, e)
	if a := e.Attempts(); len(a) != 1 || a[0].Node != "" {
		t.Fatalf("attempts are %+v, want one that failed", a)
	}
	put(t, e, node("b", "z1", "8"))
	settle(t, e)
	if a := e.Attempts(); len(a) != 1 || a[0].Node != "b" {
		t.Errorf("attempts are %+v, want one on the new node", a)
	}
}

// The number of workers makes no difference, and the seed does.
func TestDeterministic(t *testing.T) {
	t.Parallel()
	run := func(workers int, seed uint64) map[string]string {
		e := start(t, Options{Workers: workers, Seed: seed})
		for i := range 300 {
			put(t, e, node(fmt.Sprintf("n%03d", i), fmt.Sprintf("z%d", i%3), "4"))
		}
		for i := range 200 {
			put(t, e, pod(fmt.Sprintf("p%03d", i), "500m"))
		}
		settle(t, e)
		return where(e.Attempts())
	}
	want := run(1, 1)
	for range 3 {
		if diff := cmp.Diff(want, run(8, 1)); diff != "" {
			t.Fatal(diff)
		}
	}
	if cmp.Equal(want, run(1, 2)) {
		t.Error("another seed decides ties the same way")
	}
}

// ganged returns the default profile with the plugin Gang.
func ganged(t *testing.T) []config.KubeSchedulerProfile {
	profiles := stock(t)
	p := &profiles[0].Plugins.MultiPoint
	p.Enabled = append([]config.Plugin{{Name: "Gang"}}, p.Enabled...)
	return profiles
}

// podGroup returns a PodGroup of that many members at least.
func podGroup(name string, members int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
		"metadata": map[string]any{"namespace": "default", "name": name, "uid": name},
		"spec":     map[string]any{"minMember": members},
	}}
}

// inGroup has the pod be a member of the PodGroup.
func inGroup(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": name} }
}

// Two gangs that each fit alone: one is placed whole and the other not at all.
func TestGangWhole(t *testing.T) {
	t.Parallel()
	e := start(t, Options{Profiles: ganged(t)})
	for i := range 5 {
		put(t, e, node(fmt.Sprintf("n%d", i), "z", "2"))
	}
	for _, g := range []string{"x", "y"} {
		put(t, e, podGroup(g, 8))
	}
	for i := range 8 {
		for _, g := range []string{"x", "y"} {
			put(t, e, pod(fmt.Sprintf("%s%d", g, i), "1", inGroup(g)))
		}
	}
	settle(t, e)
	placed := map[string]int{}
	for _, a := range e.Attempts() {
		if a.Node != "" {
			placed[a.Pod.Name[:1]]++
		}
	}
	if diff := cmp.Diff(map[string]int{"x": 8}, placed); diff != "" {
		t.Error(diff)
	}
}

// A trial names all that is in the way of each node, and changes nothing.
func TestTry(t *testing.T) {
	t.Parallel()
	tainted := node("a", "z1", "1")
	tainted.Spec.Taints = []corev1.Taint{{Key: "pool", Effect: corev1.TaintEffectNoSchedule}}
	e := start(t, Options{}, tainted, node("b", "z1", "1"), node("c", "z1", "4"), pod("on-c", "3", on("c")))
	trial, err := e.Try(t.Context(), pod("big", "2"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{"a": {"TaintToleration", "NodeResourcesFit"}, "b": {"NodeResourcesFit"}, "c": {"NodeResourcesFit"}}
	got := map[string][]string{}
	for name, blockers := range trial.Blockers {
		for _, b := range blockers {
			got[name] = append(got[name], b.Plugin)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || trial.Node != "" {
		t.Errorf("placed on %q, blockers differ: %s", trial.Node, diff)
	}
	// The pod itself is not in its own way.
	trial, err = e.Try(t.Context(), pod("on-c", "3", on("c")))
	if err != nil || trial.Node != "c" {
		t.Errorf("the pod would be on %q (%v), want c, where it is", trial.Node, err)
	}
	put(t, e, pod("second", "2"))
	settle(t, e)
	if a := e.Attempts(); len(a) != 1 || a[0].Node != "" {
		t.Errorf("attempts after the trials are %+v: the pod on c has lost its seat", a)
	}
}
