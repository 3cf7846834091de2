package gang

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/contain"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/podgroup"
)

// handle is what the plugin uses of the framework.
type handle struct {
	fwk.Handle
	groups  []*schedulingv1beta1.PodGroup
	waiting []*waitingPod
}

func (h *handle) ProfileName() string                       { return "profile" }
func (h *handle) EventRecorder() events.EventRecorderLogger { return nil }
func (h *handle) PodGroupManager() fwk.PodGroupManager      { return manager{groups: h.groups} }

// manager has the groups that the scheduler knows.
type manager struct {
	fwk.PodGroupManager
	groups lister
}

func (m manager) PodGroups() fwk.PodGroupLister { return m.groups }

func (m manager) PodGroupStates() fwk.PodGroupStateLister { return states{} }

// states has no group of which a member has a node.
type states struct{}

func (states) Get(string, string) (fwk.PodGroupState, error) { return nil, errors.New("not there") }

type lister []*schedulingv1beta1.PodGroup

func (l lister) Get(namespace, name string) (*schedulingv1beta1.PodGroup, error) {
	for _, group := range l {
		if group.Namespace == namespace && group.Name == name {
			return group, nil
		}
	}
	return nil, errors.New("not there")
}

func (h *handle) IterateOverWaitingPods(visit func(fwk.WaitingPod)) {
	for _, w := range h.waiting {
		visit(w)
	}
}

func (h *handle) GetWaitingPod(uid types.UID) fwk.WaitingPod {
	for _, w := range h.waiting {
		if w.pod.UID == uid {
			return w
		}
	}
	return nil
}

// rejected returns the names of the pods that were let go.
func (h *handle) rejected() []string {
	var rejected []string
	for _, w := range h.waiting {
		w.mu.Lock()
		if w.rejected {
			rejected = append(rejected, w.pod.Name)
		}
		w.mu.Unlock()
	}
	return rejected
}

type waitingPod struct {
	fwk.WaitingPod
	pod      *corev1.Pod
	plugins  []string
	mu       sync.Mutex
	rejected bool
}

func (w *waitingPod) GetPod() *corev1.Pod         { return w.pod }
func (w *waitingPod) GetPendingPlugins() []string { return w.plugins }

func (w *waitingPod) Reject(string, string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rejected = true
	return true
}

// heard records what the plugin tells.
type heard struct {
	profile string
	placed  []int
	cycles  []any
	held    []int
}

func (h *heard) Configure(profile string, _ *args.GangArgs) { h.profile = profile }

func (h *heard) Held(_, _ string, nodes int, _ time.Time) { h.held = append(h.held, nodes) }

func (h *heard) Tried(_, _ string, cycle any, placed int) {
	h.placed, h.cycles = append(h.placed, placed), append(h.cycles, cycle)
}

func pod(name, group string, priority int32) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Spec:       corev1.PodSpec{Priority: &priority},
	}
	if group != "" {
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
	}
	return p
}

func group(name string, priority *int32, annotations map[string]string) *schedulingv1beta1.PodGroup {
	return &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Annotations: annotations},
		Spec:       schedulingv1beta1.PodGroupSpec{Priority: priority},
	}
}

func TestPreEnqueue(t *testing.T) {
	t.Parallel()
	h := &handle{groups: []*schedulingv1beta1.PodGroup{
		group("x:seen", ptr.To[int32](5), nil),
		group("x:unseen", nil, nil),
		group("x:mixed", ptr.To[int32](5), map[string]string{podgroup.HoldAnnotation: "two priorities"}),
		group("api", nil, map[string]string{podgroup.HoldAnnotation: "not ours to hold"}),
	}}
	tests := []struct {
		name string
		pod  *corev1.Pod
		want string // why it is held; empty: it is not
	}{
		{"no group", pod("a", "", 5), ""},
		{"the API's group", pod("a", "api", 5), ""},
		{"no such group", pod("a", "x:none", 5), ""},
		{"its priority", pod("a", "x:seen", 5), ""},
		{"another priority", pod("a", "x:seen", 6), podgroup.ReasonPriority},
		{"no priority yet", pod("a", "x:unseen", 0), podgroup.ReasonPriority},
		{"a contradiction", pod("a", "x:mixed", 5), "two priorities"},
	}
	plugin := newPlugin(&args.GangArgs{}, h, &heard{}, NewHolds(clocktesting.NewFakeClock(time.Time{})))
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			status := plugin.PreEnqueue(t.Context(), test.pod)
			if got := status.Message(); got != test.want {
				t.Errorf("held for %q, want %q", got, test.want)
			}
			if test.want != "" && status.Code() != fwk.UnschedulableAndUnresolvable {
				t.Errorf("code %v", status.Code())
			}
		})
	}
}

// TestOnlyItsGroupWakesAMember holds that a change of another group, or of one of
// that name elsewhere, does not.
func TestOnlyItsGroupWakesAMember(t *testing.T) {
	t.Parallel()
	plugin := newPlugin(&args.GangArgs{}, &handle{}, &heard{}, NewHolds(clocktesting.NewFakeClock(time.Time{})))
	registered, err := plugin.EventsToRegister(t.Context())
	if err != nil || len(registered) != 2 {
		t.Fatalf("got %v, %v", registered, err)
	}
	elsewhere := group("x:g", nil, nil)
	elsewhere.Namespace = "other"
	for want, changed := range map[fwk.QueueingHint][]*schedulingv1beta1.PodGroup{
		fwk.Queue:     {group("x:g", nil, nil)},
		fwk.QueueSkip: {group("x:other", nil, nil), elsewhere},
	} {
		for _, c := range changed {
			if got, err := registered[0].QueueingHintFn(klog.Background(), pod("a", "x:g", 0), nil, c); got != want || err != nil {
				t.Errorf("change of %s/%s: %v, %v; want %v", c.Namespace, c.Name, got, err, want)
			}
		}
	}
}

func TestReserveCountsATrial(t *testing.T) {
	t.Parallel()
	told := &heard{}
	plugin := newPlugin(&args.GangArgs{}, &handle{}, told, NewHolds(clocktesting.NewFakeClock(time.Time{})))
	trial := func(cycle fwk.PodGroupCycleState, names ...string) {
		for _, name := range names {
			state := framework.NewCycleState()
			state.SetPodGroupSchedulingCycle(cycle)
			if status := plugin.Reserve(t.Context(), state, pod(name, "x:g", 0), "node"); !status.IsSuccess() {
				t.Fatal(status)
			}
		}
	}
	first, second := framework.NewCycleState(), framework.NewCycleState()
	trial(first, "a", "b")
	trial(second, "a")
	if err := plugin.Reserve(t.Context(), framework.NewCycleState(), pod("a", "x:g", 0), "node"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{1, 2, 1}, told.placed); diff != "" {
		t.Errorf("placed (-want +got):\n%s", diff)
	}
	if !slices.Equal(told.cycles, []any{first, first, second}) {
		t.Error("trials are not told apart")
	}
}

// waiters returns a handle with pods at Permit: two members of the gang, one that
// waits for another plugin alone, one of another gang, one of none.
func waiters() *handle {
	h := &handle{groups: []*schedulingv1beta1.PodGroup{group("x:g", nil, map[string]string{podgroup.TimeoutAnnotation: "20s"})}}
	for _, w := range []struct{ name, group, plugin string }{
		{"a", "x:g", names.GangScheduling},
		{"b", "x:g", names.GangScheduling},
		{"complete", "x:g", "Other"},
		{"c", "x:h", names.GangScheduling},
		{"d", "", "Other"},
	} {
		h.waiting = append(h.waiting, &waitingPod{pod: pod(w.name, w.group, 0), plugins: []string{w.plugin}})
	}
	return h
}

func TestLostMemberReleasesItsSiblings(t *testing.T) {
	t.Parallel()
	h := waiters()
	plugin := newPlugin(&args.GangArgs{}, h, &heard{}, NewHolds(clocktesting.NewFakeClock(time.Time{})))
	trial := framework.NewCycleState()
	trial.SetPodGroupSchedulingCycle(framework.NewCycleState())
	plugin.Unreserve(t.Context(), trial, pod("lost", "x:g", 0), "node")
	plugin.Unreserve(t.Context(), framework.NewCycleState(), pod("lost", "", 0), "node")
	if got := h.rejected(); got != nil {
		t.Errorf("a trial, or a pod in no gang, let go %v", got)
	}
	plugin.Unreserve(t.Context(), framework.NewCycleState(), pod("lost", "x:g", 0), "node")
	if diff := cmp.Diff([]string{"a", "b"}, h.rejected()); diff != "" {
		t.Errorf("let go (-want +got):\n%s", diff)
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		group string
		stop  func(*Plugin, *corev1.Pod)
		after time.Duration
		want  []string
	}{
		{"its object's, not over", "x:g", nil, 19 * time.Second, nil},
		{"its object's", "x:g", nil, 20 * time.Second, []string{"a", "b"}},
		{"the profile's, not over", "x:h", nil, 59 * time.Second, nil},
		{"the profile's", "x:h", nil, time.Minute, []string{"c"}},
		{"of a bound member", "x:g", func(p *Plugin, m *corev1.Pod) {
			p.PostBind(context.Background(), framework.NewCycleState(), m, "node")
		}, time.Hour, nil},
		{"of a member that is let go by then", "x:none", func(p *Plugin, m *corev1.Pod) {
			p.Unreserve(context.Background(), framework.NewCycleState(), m, "node")
		}, time.Hour, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h, c := waiters(), clocktesting.NewFakeClock(time.Time{})
			plugin := newPlugin(&args.GangArgs{Timeout: metav1.Duration{Duration: time.Minute}}, h, &heard{}, NewHolds(c))
			name := map[string]string{"x:g": "a", "x:h": "c", "x:none": "e"}[test.group]
			member := pod(name, test.group, 0)
			if status, wait := plugin.Permit(t.Context(), framework.NewCycleState(), member, "node"); !status.IsSuccess() || wait != 0 {
				t.Fatalf("Permit: %v, %v", status, wait)
			}
			if test.stop != nil {
				test.stop(plugin, member)
			}
			c.Step(test.after)
			if diff := cmp.Diff(test.want, h.rejected()); diff != "" {
				t.Errorf("let go (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFactory(t *testing.T) {
	t.Parallel()
	told := &heard{}
	guard := contain.NewGuard(t.Context(), Name, &handle{}, contain.Options{
		Metrics: contain.NewMetrics(), Budgets: contain.DefaultBudgets(), Clock: clocktesting.NewFakePassiveClock(time.Time{}),
	})
	plugin, err := New(told, NewHolds(clocktesting.NewFakeClock(time.Time{})))(t.Context(), nil, &handle{}, guard)
	if err != nil {
		t.Fatal(err)
	}
	if plugin.Name() != Name || told.profile != "profile" {
		t.Errorf("plugin %q of profile %q", plugin.Name(), told.profile)
	}
	if _, err := New(told, NewHolds(clocktesting.NewFakeClock(time.Time{})))(t.Context(), &runtime.Unknown{Raw: []byte(`{"timeuot": "1m"}`)}, &handle{}, guard); err == nil {
		t.Error("a typo in the arguments is no error")
	}
}
