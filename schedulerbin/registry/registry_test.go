package registry_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/clock"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/contain"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/registry"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/schedulertest"
)

// mine is a user's own plugin. It panics on the pods that say so.
type mine struct{}

func (mine) Name() string { return "Mine" }

func (mine) Filter(_ context.Context, _ fwk.CycleState, pod *v1.Pod, _ fwk.NodeInfo) *fwk.Status {
	if pod.Labels["panic"] == "filter" {
		panic("mine is broken")
	}
	return nil
}

func (mine) Reserve(_ context.Context, _ fwk.CycleState, pod *v1.Pod, _ string) *fwk.Status {
	if pod.Labels["panic"] == "reserve" {
		panic("mine is broken")
	}
	return nil
}

func (mine) Unreserve(_ context.Context, _ fwk.CycleState, pod *v1.Pod, _ string) {
	if pod.Labels["panic"] == "reserve" {
		panic("mine is broken twice")
	}
}

func newMine(_ context.Context, _ runtime.Object, _ fwk.Handle, guard *contain.Guard) (fwk.Plugin, error) {
	return contain.Wrap[struct {
		contain.Plugin
		contain.FilterPlugin
		contain.ReservePlugin
	}](guard, mine{})
}

func options() contain.Options {
	return contain.Options{Metrics: contain.NewMetrics(), Budgets: contain.DefaultBudgets(), Clock: clock.RealClock{}}
}

// TestPanicFailsOnePod holds, with the whole scheduler and all bundled plugins,
// that a plugin that panics fails its pod with a reason and nothing else.
func TestPanicFailsOnePod(t *testing.T) {
	t.Parallel()
	client := schedulertest.NewClient()
	node := st.MakeNode().Name("node").UID("node").Capacity(map[v1.ResourceName]string{"cpu": "8", "pods": "10"}).Obj()
	node.Annotations = map[string]string{args.NodeGPUMemory: "24Gi"}
	if _, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	lab := schedulertest.Start(t, client, schedulertest.Options{
		Plugins:  append(registry.Bundled(), registry.Plugin{Name: "Mine", New: newMine}),
		Defaults: true,
	})
	pod := func(name string, labels map[string]string) *v1.Pod {
		p := st.MakePod().Name(name).UID(name).Namespace(schedulertest.Namespace).Labels(labels).Obj()
		p.Annotations = map[string]string{args.PodGPUMemory: "20Gi"}
		return p
	}
	for _, point := range []string{"filter", "reserve"} {
		lab.Create(t, pod(point, map[string]string{"panic": point}))
		lab.Pending(t, point, "SchedulerError", `plugin "Mine" panicked at`, "mine is broken")
	}
	// The device that GPUMemory had given to the failed pod is free again.
	lab.Create(t, pod("good", map[string]string{"dataset": "x"}))
	if got := lab.Bound(t, "good"); got.Annotations[args.PodGPUIndex] != "0" {
		t.Errorf("the good pod has the annotations %v", got.Annotations)
	}
	for _, point := range []string{"Filter", "Reserve", "Unreserve"} {
		if got := lab.Panics(t, "Mine", point); got < 1 {
			t.Errorf("%d panics are counted at %s", got, point)
		}
	}
	told := false
	for len(lab.Events.Events) > 0 {
		event := <-lab.Events.Events
		told = told || strings.Contains(event, "Warning PluginPanic") && strings.Contains(event, "mine is broken")
	}
	if !told {
		t.Error("no event tells of the panic")
	}
}

// TestNewRefuses holds that a list that upstream would refuse late, or silently
// misread, is refused at once.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		plugins []registry.Plugin
		want    string
	}{
		{[]registry.Plugin{{Name: "NodeAffinity", New: newMine}}, "one of kube-scheduler's own"},
		{append(registry.Bundled(), registry.Bundled()...), `"CacheLocality" is there twice`},
	} {
		if _, err := registry.New(options(), test.plugins...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want an error with %q", err, test.want)
		}
	}
}

// TestFactoriesAreHeld holds that a factory's mistake is an error that names the
// plugin, for the scheduler to refuse the configuration.
func TestFactoriesAreHeld(t *testing.T) {
	t.Parallel()
	factory := func(plugin fwk.Plugin, err error) registry.Factory {
		return func(context.Context, runtime.Object, fwk.Handle, *contain.Guard) (fwk.Plugin, error) {
			return plugin, err
		}
	}
	for name, test := range map[string]struct {
		new  registry.Factory
		want string
	}{
		"an error":     {factory(nil, errors.New("no luck")), "no luck"},
		"a panic":      {func(context.Context, runtime.Object, fwk.Handle, *contain.Guard) (fwk.Plugin, error) { panic("boom") }, "panicked at New: boom"},
		"uncontained":  {factory(mine{}, nil), "is not contained"},
		"another name": {newMine, `says that its name is "Mine"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := registry.New(options(), registry.Plugin{Name: "Other", New: test.new})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r["Other"](t.Context(), nil, nil); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

// TestBundledRefuseWrongArguments holds that no bundled plugin starts with a typo
// in its arguments, and that the error names the field.
func TestBundledRefuseWrongArguments(t *testing.T) {
	t.Parallel()
	r, err := registry.New(options(), registry.Bundled()...)
	if err != nil {
		t.Fatal(err)
	}
	for name, factory := range r {
		_, err := factory(t.Context(), &runtime.Unknown{Raw: []byte(`{"typpo": 1}`)}, nil)
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "typpo: there is no such field") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
