package gates

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8stesting "k8s.io/client-go/testing"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/condition"
)

var (
	configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")
	nodes      = corev1.SchemeGroupVersion.WithResource("nodes")
	jobs       = batchv1.SchemeGroupVersion.WithResource("jobs")
)

// makes creates an object that pods wait for, or replaces it.
func (r *rig) makes(resource schema.GroupVersionResource, kind, namespace, name string, status map[string]any) {
	r.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	u.SetGroupVersionKind(resource.GroupVersion().WithKind(kind))
	u.SetNamespace(namespace)
	u.SetName(name)
	_, err := r.dyn.Resource(resource).Namespace(namespace).Create(r.Context(), u, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = r.dyn.Resource(resource).Namespace(namespace).Update(r.Context(), u, metav1.UpdateOptions{})
	}
	if err != nil {
		r.Fatal(err)
	}
}

// TestConditions goes through each kind of condition: why it keeps a pod, what
// does not change that, and what opens the gate.
func TestConditions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		text    string
		objects []runtime.Object
		reason  string
		says    string
		// idle changes something that does not open the gate, becomes what does.
		idle, becomes func(r *rig)
		opened        string
	}{
		{
			name: "peers exist", text: `{"peers":{"selector":"app=web","min":2}}`,
			objects: []runtime.Object{
				running("a", labelled("web")), running("b", labelled("db")),
				running("ended", labelled("web"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
				running("elsewhere", labelled("web"), func(p *corev1.Pod) { p.Namespace = "other" }),
			},
			reason: ReasonPeers, says: `1 of 2 other pods "app=web" exist`,
			becomes: func(r *rig) { r.update("b", labelled("web")) },
			opened:  `2 of 2 other pods "app=web" exist`,
		},
		{
			name: "peers are ready", text: `{"peers":{"selector":"app=web","min":1,"ready":true}}`,
			objects: []runtime.Object{running("a", labelled("web"))},
			reason:  ReasonPeers, says: `0 of 1 other pods "app=web" are ready`,
			idle:    func(r *rig) { r.update("a", func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }) },
			becomes: func(r *rig) { r.update("a", ready) },
		},
		{
			name: "an object exists", text: `{"object":{"apiVersion":"v1","kind":"ConfigMap","name":"x"}}`,
			reason: ReasonObject, says: `ConfigMap "x" does not exist`,
			idle: func(r *rig) {
				r.makes(configMaps, "ConfigMap", "other", "x", nil)
				r.makes(configMaps, "ConfigMap", "ns", "y", nil)
			},
			becomes: func(r *rig) { r.makes(configMaps, "ConfigMap", "ns", "x", nil) },
			opened:  `ConfigMap "x" exists`,
		},
		{
			name: "an object has a value", text: `{"object":{"apiVersion":"v1","kind":"Node","name":"x","path":"{.status.conditions[?(@.type==\"Ready\")].status}","value":"True"}}`,
			reason: ReasonObject, says: `Node "x" does not exist`,
			idle: func(r *rig) {
				r.makes(nodes, "Node", "", "x", map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False"}}})
				r.until("the value is read", func() bool { return r.said(ReasonObject, `has another value than "True"`) || r.step() })
			},
			becomes: func(r *rig) {
				r.makes(nodes, "Node", "", "x", map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}})
			},
			opened: `has "True" at`,
		},
		{
			name: "an object has any value, a number", text: `{"object":{"apiVersion":"v1","kind":"ConfigMap","name":"x","path":"{.status.n}"}}`,
			reason: ReasonObject, says: `ConfigMap "x" does not exist`,
			idle: func(r *rig) {
				r.makes(configMaps, "ConfigMap", "ns", "x", map[string]any{"n": nil})
				r.until("null is read", func() bool { return r.said(ReasonObject, `has 0 values`) || r.step() })
			},
			becomes: func(r *rig) { r.makes(configMaps, "ConfigMap", "ns", "x", map[string]any{"n": int64(0)}) },
		},
		{
			name: "a kind that is not served yet", text: `{"object":{"apiVersion":"batch/v1","kind":"Job","name":"x"}}`,
			reason: ReasonObject, says: "does not serve batch/v1 Job",
			idle: func(r *rig) {
				r.makes(jobs, "Job", "ns", "x", nil)
				r.mapper.jobs = true
				resets := r.mapper.resets
				r.clock.Step(mapperPeriod - time.Second)
				if next := r.once(); r.mapper.resets != resets || !next.Equal(r.clock.Now().Add(mapperPeriod)) {
					r.Errorf("discovery was asked %d times more, and will be at %s", r.mapper.resets-resets, next)
				}
			},
			becomes: func(r *rig) { r.clock.Step(time.Second) },
		},
		{
			name: "no quota, then room", text: `{"quota":{"name":"ml"}}`,
			objects: []runtime.Object{running("a"), cpuQuota("another", "100")},
			reason:  ReasonQuota, says: `there is no resource quota "ml"`,
			becomes: func(r *rig) {
				if _, err := r.client.CoreV1().ResourceQuotas("ns").Create(r.Context(), cpuQuota("ml", "2"), metav1.CreateOptions{}); err != nil {
					r.Fatal(err)
				}
			},
			opened: `resource quota "ml" has room`,
		},
		{
			name: "a quota without room, then another pod ends", text: `{"quota":{"name":"ml"}}`,
			objects: []runtime.Object{running("a"), cpuQuota("ml", "1500m")},
			reason:  ReasonQuota, says: `requests.cpu (needs 1, 1 of 1500m are taken)`,
			becomes: func(r *rig) { r.update("a", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }) },
		},
		{
			name: "approval", text: `{"approval":{}}`,
			reason: ReasonApproval, says: "nobody has approved it",
			idle: func(r *rig) {
				r.update("p", func(p *corev1.Pod) { p.Annotations[condition.ApprovedPrefix+"another"] = "anna" })
			},
			becomes: func(r *rig) {
				r.update("p", func(p *corev1.Pod) { p.Annotations[condition.ApprovedPrefix+"g"] = "anna" })
			},
			opened: "anna approved it",
		},
		{
			name: "denied", text: `{"approval":{}}`,
			reason: ReasonApproval, says: "nobody has approved it",
			idle: func(r *rig) {
				r.update("p", func(p *corev1.Pod) {
					p.Annotations[condition.ApprovedPrefix+"g"] = "anna"
					p.Annotations[condition.DeniedPrefix+"g"] = "bert"
				})
				r.until("the denial is said", func() bool { return r.said(ReasonDenied, "bert denied it") })
			},
			becomes: func(r *rig) {
				r.update("p", func(p *corev1.Pod) { delete(p.Annotations, condition.DeniedPrefix+"g") })
			},
		},
		{
			name: "a time", text: `{"notBefore":"2026-11-30T03:00:00+01:00"}`,
			reason: ReasonTime, says: "it opens at 2026-11-30T03:00:00+01:00",
			idle: func(r *rig) {
				r.clock.Step(time.Hour - time.Nanosecond)
				if next := r.once(); !next.Equal(start.Add(time.Hour)) {
					r.Errorf("wakes at %s", next)
				}
			},
			becomes: func(r *rig) { r.clock.Step(time.Nanosecond) },
		},
		{
			name: "a window", text: `{"window":{"zone":"Europe/Berlin","days":["Mon"],"from":"22:00","to":"06:00"}}`,
			// It is Monday, 02:00 in Berlin: the window of Sunday night is not one of Monday's.
			reason: ReasonWindow, says: "its window opens at 2026-11-30T22:00:00+01:00",
			becomes: func(r *rig) { r.clock.Step(20 * time.Hour) },
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, append(test.objects, gated("p", test.text, labelled("web")))...)
			r.until("the wait is said", func() bool { return r.said(test.reason, test.says) || r.step() })
			if !r.said(test.reason, `gate "g" waits since 2026-11-30T00:00:00Z: `) {
				t.Errorf("no event says since when: %v", r.events())
			}
			if test.idle != nil {
				test.idle(r)
				r.once()
			}
			if got := r.gates("p"); got != stranger+" "+gate {
				t.Fatalf("the pod has the gates %q before its condition holds", got)
			}
			test.becomes(r)
			r.opens("p")
			if !r.said(ReasonOpened, test.opened) {
				t.Errorf("no event says %q: %v", test.opened, r.events())
			}
		})
	}
}

// step moves the clock so far that new numbers are said; it always returns false.
func (r *rig) step() bool {
	// Not so far that a time of the tests comes.
	if r.clock.Since(start) < 5*time.Minute && r.mapper.resets == 0 {
		r.clock.Step(repeatPeriod)
	}
	return false
}

// TestTrueAtOnce holds that a pod whose condition holds when it comes never waits.
func TestTrueAtOnce(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"peers": `{"peers":{"selector":"app=web","min":1}}`, "quota": `{"quota":{"name":"ml"}}`,
		"time": `{"notBefore":"2026-11-30T01:00:00Z"}`, "window": `{"window":{"zone":"UTC","from":"01:00","to":"01:01"}}`,
		"approval": `{"approval":{}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, running("a", labelled("web")), cpuQuota("ml", "2"),
				gated("p", text, func(p *corev1.Pod) { p.Annotations[condition.ApprovedPrefix+"g"] = "anna" }))
			r.once()
			if got := r.gates("p"); got != stranger {
				t.Errorf("the pod has the gates %q; events: %v", got, r.events())
			}
		})
	}
}

// TestForbidden holds that an object that may not be read is said so.
func TestForbidden(t *testing.T) {
	t.Parallel()
	r := newRig(t, gated("p", `{"object":{"apiVersion":"v1","kind":"ConfigMap","name":"x"}}`))
	r.dyn.PrependReactor("list", "configmaps", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(configMaps.GroupResource(), "", fmt.Errorf("not yours"))
	})
	r.until("it is said", func() bool { return r.said(ReasonCannotRead, "not yours") || r.step() })
}

// TestWatchedOnce holds that objects of one kind are watched once, and only for as
// long as a pod waits for one.
func TestWatchedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t,
		gated("p", `{"object":{"apiVersion":"v1","kind":"ConfigMap","name":"x"}}`),
		gated("q", `{"object":{"apiVersion":"v1","kind":"ConfigMap","name":"y"}}`),
	)
	r.makes(configMaps, "ConfigMap", "ns", "x", nil)
	r.opens("p")
	r.makes(configMaps, "ConfigMap", "ns", "y", nil)
	r.opens("q")
	for _, verb := range []string{"list", "watch"} {
		n := 0
		for _, a := range r.dyn.Actions() {
			if a.Matches(verb, "configmaps") {
				n++
			}
		}
		if n > 1 {
			t.Errorf("configmaps: %d times %s", n, verb)
		}
	}
	r.until("the watch ends", func() bool {
		r.watches.mu.Lock()
		defer r.watches.mu.Unlock()
		return len(r.watches.open) == 0
	})
}

// TestQuotaIsGivenOnce holds that pods that wait for one quota get what there is,
// the oldest first, and no more: with the status, which counts those that wait,
// none would be released.
func TestQuotaIsGivenOnce(t *testing.T) {
	t.Parallel()
	text := `{"quota":{"name":"ml"}}`
	older := func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(start.Add(-2 * time.Hour)) }
	quota := cpuQuota("ml", "3")
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse("5")}}
	r := newRig(t, quota, running("a"), gated("b", text), gated("c", text), gated("d", text), gated("z", text, older))
	// Again and again, while the informer may be behind.
	for range 3 {
		r.once()
	}
	r.opens("z")
	r.opens("b")
	r.once()
	for _, pod := range []string{"c", "d"} {
		if got := r.gates(pod); got != stranger+" "+gate {
			t.Errorf("%s has the gates %q", pod, got)
		}
	}
}

// TestQuotaComesLast holds that a pod that waits for something else takes no room.
func TestQuotaComesLast(t *testing.T) {
	t.Parallel()
	text := `{"quota":{"name":"ml"}}`
	other := condition.Prefix + "other"
	r := newRig(t, cpuQuota("ml", "1"), gated("a", text, alsoGate(other, `{"approval":{}}`)), gated("b", text))
	r.opens("b")
	if !r.said(ReasonOtherGates, "when the pod's other gates are open") {
		t.Errorf("events: %v", r.events())
	}
	r.update("a", func(p *corev1.Pod) { p.Annotations[condition.ApprovedPrefix+"other"] = "anna" })
	r.until("the other gate opens", func() bool { return r.gates("a") == stranger+" "+gate })
	if err := r.client.CoreV1().Pods("ns").Delete(r.Context(), "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.opens("a")
}
