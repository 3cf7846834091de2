package podstatus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/kubernetes/pkg/scheduler/util"
	"k8s.io/utils/ptr"
)

// rig is a queue before a client that writes down what it is asked.
type rig struct {
	t      *testing.T
	client kubernetes.Interface
	pods   cache.Indexer
	pod    *corev1.Pod

	mu     sync.Mutex
	said   []string
	answer func(verb string) error
}

// newRig runs a queue in the bubble of the test; group is that of its only pod.
func newRig(t *testing.T, group string, limiter flowcontrol.RateLimiter) *rig {
	t.Helper()
	r := &rig{t: t, pods: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
	api := fake.NewClientset()
	api.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		word := action.GetVerb() + "/" + action.GetSubresource()
		if patch, ok := action.(clienttesting.PatchAction); ok {
			word += " " + summary(t, patch.GetPatch())
		}
		r.said = append(r.said, word)
		if r.answer != nil {
			return true, nil, r.answer(action.GetSubresource())
		}
		return true, nil, nil
	})
	r.pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "one"}}
	if group != "" {
		r.pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To(group)}
	}
	r.set(r.pod)
	q := New(Options{Client: api, Limiter: limiter, Pods: corelisters.NewPodLister(r.pods)})
	r.client = q.Client(api)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		q.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return r
}

func (r *rig) set(pod *corev1.Pod) {
	if err := r.pods.Update(pod); err != nil {
		r.t.Fatal(err)
	}
}

// condition has the scheduler's own function say why the pod waits.
func (r *rig) condition(message string) error {
	after := r.pod.Status.DeepCopy()
	after.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message}}
	return util.PatchPodStatus(r.t.Context(), r.client, "p", "ns", &r.pod.Status, after)
}

// nominate has the scheduler's own function say which node the pod is expected on.
func (r *rig) nominate(node string) error {
	after := r.pod.Status.DeepCopy()
	after.NominatedNodeName = node
	return util.PatchPodStatus(r.t.Context(), r.client, "p", "ns", &r.pod.Status, after)
}

func (r *rig) bind() error {
	return r.client.CoreV1().Pods("ns").Bind(r.t.Context(), &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}, metav1.CreateOptions{})
}

// sees compares what was asked of the API server since the last look.
func (r *rig) sees(when string, want ...string) {
	r.t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if diff := cmp.Diff(want, r.said); diff != "" {
		r.t.Errorf("%s (-want +got):\n%s", when, diff)
	}
	r.said = nil
}

// summary returns what counts of a patch of a pod's status.
func summary(t *testing.T, patch []byte) string {
	t.Helper()
	pod := &corev1.Pod{}
	if err := json.Unmarshal(patch, pod); err != nil {
		t.Error(err)
	}
	words := fmt.Sprintf("%q", pod.UID)
	for _, c := range pod.Status.Conditions {
		words += fmt.Sprintf(" %s=%s/%s %q", c.Type, c.Status, c.Reason, c.Message)
	}
	if pod.Status.NominatedNodeName != "" {
		words += " on " + pod.Status.NominatedNodeName
	}
	return words
}

// hourly lets the next request through in an hour.
func hourly() flowcontrol.RateLimiter {
	limiter := flowcontrol.NewTokenBucketRateLimiter(1.0/3600, 1)
	limiter.TryAccept()
	return limiter
}

// TestOfAPod holds what is written of one pod, and when.
func TestOfAPod(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(t *testing.T){
		"a condition is written with the pod's UID": func(t *testing.T) {
			r := newRig(t, "g", flowcontrol.NewFakeAlwaysRateLimiter())
			check(t, r.condition("no room"))
			r.sees("at once", `patch/status "one" PodScheduled=False/Unschedulable "no room"`)
		},
		"a pod in no group is not touched": func(t *testing.T) {
			r := newRig(t, "", hourly())
			check(t, r.condition("no room"))
			r.sees("at once, without a limit of ours", `patch/status "" PodScheduled=False/Unschedulable "no room"`)
		},
		"the last of two that wait is written": func(t *testing.T) {
			r := newRig(t, "g", hourly())
			check(t, r.condition("one"))
			check(t, r.condition("two"))
			r.sees("before its turn")
			later(3 * time.Hour)
			r.sees("after", `patch/status "one" PodScheduled=False/Unschedulable "two"`)
		},
		"what a patch leaves out is written too": func(t *testing.T) {
			r := newRig(t, "g", flowcontrol.NewFakeAlwaysRateLimiter())
			r.pod = r.pod.DeepCopy()
			r.pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "one"}}
			r.set(r.pod)
			check(t, r.condition("two")) // which patches the message alone
			r.sees("at once", `patch/status "one" PodScheduled=False/Unschedulable "two"`)
		},
		"a Binding takes back what waits": func(t *testing.T) {
			r := newRig(t, "g", hourly())
			check(t, r.condition("no room"))
			check(t, r.bind())
			later(3 * time.Hour)
			r.sees("ever", "create/binding")
		},
		"a member that is bound at once was never expected anywhere": func(t *testing.T) {
			r := newRig(t, "g", flowcontrol.NewFakeAlwaysRateLimiter())
			check(t, r.nominate("n"))
			later(nominationDelay / 2)
			check(t, r.bind())
			later(time.Hour)
			r.sees("ever", "create/binding")
		},
		"a member that waits is expected on its node": func(t *testing.T) {
			r := newRig(t, "g", flowcontrol.NewFakeAlwaysRateLimiter())
			check(t, r.nominate("n"))
			later(nominationDelay / 2)
			r.sees("early")
			later(nominationDelay)
			r.sees("later", `patch/status "one" on n`)
		},
		"a member that fails is expected nowhere": func(t *testing.T) {
			r := newRig(t, "g", flowcontrol.NewFakeAlwaysRateLimiter())
			check(t, r.nominate("n"))
			check(t, r.condition("no room"))
			later(time.Hour)
			r.sees("ever", `patch/status "one" PodScheduled=False/Unschedulable "no room"`)
		},
		"a preemption's result is written by its caller": func(t *testing.T) {
			r := newRig(t, "g", hourly())
			after := corev1.PodStatus{NominatedNodeName: "n", Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "room is made"}}}
			check(t, r.condition("no room"))
			check(t, util.PatchPodStatus(t.Context(), r.client, "p", "ns", &r.pod.Status, &after))
			r.sees("at once, and alone", `patch/status "" PodScheduled=False/ "room is made" on n`)
		},
		"a busy API server is asked again": func(t *testing.T) {
			r := newRig(t, "g", flowcontrol.NewFakeAlwaysRateLimiter())
			r.answers(func(string) error { return apierrors.NewTooManyRequests("busy", 1) })
			check(t, r.condition("no room"))
			synctest.Wait()
			r.answers(nil)
			later(2 * retryDelay)
			said := `patch/status "one" PodScheduled=False/Unschedulable "no room"`
			r.sees("twice in all", said, said)
		},
		"an API server that stays busy is left alone": func(t *testing.T) {
			r := newRig(t, "g", flowcontrol.NewFakeAlwaysRateLimiter())
			r.answers(func(string) error { return apierrors.NewTooManyRequests("busy", 1) })
			check(t, r.condition("no room"))
			later(time.Hour)
			synctest.Wait()
			if len(r.said) != attempts {
				t.Errorf("asked %d times, want %d", len(r.said), attempts)
			}
		},
		"a pod that is gone is not asked for again": func(t *testing.T) {
			r := newRig(t, "g", flowcontrol.NewFakeAlwaysRateLimiter())
			r.answers(func(string) error { return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "p") })
			check(t, r.condition("no room"))
			later(time.Hour)
			r.sees("once", `patch/status "one" PodScheduled=False/Unschedulable "no room"`)
		},
		"what failed before a Binding is not written after it": func(t *testing.T) {
			r := newRig(t, "g", flowcontrol.NewFakeAlwaysRateLimiter())
			r.answers(func(subresource string) error {
				if subresource == "binding" {
					return nil
				}
				return errors.New("connection lost")
			})
			check(t, r.condition("no room"))
			synctest.Wait()
			check(t, r.bind())
			later(time.Hour)
			r.sees("ever", `patch/status "one" PodScheduled=False/Unschedulable "no room"`, "create/binding")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, test)
		})
	}
}

// later returns when so much of the bubble's time has gone by.
func later(d time.Duration) { <-time.After(d) }

// answers has the API server answer so from now on; nil: with success.
func (r *rig) answers(answer func(subresource string) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// TestInTurn holds that while the scheduler's own requests use up the limit, changes
// of status still get a share of it, and no more than that.
func TestInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limiter := flowcontrol.NewTokenBucketRateLimiter(10, 1)
		r := newRig(t, "g", limiter)
		for i := range 100 {
			pod := r.pod.DeepCopy()
			pod.Name, pod.UID = fmt.Sprintf("p%d", i), types.UID(fmt.Sprint(i))
			check(t, r.pods.Add(pod))
			after := corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse}}}
			check(t, util.PatchPodStatus(t.Context(), r.client, pod.Name, "ns", &pod.Status, &after))
		}
		own := 0
		for ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second); ; own++ {
			if limiter.Wait(ctx) != nil {
				cancel()
				break
			}
		}
		synctest.Wait()
		r.mu.Lock()
		defer r.mu.Unlock()
		if written := len(r.said); written < 5 || written > own {
			t.Errorf("%d changes were written beside %d requests of the scheduler's own", written, own)
		}
	})
}
