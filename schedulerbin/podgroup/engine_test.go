package podgroup

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

// gated puts p behind a scheduling gate.
func gated(p *corev1.Pod) *corev1.Pod {
	p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/later"}}
	return p
}

// ofAPI has p name a group of the API's.
func ofAPI(p *corev1.Pod) *corev1.Pod {
	p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("own")}
	return p
}

// TestSeenInItsGroup holds that the scheduler sees a pod in its group, of whichever kind
// that is, once no gate holds the pod; where members are placed one by one, always.
func TestSeenInItsGroup(t *testing.T) {
	t.Parallel()
	native, virtual, both, oneByOne := Options{Native: true}, Options{Virtual: true}, Options{Native: true, Virtual: true}, Options{Virtual: true, OneByOne: true}
	const label = "x-k8s.io:g"
	for name, test := range map[string]struct {
		options     Options
		pod         func() *corev1.Pod
		before, now string // behind a gate, and without
	}{
		"by its label":                           {virtual, func() *corev1.Pod { return pod("a", "g") }, "", label},
		"by its label, where the API has groups": {both, func() *corev1.Pod { return pod("a", "g") }, "", label},
		"by its label, where that is not read":   {native, func() *corev1.Pod { return pod("a", "g") }, "", ""},
		"by its label, one by one":               {oneByOne, func() *corev1.Pod { return pod("a", "g") }, label, label},
		"the API's":                              {native, func() *corev1.Pod { return ofAPI(pod("a", "")) }, "", "own"},
		"the API's, in spite of a label":         {both, func() *corev1.Pod { return ofAPI(pod("a", "g")) }, "", "own"},
		"none":                                   {both, func() *corev1.Pod { return pod("a", "") }, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := New(test.options)
			seen := func(p *corev1.Pod) string {
				o, err := e.transformPod(p)
				if err != nil {
					t.Fatal(err)
				}
				if test.options.Virtual {
					e.onPod(o, e.directory.setPod)
				}
				return NameOf(o.(*corev1.Pod))
			}
			for range 2 { // an informer may transform what it has transformed
				if got := seen(gated(test.pod())); got != test.before {
					t.Errorf("behind a gate it is seen in %q, want %q", got, test.before)
				}
			}
			if got := seen(test.pod()); got != test.now {
				t.Errorf("without gates it is seen in %q, want %q", got, test.now)
			}
			if got := seen(bound(gated(test.pod()))); got != test.now {
				t.Errorf("on a node it is seen in %q, want %q", got, test.now)
			}
			for _, g := range e.directory.gangs {
				if g.name.Name != test.now {
					t.Errorf("it is counted in %q", g.name.Name)
				}
			}
		})
	}
}

// TestOfflineGroup holds that a simulated scheduler sees pods in their groups as the
// running one does, and that the group of one behind a gate is known all the same.
func TestOfflineGroup(t *testing.T) {
	t.Parallel()
	for want, of := range map[string]func() *corev1.Pod{
		"x-k8s.io:g": func() *corev1.Pod { return pod("a", "g") },
		"own":        func() *corev1.Pod { return ofAPI(pod("a", "g")) },
		"":           func() *corev1.Pod { return pod("a", "") },
	} {
		o := NewOffline(clocktesting.NewFakeClock(time.Time{}))
		held := gated(of())
		before := NameOf(held)
		seen := o.Pod(held)
		if got, known := NameOf(seen), o.GroupOf(seen); got != "" || known != want {
			t.Errorf("behind a gate it is seen in %q and known to be in %q, want none and %q", got, known, want)
		}
		if got := NameOf(held); got != before {
			t.Errorf("the pod itself is in %q by now, was in %q", got, before)
		}
		seen = o.Pod(of())
		if got, known := NameOf(seen), o.GroupOf(seen); got != want || known != want {
			t.Errorf("without gates it is seen in %q and known to be in %q, want %q", got, known, want)
		}
		o.Pod(gated(of()))
		o.Remove(seen)
		if got := o.GroupOf(pod("a", "")); got != "" {
			t.Errorf("after it was removed it is known to be in %q", got)
		}
	}
}
