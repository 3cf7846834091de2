package podgroup

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
)

// TestShortWait holds that of a gang that has not waited for long one member is told,
// and all of them when it has.
func TestShortWait(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset()
	var told []string
	client.PrependReactor("create", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
		told = append(told, action.(clienttesting.CreateAction).GetObject().(*eventsv1.Event).Regarding.Name)
		return true, nil, nil
	})
	c := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	e := New(Options{Client: client, Clock: c, Reporter: "us", Instance: "here"})
	e.directory.policies["ours"] = policy{timeout: time.Hour, onPartial: args.Report}
	e.directory.setSpec(object{gangkey.FamilyX, "ns", "g"}, &spec{uid: "object", minMember: 2})
	e.directory.setPod(pod("a", "g"))
	e.directory.setPod(pod("b", "g"))
	e.directory.endCycle(types.NamespacedName{Namespace: "ns", Name: "x-k8s.io:g"}, false)
	said := map[types.NamespacedName]*statement{}
	for _, look := range []struct {
		after time.Duration
		want  []string
	}{
		{2 * time.Second, nil},
		{2 * time.Second, []string{"a", "g"}},
		{5 * time.Second, nil},
		{2 * time.Second, []string{"a", "b", "g"}},
		{20 * time.Second, nil},
	} {
		told = nil
		c.Step(look.after)
		e.report(t.Context(), said)
		if diff := cmp.Diff(look.want, told); diff != "" {
			t.Errorf("%s later: told (-want +got):\n%s", look.after, diff)
		}
	}
}

// TestWhoIsTold holds that while members are being made one of them is told, that
// every member is told once when the gang is complete and does not fit, and that
// numbers which change after that are told to one again.
func TestWhoIsTold(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset()
	var told []string
	client.PrependReactor("create", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
		event := action.(clienttesting.CreateAction).GetObject().(*eventsv1.Event)
		told = append(told, event.Regarding.Kind+" "+event.Regarding.Name)
		return true, event, nil
	})
	c := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	e := New(Options{Client: client, Clock: c, Reporter: "us", Instance: "here"})
	e.directory.policies["ours"] = policy{timeout: time.Hour, onPartial: args.Report}
	e.directory.setSpec(object{gangkey.FamilyX, "ns", "g"}, &spec{uid: "object", minMember: 3})
	said := map[types.NamespacedName]*statement{}
	look := func(when string, want ...string) {
		t.Helper()
		told = nil
		c.Step(20 * time.Second)
		e.report(t.Context(), said)
		if diff := cmp.Diff(want, told); diff != "" {
			t.Errorf("%s: told (-want +got):\n%s", when, diff)
		}
	}
	key := types.NamespacedName{Namespace: "ns", Name: "x-k8s.io:g"}
	e.directory.setPod(pod("a", "g"))
	look("one member", "Pod a", "PodGroup g")
	e.directory.setPod(pod("b", "g"))
	look("two members", "Pod a", "PodGroup g")
	look("nothing new")
	e.directory.setPod(pod("c", "g"))
	e.directory.tried(key, "trial", 1)
	e.directory.endCycle(key, false)
	look("complete and no room", "Pod a", "Pod b", "Pod c", "PodGroup g")
	e.directory.tried(key, "another trial", 2)
	e.directory.endCycle(key, false)
	look("more room", "Pod a", "PodGroup g")
	e.Held("ns", "x-k8s.io:g", 2, c.Now().Add(time.Hour))
	told = nil
	e.report(t.Context(), said) // at the same time: numbers would not be repeated yet
	if diff := cmp.Diff([]string{"Pod a", "PodGroup g"}, told); diff != "" {
		t.Errorf("seats are held: told (-want +got):\n%s", diff)
	}
}
