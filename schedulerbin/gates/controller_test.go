package gates

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	k8stesting "k8s.io/client-go/testing"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/condition"
)

// patches returns the patches of pods.
func (r *rig) patches() []k8stesting.PatchAction {
	var out []k8stesting.PatchAction
	for _, a := range r.client.Actions() {
		if p, ok := a.(k8stesting.PatchAction); ok && a.Matches("patch", "pods") {
			out = append(out, p)
		}
	}
	return out
}

// count returns how many events have the reason.
func (r *rig) count(reason string) int {
	n := 0
	for _, e := range r.events() {
		if strings.HasPrefix(e, reason+": ") {
			n++
		}
	}
	return n
}

// TestPatch holds that gates are removed by name from the very pod, in one patch.
func TestPatch(t *testing.T) {
	t.Parallel()
	r := newRig(t, gated("p", `{"notBefore":"2026-01-01T00:00:00Z"}`, alsoGate(condition.Prefix+"h", `{"notBefore":"2026-01-01T00:00:00Z"}`)))
	r.opens("p")
	r.once()
	patches := r.patches()
	if len(patches) != 1 {
		t.Fatalf("there are %d patches", len(patches))
	}
	if kind := patches[0].GetPatchType(); kind != types.StrategicMergePatchType {
		t.Errorf("it is a %s", kind)
	}
	var got any
	if err := json.Unmarshal(patches[0].GetPatch(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"metadata": map[string]any{"uid": "uid-p"},
		"spec": map[string]any{"schedulingGates": []any{
			map[string]any{"$patch": "delete", "name": gate},
			map[string]any{"$patch": "delete", "name": condition.Prefix + "h"},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("patch (-want +got)\n%s", diff)
	}
	if n := r.count(ReasonOpened); n != 2 {
		t.Errorf("%d events say that a gate opened", n)
	}
}

// TestUnreadable holds that a gate whose annotation cannot be read stays, and that
// this is said once, and again before the API server has forgotten it.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, says string }{
		"no JSON":       {`soon`, "is no condition"},
		"unknown field": {`{"peers":{"selector":"a","min":1,"redy":true}}`, "peers.redy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, gated("p", test.text))
			for range 3 {
				r.clock.Step(renewPeriod / 3)
				r.once()
			}
			if n := r.count(ReasonUnreadable); n != 1 {
				t.Errorf("it was said %d times: %v", n, r.events())
			}
			r.clock.Step(renewPeriod / 3)
			if next := r.once(); !next.Equal(r.clock.Now().Add(renewPeriod)) {
				t.Errorf("it will be said again at %s", next)
			}
			if n := r.count(ReasonUnreadable); n != 2 || !r.said(ReasonUnreadable, test.says) {
				t.Errorf("it was said %d times: %v", n, r.events())
			}
			if got := r.gates("p"); got != stranger+" "+gate {
				t.Errorf("the pod has the gates %q", got)
			}
			if got := testutil.ToFloat64(r.metrics.waiting.WithLabelValues(string(unreadable))); got != 1 {
				t.Errorf("%v pods are counted", got)
			}
		})
	}
	r := newRig(t, gated("p", "", func(p *corev1.Pod) { p.Annotations = nil }))
	r.once()
	if !r.said(ReasonUnreadable, "has no such annotation") {
		t.Errorf("a gate without a condition: %v", r.events())
	}
}

// TestStrangers holds that pods whose gates are all others' are not looked at,
// whatever their annotations say.
func TestStrangers(t *testing.T) {
	t.Parallel()
	open := `{"notBefore":"2026-01-01T00:00:00Z"}`
	r := newRig(t, gated("p", open, func(p *corev1.Pod) {
		p.Annotations[stranger] = open
		p.Annotations["gates.kubectl-sched.github.io.example.com/g"] = open
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: stranger}, {Name: "gates.kubectl-sched.github.io.example.com/g"}}
	}), gated("going", open, func(p *corev1.Pod) {
		now := metav1.NewTime(start)
		p.DeletionTimestamp = &now
		p.Finalizers = []string{"example.com/stay"}
	}))
	r.once()
	if len(r.patches()) > 0 || len(r.events()) > 0 {
		t.Errorf("patches %v, events %v", r.patches(), r.events())
	}
}

// TestPatchFails holds that a pod that is gone or changed is no error, and that
// anything else is one, is said, and is tried again.
func TestPatchFails(t *testing.T) {
	t.Parallel()
	resource := corev1.Resource("pods")
	for name, test := range map[string]struct {
		err   error
		fails bool
		again bool
	}{
		"gone":     {err: apierrors.NewNotFound(resource, "p")},
		"another":  {err: apierrors.NewConflict(resource, "p", errors.New("Precondition failed: UID in precondition")), again: true},
		"no right": {err: apierrors.NewForbidden(resource, "p", errors.New("not yours")), fails: true, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, gated("p", `{"notBefore":"2026-01-01T00:00:00Z"}`))
			fail := true
			r.client.PrependReactor("patch", "pods", func(k8stesting.Action) (bool, runtime.Object, error) { return fail, nil, test.err })
			next, err := r.judge(t.Context(), "ns")
			if (err != nil) != test.fails {
				t.Errorf("the error is %v", err)
			}
			if test.fails && !r.said(reasonPatchFailed, "not yours") {
				t.Errorf("events: %v", r.events())
			}
			if test.again && !test.fails && !next.Equal(start.Add(conflictPeriod)) {
				t.Errorf("it is tried again at %s", next)
			}
			if r.count(ReasonOpened) > 0 {
				t.Error("it is said that the gate opened")
			}
			fail = false
			r.once()
			if got := r.gates("p"); (got == stranger) != test.again {
				t.Errorf("after another try the pod has the gates %q", got)
			}
		})
	}
}

// TestRestart holds that a second controller finds its way by the API alone.
func TestRestart(t *testing.T) {
	t.Parallel()
	first := newRig(t, gated("p", `{"notBefore":"2026-11-30T02:00:00Z"}`), gated("q", `{"notBefore":"2026-01-01T00:00:00Z"}`))
	first.opens("q")
	var objects []runtime.Object
	pods, err := first.client.CoreV1().Pods("ns").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		objects = append(objects, &pods.Items[i])
	}
	second := newRig(t, objects...)
	second.clock.Step(time.Hour)
	second.opens("p")
	if n := len(second.patches()); n != 1 {
		t.Errorf("the second controller wrote %d patches", n)
	}
}

// TestEventsOnChange holds that a wait is said when its reason changes, and that
// new numbers wait for a while.
func TestEventsOnChange(t *testing.T) {
	t.Parallel()
	r := newRig(t, gated("p", `{"peers":{"selector":"app=web","min":3}}`), running("a"), running("b"))
	r.once()
	r.once()
	if n := r.count(ReasonPeers); n != 1 {
		t.Fatalf("it was said %d times: %v", n, r.events())
	}
	r.update("a", labelled("web"))
	var next time.Time
	r.until("the label is seen", func() bool { next = r.once(); return next.Equal(start.Add(repeatPeriod)) })
	if n := r.count(ReasonPeers); n != 1 {
		t.Errorf("it was said %d times, next at %s", n, next)
	}
	r.clock.Step(repeatPeriod)
	r.once()
	if !r.said(ReasonPeers, "1 of 3") || r.count(ReasonPeers) != 2 {
		t.Errorf("events: %v", r.events())
	}
}

// TestMetrics holds that waiting pods are counted by what they wait for.
func TestMetrics(t *testing.T) {
	t.Parallel()
	r := newRig(t,
		gated("p", `{"approval":{}}`, alsoGate(condition.Prefix+"h", `{"approval":{}}`), alsoGate(condition.Prefix+"w", `{"notBefore":"2027-01-01T00:00:00Z"}`)),
		gated("q", `{"approval":{}}`))
	r.once()
	const all = `# HELP kubectl_sched_gates_waiting_pods Pods that wait for a condition of this kind. One that waits for several is counted for each; unreadable are those whose condition cannot be read.
# TYPE kubectl_sched_gates_waiting_pods gauge
kubectl_sched_gates_waiting_pods{condition="approval"} 2
kubectl_sched_gates_waiting_pods{condition="notBefore"} 1
kubectl_sched_gates_waiting_pods{condition="object"} 0
kubectl_sched_gates_waiting_pods{condition="peers"} 0
kubectl_sched_gates_waiting_pods{condition="quota"} 0
kubectl_sched_gates_waiting_pods{condition="unreadable"} 0
kubectl_sched_gates_waiting_pods{condition="window"} 0
`
	if err := testutil.CollectAndCompare(r.Controller, strings.NewReader(all), "kubectl_sched_gates_waiting_pods"); err != nil {
		t.Error(err)
	}
	for _, pod := range []string{"p", "q"} {
		if err := r.client.CoreV1().Pods("ns").Delete(t.Context(), pod, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	r.until("nothing waits", func() bool {
		return testutil.ToFloat64(r.metrics.waiting.WithLabelValues("approval")) == 0
	})
	if len(r.known) > 0 {
		t.Errorf("pods that are gone are kept: %v", r.known)
	}
}

// TestRun holds that a moment wakes the controller by the clock, not before and
// not long after, that a change of a pod does too, and that Run ends.
func TestRun(t *testing.T) {
	t.Parallel()
	at := start.Add(25 * time.Minute)
	r := newRig(t, gated("timed", `{"notBefore":"2026-11-30T01:25:00Z"}`), gated("approved", `{"approval":{}}`))
	var mu sync.Mutex
	opened := map[string]time.Time{}
	r.client.PrependReactor("patch", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		if p, ok := a.(k8stesting.PatchAction); ok {
			opened[p.GetName()] = r.clock.Now()
		}
		return false, nil, nil
	})
	openedAt := func(pod string) time.Time {
		mu.Lock()
		defer mu.Unlock()
		return opened[pod]
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Controller.Run(ctx) }()
	// ticking moves the clock until the condition holds, and gives the controller
	// time to follow it.
	ticking := func(what string, step time.Duration, holds func() bool) {
		t.Helper()
		err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
			if holds() {
				return true, nil
			}
			r.clock.Step(step)
			return false, nil
		})
		if err != nil {
			t.Fatalf("not in time: %s", what)
		}
	}
	ticking("the waits are said", 10*time.Millisecond, func() bool { return r.count(ReasonTime) == 1 && r.count(ReasonApproval) == 1 })
	r.update("approved", func(p *corev1.Pod) { p.Annotations[condition.ApprovedPrefix+"g"] = "anna" })
	ticking("the approval is seen", 10*time.Millisecond, func() bool { return !openedAt("approved").IsZero() })
	ticking("the time comes", 10*time.Second, func() bool { return !openedAt("timed").IsZero() })
	if got := openedAt("timed"); got.Before(at) {
		t.Errorf("opened at %s, before its time", got)
	}
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("Run does not end")
	}
}

// TestIdle holds that status updates of pods, and pods of namespaces in which none
// waits, wake nobody.
func TestIdle(t *testing.T) {
	t.Parallel()
	before := running("a", labelled("web"), ready)
	after := before.DeepCopy()
	after.Status.PodIP, after.ResourceVersion = "10.0.0.1", "2"
	after.Status.Conditions[0].LastProbeTime = metav1.NewTime(start)
	if podChanged(before, after) {
		t.Error("an update of the status wakes those that wait")
	}
	for name, change := range map[string]func(*corev1.Pod){
		"labels": labelled("db"), "phase": func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed },
		"readiness": func(p *corev1.Pod) { p.Status.Conditions = nil }, "deletion": func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: start} },
		"annotations": func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} }, "spec": func(p *corev1.Pod) { p.Generation++ },
	} {
		after := before.DeepCopy()
		change(after)
		if !podChanged(before, after) {
			t.Errorf("a change of %s wakes nobody", name)
		}
	}
}
