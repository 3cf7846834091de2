package scheduler_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/sandbox"
)

// The tests in this file are of the mode without the pod-group cycle alone: there
// members wait for each other with a node, which others do not get meanwhile.

// TestModeIsSaid holds that the scheduler says how it places gangs.
func TestModeIsSaid(t *testing.T) {
	t.Parallel()
	withoutCycle.start(t)
	data, err := os.ReadFile(withoutCycle.log())
	if err != nil {
		t.Fatal(err)
	}
	if want := "Gangs are placed without the pod-group cycle"; !strings.Contains(string(data), want) {
		t.Errorf("the log does not say %q", want)
	}
}

// TestManyGangsOneAfterAnother holds that of many interleaved gangs for one of which
// there is room each is bound whole before the next, and that all are in the end.
func TestManyGangsOneAfterAnother(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, p *plane) {
		const gangs, size = 12, 4
		l := newLab(t, p, size+size/2)
		watch := l.watchBindings()
		var want []string
		for g := range gangs {
			want = append(want, fmt.Sprintf("gang%02d", g))
			l.podGroup(want[g], size)
		}
		for i := range size {
			for _, gang := range want {
				member := l.member(gang, i)
				member.Annotations = map[string]string{sandbox.RunForAnnotation: "1s"}
				member.Spec.RestartPolicy = corev1.RestartPolicyNever
				l.create(member)
			}
		}
		var order []string
		l.until("all bindings", func(context.Context) (bool, string) {
			var count int
			order, count = watch()
			return count == gangs*size, fmt.Sprint(count)
		})
		slices.Sort(order) // one that was interrupted is there twice
		if diff := cmp.Diff(want, order); diff != "" {
			t.Errorf("gangs as they were bound (-want +got):\n%s", diff)
		}
	})
}

// TestWaitingEnds holds that members which wait for one that does not come give back
// their nodes after the gang's timeout, and not before.
func TestWaitingEnds(t *testing.T) {
	t.Parallel()
	w := newWaiting(t, tornTimeout)
	begin := time.Now()
	w.begin()
	w.create(w.pod("single", nil))
	w.untilUnschedulable("single", 1)
	w.untilPlaced("single")
	if took := time.Since(begin); took < tornTimeout {
		t.Errorf("the single pod has a node after %s, and members may hold theirs for %s", took, tornTimeout)
	}
	if bound := w.bound("held"); len(bound) > 0 {
		t.Errorf("bound in part: %v", bound)
	}
	w.delete("single")
	w.allow()
	w.untilBound("held", 3)
}

// TestWaitingMemberIsDeleted holds that the siblings of a member that is deleted
// while all of them wait give back their nodes, and that the one that takes its place
// is as good.
func TestWaitingMemberIsDeleted(t *testing.T) {
	t.Parallel()
	w := newWaiting(t, 10*time.Minute)
	w.begin()
	w.create(w.pod("single", nil))
	w.untilUnschedulable("single", 1)
	w.delete("held-0")
	w.untilPlaced("single")
	if bound := w.bound("held"); len(bound) > 0 {
		t.Errorf("bound in part: %v", bound)
	}
	w.delete("single")
	w.allow()
	w.create(w.held(0))
	w.untilBound("held", 3)
}

// TestWaitingMemberIsPreempted holds that the siblings of a member that is preempted
// while all of them wait give back their nodes.
func TestWaitingMemberIsPreempted(t *testing.T) {
	t.Parallel()
	w := newWaiting(t, 10*time.Minute)
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "waiting-" + w.namespace}, Value: 5}
	if _, err := w.client.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.begin()
	important := w.pod("important", nil)
	important.Spec.PriorityClassName = class.Name
	w.create(important)
	w.untilPlaced("important")
	w.create(w.pod("single", nil))
	w.untilPlaced("single") // where the sibling was
	if bound := w.bound("held"); len(bound) > 0 {
		t.Errorf("bound in part: %v", bound)
	}
}

// TestWaitingKeepsNobodyElseWaiting holds that while a gang waits, a gang and a single
// pod of another pool do not.
func TestWaitingKeepsNobodyElseWaiting(t *testing.T) {
	t.Parallel()
	w := newWaiting(t, 10*time.Minute)
	other := newLab(t, withoutCycle, 3)
	w.begin()
	other.podGroup("free", 2)
	for _, pod := range []*corev1.Pod{other.member("free", 0), other.member("free", 1), other.pod("single", nil)} {
		pod.Spec.SchedulerName = w.name
		other.create(pod)
	}
	other.untilBound("free", 2)
	other.untilPlaced("single")
	w.create(w.pod("single", nil))
	w.untilUnschedulable("single", 1) // the gang does wait
	if bound := w.bound("held"); len(bound) > 0 {
		t.Errorf("bound in part: %v", bound)
	}
}

// waiting is a lab of two nodes and one for the third member of a gang alone, and a
// scheduler of its own in which that cannot be placed: an extender fails on it.
type waiting struct {
	*lab
	name string

	mu      sync.Mutex
	allowed bool
	tried   map[string]bool // the members that the extender was asked for
}

func newWaiting(t *testing.T, timeout time.Duration) *waiting {
	t.Helper()
	withoutCycle.start(t)
	w := &waiting{lab: newLab(t, withoutCycle, 2), tried: map[string]bool{}}
	w.name = "waiting-" + w.namespace
	server := httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(server.Close)
	w.besides(fmt.Sprintf(`
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %q}
leaderElection: {resourceName: %s}
podMaxBackoffSeconds: 2
extenders: [{urlPrefix: %q, filterVerb: filter, nodeCacheCapable: true}]
profiles:
- schedulerName: %s
  plugins: {multiPoint: {enabled: [{name: Gang}]}}
  pluginConfig: [{name: Gang, args: {mode: permit, timeout: 10m}}]
`, withoutCycle.sandbox.Kubeconfig(), w.name, server.URL, w.name))
	w.podGroupOf(podGroups, "held", 3, timeout)
	w.node(2, map[string]string{thirdLabel: w.namespace})
	patch := fmt.Appendf(nil, `{"spec":{"taints":[{"key":%q,"effect":"NoSchedule"}]}}`, thirdLabel)
	if _, err := w.client.CoreV1().Nodes().Patch(t.Context(), w.nodeName(2), types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	return w
}

// thirdLabel is of the node for the third member, and its taint.
const thirdLabel = "test.example/third"

// held returns a member of the gang.
func (w *waiting) held(i int) *corev1.Pod {
	pod := w.member("held", i)
	if i == 2 {
		pod.Spec.NodeSelector[thirdLabel] = w.namespace
		pod.Spec.Tolerations = []corev1.Toleration{{Key: thirdLabel, Operator: corev1.TolerationOpExists}}
	}
	return pod
}

// create creates pod for the lab's own scheduler.
func (w *waiting) create(pod *corev1.Pod) {
	w.Helper()
	pod.Spec.SchedulerName = w.name
	w.lab.create(pod)
}

// begin makes the members, and returns when all of them have been tried: two hold a
// node each.
func (w *waiting) begin() {
	w.Helper()
	for i := range 3 {
		w.create(w.held(i))
	}
	w.until("all members tried", func(context.Context) (bool, string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.tried) == 3, fmt.Sprint(w.tried)
	})
}

func (w *waiting) allow() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.allowed = true
}

// serve is the extender: it takes every node, and fails on the third member.
func (w *waiting) serve(to http.ResponseWriter, request *http.Request) {
	var asked extenderv1.ExtenderArgs
	if err := json.NewDecoder(request.Body).Decode(&asked); err != nil || asked.Pod == nil {
		http.Error(to, fmt.Sprintf("cannot be read: %v", err), http.StatusBadRequest)
		return
	}
	w.mu.Lock()
	if strings.HasPrefix(asked.Pod.Name, "held-") {
		w.tried[asked.Pod.Name] = true
	}
	fails := asked.Pod.Name == "held-2" && !w.allowed
	w.mu.Unlock()
	if fails {
		http.Error(to, "failed by the test", http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(to).Encode(extenderv1.ExtenderFilterResult{NodeNames: asked.NodeNames})
}
