package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
)

// choice is a Decider that says what the test says.
type choice struct {
	node, room, victim string
	best               []string
	hashes             []string
	order              []string
}

func (c *choice) See(hash string) { c.hashes = append(c.hashes, hash) }

func (*choice) Fail(*corev1.Pod) {}

func (c *choice) Room() string { return c.room }

func (c *choice) Evict(pod *corev1.Pod) bool { return pod.Name == c.victim }

func (c *choice) Came(pod *corev1.Pod) (int, bool) {
	i := slices.Index(c.order, pod.Name)
	return i, i >= 0
}

func (c *choice) Place(_ *corev1.Pod, best []string) string {
	c.best = best
	if c.node == "" {
		return best[0]
	}
	return c.node
}

func name(n string) types.NamespacedName { return types.NamespacedName{Namespace: "default", Name: n} }

// A Decider is told of the best nodes, and may take another one.
func TestDeciderHasTheLastWord(t *testing.T) {
	t.Parallel()
	d := &choice{node: "small"}
	e := start(t, Options{Decider: d}, node("big", "z", "8"), node("small", "z", "2"), pod("p", "1"))
	if err := e.Attempt(t.Context(), name("p")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"big"}, d.best); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"p": "small"}, where(e.Attempts())); diff != "" {
		t.Error(diff)
	}
	if len(d.hashes) != 1 || d.hashes[0] == "" {
		t.Errorf("was told of the hashes %q, want one", d.hashes)
	}
}

// Another pod that waits, and is nominated to a node, keeps its room there while a
// pod is tried: upstream looks up in the queue what it asks for.
func TestNominatedPodsKeepTheirRoom(t *testing.T) {
	t.Parallel()
	e := start(t, Options{Decider: &choice{}}, node("a", "z", "4"),
		pod("first", "3", priority(9), func(p *corev1.Pod) { p.Status.NominatedNodeName = "a" }), pod("second", "2", priority(5)))
	if err := e.Attempt(t.Context(), name("second")); err != nil {
		t.Fatal(err)
	}
	attempts := e.Attempts()
	if len(attempts) != 1 || attempts[0].Node != "" {
		t.Errorf("attempts are %+v, want one that fails: the room is the first pod's", attempts)
	}
}

// Pods on one node that are equal in priority and start are chosen by the Decider,
// and without one by the seed, in whatever order they came to the node.
func TestEqualVictims(t *testing.T) {
	t.Parallel()
	evicted := func(d Decider, first, second string) string {
		e := start(t, Options{Decider: d, Seed: 3}, node("a", "z", "4"), pod(first, "2", on("a"), priority(1)), pod(second, "2", on("a"), priority(1)), pod("high", "2", priority(9)))
		if err := e.Attempt(t.Context(), name("high")); err != nil {
			t.Fatal(err)
		}
		victims := e.Evictions()
		if len(victims) != 1 {
			t.Fatalf("evicted %+v, want one pod", victims)
		}
		return victims[0].Victim.Name
	}
	for _, want := range []string{"x", "y"} {
		if got := evicted(&choice{victim: want}, "x", "y"); got != want {
			t.Errorf("evicted %s, want %s, which the decider says", got, want)
		}
	}
	if one, other := evicted(nil, "x", "y"), evicted(nil, "y", "x"); one != other {
		t.Errorf("evicted %s or %s, depending on who came first", one, other)
	}
}

// Of equal pods that differ in size, how many must go can hang on the order in which
// they came to the node, and so on which node room is made.
func TestOrderOfEqualVictims(t *testing.T) {
	t.Parallel()
	for title, test := range map[string]struct {
		started bool
		order   []string
		want    []string
	}{
		"the large one came last":     {true, []string{"small", "little", "large"}, []string{"large"}},
		"the large one came first":    {true, []string{"large", "little", "small"}, []string{"little", "small"}},
		"first, and none has started": {false, []string{"large", "little", "small"}, []string{"large"}},
		"last, and none has started":  {false, []string{"small", "little", "large"}, []string{"little", "small"}},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			started := func(p *corev1.Pod) {
				if !test.started {
					p.Status.StartTime = nil
				}
			}
			e := start(t, Options{Decider: &choice{order: test.order}}, node("a", "z", "4"),
				pod("large", "2", on("a"), started), pod("small", "1", on("a"), started), pod("little", "1", on("a"), started), pod("high", "2", priority(9)))
			if err := e.Attempt(t.Context(), name("high")); err != nil {
				t.Fatal(err)
			}
			var evicted []string
			for _, v := range e.Evictions() {
				evicted = append(evicted, v.Victim.Name)
			}
			slices.Sort(evicted)
			if diff := cmp.Diff(test.want, evicted); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// So it is where room is made for a gang, on all nodes at once: who was found first stays
// if there is room, also across nodes.
func TestOrderOfEqualVictimsOfAGang(t *testing.T) {
	t.Parallel()
	for title, test := range map[string]struct{ order, want []string }{
		"the large one first":                       {[]string{"large", "little", "small", "far"}, []string{"little", "small"}},
		"the large one last":                        {[]string{"small", "little", "large", "far"}, []string{"large"}},
		"the other node and the large one":          {[]string{"far", "large", "small", "little"}, []string{"little", "small"}},
		"the other node, and the large one at last": {[]string{"far", "little", "small", "large"}, []string{"large"}},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			e := start(t, Options{Profiles: ganged(t), Decider: &choice{order: test.order}}, node("a", "z", "4"), node("b", "z", "1"),
				pod("small", "1", on("a")), pod("little", "1", on("a")), pod("large", "2", on("a")), pod("far", "1", on("b")), podGroup("x", 2))
			for _, name := range []string{"x0", "x1"} {
				put(t, e, pod(name, "1", inGroup("x"), priority(9), func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "a"} }))
			}
			settle(t, e)
			var evicted []string
			for _, v := range e.Evictions() {
				evicted = append(evicted, v.Victim.Name)
			}
			slices.Sort(evicted)
			if diff := cmp.Diff(test.want, evicted); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A pod that has not started counts as the latest, as upstream has it, so that its
// node is the one to make room on.
func TestVictimsThatHaveNotStarted(t *testing.T) {
	t.Parallel()
	fresh := func(p *corev1.Pod) {
		on("b")(p)
		p.Status.StartTime = nil
	}
	late := func(p *corev1.Pod) {
		on("a")(p)
		s := metav1.NewTime(time.Date(1999, 12, 31, 23, 59, 59, 0, time.UTC))
		p.Status.StartTime = &s
	}
	e := start(t, Options{}, node("a", "z", "4"), node("b", "z", "4"), pod("old", "3", late, priority(1)), pod("new", "3", fresh, priority(1)), pod("high", "3", priority(9)))
	if err := e.Attempt(t.Context(), name("high")); err != nil {
		t.Fatal(err)
	}
	if victims := e.Evictions(); len(victims) != 1 || victims[0].Victim.Name != "new" {
		t.Errorf("evicted %+v, want the pod that has not started", victims)
	}
}

// Gang comes before preemption after a gang has failed, as in the scheduler.
func TestGangComesFirst(t *testing.T) {
	t.Parallel()
	p := adapted(ganged(t)[0])
	if diff := cmp.Diff([]config.Plugin{{Name: "Gang"}}, p.Plugins.PodGroupPostFilter.Enabled); diff != "" {
		t.Error(diff)
	}
}
