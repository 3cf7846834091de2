package gates

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	k8stesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/condition"
)

// start is when the tests begin, a Monday.
var start = time.Date(2026, 11, 30, 1, 0, 0, 0, time.UTC)

const (
	gate     = condition.Prefix + "g"
	stranger = "example.com/other"
)

// rig is a controller on clients that are not real.
type rig struct {
	*testing.T
	*Controller
	client *fake.Clientset
	dyn    *dynamicfake.FakeDynamicClient
	clock  *clocktesting.FakeClock
	mapper *testMapper
}

// testMapper is a mapper that learns of Jobs when it is reset, if it may.
type testMapper struct {
	meta.RESTMapper
	jobs   bool
	resets int
}

// Reset counts, and has the mapper learn.
func (m *testMapper) Reset() {
	m.resets++
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	if m.jobs {
		mapper.Add(batchv1.SchemeGroupVersion.WithKind("Job"), meta.RESTScopeNamespace)
	}
	m.RESTMapper = mapper
}

func newRig(t *testing.T, objects ...runtime.Object) *rig {
	t.Helper()
	r := &rig{
		T: t, client: fake.NewClientset(objects...), dyn: dynamicfake.NewSimpleDynamicClient(scheme.Scheme),
		clock: clocktesting.NewFakeClock(start), mapper: &testMapper{},
	}
	r.mapper.Reset()
	r.mapper.resets = 0
	factory := informers.NewSharedInformerFactory(r.client, 0)
	var err error
	r.Controller, err = New(Options{
		Client: r.client, Dynamic: r.dyn, Mapper: r.mapper, Informers: factory, Instance: "test-0", Clock: r.clock,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	factory.StartWithContext(ctx)
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
		r.watches.wait()
	})
	factory.WaitForCacheSync(ctx.Done())
	return r
}

// gated returns a pod with a stranger's gate and one of ours with the condition.
func gated(name, text string, more ...func(*corev1.Pod)) *corev1.Pod {
	p := running(name, func(p *corev1.Pod) {
		p.Annotations = map[string]string{gate: text}
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: stranger}, {Name: gate}}
	})
	for _, do := range more {
		do(p)
	}
	return p
}

// running returns a pod without gates that takes a CPU.
func running(name string, more ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(start.Add(-time.Hour))},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
		}}}},
	}
	for _, do := range more {
		do(p)
	}
	return p
}

func labelled(value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{"app": value} }
}

func ready(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
}

// alsoGate gives the pod one more gate.
func alsoGate(name, text string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Annotations[name] = text
		p.Spec.SchedulingGates = append(p.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: name})
	}
}

func cpuQuota(name, cpu string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse(cpu), corev1.ResourceServices: resource.MustParse("0")}},
	}
}

// once judges the namespace once.
func (r *rig) once() time.Time {
	r.Helper()
	next, err := r.judge(r.Context(), "ns")
	if err != nil {
		r.Fatal(err)
	}
	return next
}

// gates returns the names of the pod's gates.
func (r *rig) gates(pod string) string {
	r.Helper()
	p, err := r.client.CoreV1().Pods("ns").Get(r.Context(), pod, metav1.GetOptions{})
	if err != nil {
		r.Fatal(err)
	}
	var out []string
	for _, g := range p.Spec.SchedulingGates {
		out = append(out, g.Name)
	}
	return strings.Join(out, " ")
}

// until judges until the condition holds.
func (r *rig) until(what string, holds func() bool) {
	r.Helper()
	err := wait.PollUntilContextTimeout(r.Context(), 5*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		r.once()
		return holds(), nil
	})
	if err != nil {
		r.Fatalf("not in time: %s; events: %v", what, r.events())
	}
}

// opens judges until the pod has the stranger's gate alone.
func (r *rig) opens(pod string) {
	r.Helper()
	r.until(pod+" is released", func() bool { return r.gates(pod) == stranger })
}

// events returns "reason: note" of all events about pods.
func (r *rig) events() []string {
	var out []string
	for _, a := range r.client.Actions() {
		if c, ok := a.(k8stesting.CreateAction); ok {
			if e, ok := c.GetObject().(*eventsv1.Event); ok {
				out = append(out, e.Reason+": "+e.Note)
			}
		}
	}
	return out
}

// said reports whether an event with the reason has the text.
func (r *rig) said(reason, text string) bool {
	return slices.ContainsFunc(r.events(), func(e string) bool { return strings.HasPrefix(e, reason+": ") && strings.Contains(e, text) })
}

// update changes a pod.
func (r *rig) update(pod string, do func(*corev1.Pod)) {
	r.Helper()
	p, err := r.client.CoreV1().Pods("ns").Get(r.Context(), pod, metav1.GetOptions{})
	if err != nil {
		r.Fatal(err)
	}
	do(p)
	if _, err := r.client.CoreV1().Pods("ns").Update(r.Context(), p, metav1.UpdateOptions{}); err != nil {
		r.Fatal(err)
	}
}
