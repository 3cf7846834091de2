package scheduler_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/podgroup"
)

const (
	// starved is the timeout of a gang that single pods keep from starting.
	starved = 20 * time.Second
	// singleLabel is of single pods that come and go.
	singleLabel = "test.example/single"
)

// TestSinglesDoNotStarveAGang holds that a gang of half a pool starts within twice
// its timeout while single pods of its priority hold at least 95 % of the pool, each
// for a short time, and more of them wait for what falls free; and that it does not
// without the seats that are held for it.
func TestSinglesDoNotStarveAGang(t *testing.T) {
	t.Parallel()
	eachPlane(t, func(t *testing.T, p *plane) {
		for name, test := range map[string]struct {
			scheduler string
			starts    bool
		}{"held": {schedulerName, true}, "greedy": {greedyName, false}} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				testStarved(t, p, test.scheduler, test.starts)
			})
		}
	})
}

// TestHoldIsPunctual holds that seats are held when the gang's timeout is over and not
// when its next try happens to be: with the queue's backoff as it is by default, half
// of the timeout, the gang starts within twice its timeout too.
func TestHoldIsPunctual(t *testing.T) {
	t.Parallel()
	withoutAPI.start(t)
	const patientName = "patient-scheduler"
	l := newLab(t, withoutAPI, 0)
	l.besides(fmt.Sprintf(`
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %q}
leaderElection: {resourceName: %s}
profiles:
- schedulerName: %s
  plugins: {multiPoint: {enabled: [{name: Gang}]}}
  pluginConfig: [{name: Gang, args: {timeout: 20s}}]
`, withoutAPI.sandbox.Kubeconfig(), patientName, patientName))
	testStarved(t, withoutAPI, patientName, true)
}

// testStarved has single pods keep a pool nearly full, and a gang of half its size
// wait for the scheduler.
func testStarved(t *testing.T, p *plane, scheduler string, starts bool) {
	t.Helper()
	l := newLab(t, p, 20)
	// Some always wait, so that the control does not hang on how soon a busy
	// machine replaces a pod.
	l.churn(scheduler, 25)
	l.until("19 single pods on nodes", func(context.Context) (bool, string) {
		n := len(l.bound("single"))
		return n >= 18, fmt.Sprint(n) // one is always being replaced
	})
	l.podGroupOf(podGroups, "half", 10, starved)
	for i := range 10 {
		member := l.member("half", i)
		member.Spec.SchedulerName = scheduler
		l.create(member)
	}
	start := time.Now()
	var held bool
	l.until("the gang whole, or two timeouts", func(context.Context) (bool, string) {
		bound := l.bound("half")
		held = held || l.isHeldOff("single")
		return len(bound) == 10 || time.Since(start) > 2*starved, fmt.Sprint(bound)
	})
	took, bound := time.Since(start), l.bound("half")
	switch {
	case starts && len(bound) < 10:
		t.Errorf("after %s, %d of 10 members have nodes", took, len(bound))
	case starts && !held:
		t.Error("no single pod was told of the seats that are held")
	case !starts && len(bound) > 0:
		t.Errorf("the gang starts (%d members in %s) without seats held for it, so the test above shows nothing", len(bound), took)
	}
	if starts {
		t.Logf("started after %s", took)
		l.untilEvent("PodGroup", "half", podgroup.ReasonWaiting, "nodes are held for it")
	}
}

// TestHeldSeatsAreGivenBack holds that seats are held against pods of the gang's
// priority for one timeout at most, and never against those of a higher one.
func TestHeldSeatsAreGivenBack(t *testing.T) {
	t.Parallel()
	eachPlane(t, func(t *testing.T, p *plane) {
		l := newLab(t, p, 4)
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: l.namespace}, Value: 5}
		if _, err := p.client.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			l.create(l.pod(fmt.Sprintf("service-%d", i), nil)) // never ends
		}
		l.untilBound("service", 2)
		l.podGroupOf(podGroups, "wide", 4, starved)
		for i := range 4 {
			l.create(l.member("wide", i))
		}
		l.untilEvent("Pod", "wide-0", "GangSeatsHeld", "seats on 4 nodes are held for the gang")
		l.create(l.pod("single", nil))
		l.until("the single pod held off", func(context.Context) (bool, string) { return l.isHeldOff("single"), "" })
		important := l.pod("important", nil)
		important.Spec.PriorityClassName = class.Name
		l.create(important)
		l.untilPlaced("important")
		if bound := l.bound("single"); len(bound) > 0 {
			t.Error("the single pod has a node while seats are held")
		}
		start := time.Now()
		l.untilPlaced("single")
		if took := time.Since(start); took > starved+3*time.Second {
			t.Errorf("the single pod waited for %s more", took)
		}
		if bound := l.bound("wide"); len(bound) > 0 {
			t.Errorf("bound in part: %v", bound)
		}
	})
}

// isHeldOff reports whether a pod of that prefix says that seats are held for a
// gang.
func (l *lab) isHeldOff(prefix string) bool {
	for _, pod := range l.pods(prefix) {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && strings.Contains(c.Message, "seats are held for gang "+l.namespace+"/") {
				return true
			}
		}
	}
	return false
}

// churn keeps n single pods in the pool until the test is over. Each ends some
// seconds after it got a node, no two at the same time, and another comes at once.
func (l *lab) churn(scheduler string, n int) {
	l.Helper()
	ctx, cancel := context.WithCancel(l.Context())
	pods := l.client.CoreV1().Pods(l.namespace)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			for run := 0; ctx.Err() == nil; run++ {
				pod := l.pod(fmt.Sprintf("single-%02d-%d", i, run), map[string]string{singleLabel: ""})
				pod.Spec.SchedulerName = scheduler
				pod.Spec.RestartPolicy = corev1.RestartPolicyNever
				if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
					continue // the API server is busy, or the test is over
				}
				l.untilOver(ctx, pod.Name, 5*time.Second+time.Duration(i)*150*time.Millisecond)
				_ = pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
			}
		})
	}
	l.Cleanup(func() {
		cancel()
		all.Wait()
		after, done := afterwards()
		defer done()
		list := metav1.ListOptions{LabelSelector: labels.Set{singleLabel: ""}.String()}
		_ = pods.DeleteCollection(after, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}, list)
	})
}

// untilOver returns when the pod has had a node for so long, or ctx is over.
func (l *lab) untilOver(ctx context.Context, name string, run time.Duration) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var since time.Time
	for since.IsZero() || time.Since(since) < run {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !since.IsZero() {
			continue
		}
		pod, err := l.client.CoreV1().Pods(l.namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return
		case err == nil && pod.Spec.NodeName != "":
			since = time.Now()
		}
	}
}
