package replay

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"

	"github.com/kubectl-sched/kubectl-sched/internal/simulate/engine"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/recording"
)

func object(t *testing.T, kind, key string, of any) recording.Object {
	t.Helper()
	data, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	return recording.Object{Key: key, Kind: kind, Object: data}
}

func nodeObject(t *testing.T, name, cpu string) recording.Object {
	r := corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("10")}
	return object(t, "Node", "Node/"+name, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status:     corev1.NodeStatus{Capacity: r, Allocatable: r},
	})
}

func podObject(t *testing.T, name, cpu string) recording.Object {
	return object(t, "Pod", name, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
		Spec: corev1.PodSpec{SchedulerName: "default-scheduler", Containers: []corev1.Container{{
			Name: "c", Image: "web", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	})
}

func memberObject(t *testing.T, name, group string) recording.Object {
	return object(t, "Pod", name, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
		Spec:       corev1.PodSpec{SchedulerName: "default-scheduler", SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: &group}},
	})
}

// cycle is one in which p is tried, with a big node and a small one.
func cycle(t *testing.T, cpu string, end recording.Attempt) recording.Cycle {
	end.Pod = recording.Pod{Namespace: "default", Name: "p", UID: "p"}
	return recording.Cycle{
		Number: 1, Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		Put:     []recording.Object{nodeObject(t, "big", "8"), nodeObject(t, "small", "2"), podObject(t, "p", cpu)},
		Waiting: []types.UID{"p"}, Tries: []recording.Try{{UID: "p", Node: end.Node}}, Attempts: []recording.Attempt{end},
	}
}

func start(t *testing.T) *Replay {
	t.Helper()
	if err := engine.Gates(); err != nil {
		t.Fatal(err)
	}
	c, err := latest.Default()
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(t.Context(), engine.Options{Profiles: c.Profiles})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// step follows the cycle, with the hash that the simulator comes to.
func step(t *testing.T, c recording.Cycle) Result {
	t.Helper()
	first := start(t)
	result, err := first.Step(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if result.Invalid == "" {
		t.Error("a cycle without the right hash is not invalid")
	}
	c.Hash = first.follower.hash
	if result, err = start(t).Step(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return result
}

func TestStep(t *testing.T) {
	t.Parallel()
	const message = "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
	for name, test := range map[string]struct {
		cpu     string
		end     recording.Attempt
		victims []recording.Pod
		want    []Difference
	}{
		"the best node":   {"1", recording.Attempt{Node: "big"}, nil, nil},
		"another node":    {"1", recording.Attempt{Node: "small"}, nil, []Difference{{"default/p", "node", "small", "big"}}},
		"no node":         {"64", recording.Attempt{Message: message}, nil, nil},
		"another message": {"64", recording.Attempt{Message: "no"}, nil, []Difference{{"default/p", "message", "no", message}}},
		"a node after all": {
			"64",
			recording.Attempt{Node: "big"},
			nil,
			[]Difference{{"default/p", "node", "big", "none"}, {"default/p", "message", "", message}},
		},
		"a victim": {
			"1",
			recording.Attempt{Node: "big"},
			[]recording.Pod{{Namespace: "default", Name: "x"}},
			[]Difference{{"default/p", "victims", "default/x", ""}},
		},
		"deleted meanwhile": {"1", recording.Attempt{Node: "small", Deleted: true}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cycle(t, test.cpu, test.end)
			c.Victims = test.victims
			result := step(t, c)
			if result.Invalid == "" == test.end.Deleted {
				t.Errorf("invalid: %q", result.Invalid)
			}
			if diff := cmp.Diff(test.want, result.Differences); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The pod that is tried has room kept for it in the scheduler's memory, which its
// status does not say yet: the node is scored as all others.
func TestNominatedInMemory(t *testing.T) {
	t.Parallel()
	c := cycle(t, "1", recording.Attempt{Node: "big"})
	c.Nominated = map[types.UID]string{"p": "small"}
	if diff := cmp.Diff(Result{}, step(t, c), cmpopts.IgnoreFields(Result{}, "Pods"), cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

// Of a pod that is nominated and is in the queue no more, as while it is bound, the
// recording has the name alone. Once it is gone nothing is left of it.
func TestNominatedByName(t *testing.T) {
	t.Parallel()
	c := cycle(t, "1", recording.Attempt{Node: "big"})
	without := start(t)
	if _, err := without.Step(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	named := object(t, "Pod", "n", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "n", UID: "n"}})
	with := c
	with.Put, with.Waiting, with.Nominated = append(slices.Clone(c.Put), named), []types.UID{"n", "p"}, map[types.UID]string{"n": "big"}
	r := start(t)
	if _, err := r.Step(t.Context(), with); err != nil {
		t.Fatal(err)
	}
	if r.follower.hash == without.follower.hash {
		t.Error("the nominated pod is not seen")
	}
	c.Put = nil
	if _, err := r.Step(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if r.follower.hash != without.follower.hash {
		t.Error("the nominated pod is gone, and something of it is still seen")
	}
}

// While seats are held for a gang, a node that the simulator would have taken may have
// been one of those, and members on a node that is gone are in no recording. Where the
// simulator takes the same node, neither made a difference.
func TestUnseen(t *testing.T) {
	t.Parallel()
	for _, edit := range []func(*recording.Cycle){
		func(c *recording.Cycle) { c.Held = []string{"big"} },
		func(c *recording.Cycle) { c.Lost = true },
	} {
		for node, invalid := range map[string]bool{"big": false, "small": true} {
			c := cycle(t, "1", recording.Attempt{Node: node})
			edit(&c)
			if r := step(t, c); r.Invalid != "" != invalid || len(r.Differences) > 0 {
				t.Errorf("%s: invalid is %q, differences are %v", node, r.Invalid, r.Differences)
			}
		}
	}
}

// What others did while pods were tried says nothing of the simulator.
func TestMeanwhile(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edit    func(*recording.Cycle)
		invalid bool
	}{
		"nominations change":  {func(c *recording.Cycle) { c.Unsteady = true }, true},
		"a member is deleted": {func(c *recording.Cycle) { c.Group, c.Waiting = "g", append(c.Waiting, "q") }, true},
		"another pod waits":   {func(c *recording.Cycle) { c.Group, c.Waiting = "g", append(c.Waiting, "r") }, false},
		"seats are held": {func(c *recording.Cycle) {
			c.Attempts[0].Message = "1 seats are held for gang default/g until 11:00:00 UTC"
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cycle(t, "64", recording.Attempt{})
			c.Put = append(c.Put, memberObject(t, "q", "g"), memberObject(t, "r", "h"))
			test.edit(&c)
			result := step(t, c)
			if result.Invalid != "" != test.invalid || test.invalid == (len(result.Differences) > 0) {
				t.Errorf("invalid is %q, differences are %v", result.Invalid, result.Differences)
			}
		})
	}
}
