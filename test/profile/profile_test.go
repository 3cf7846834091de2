// Package profile_test holds the profiles that the compiler emits, and what it
// knows of kube-scheduler's plugins, to the real scheduler framework.
package profile_test

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"

	"github.com/kubectl-sched/kubectl-sched/compiler/profile"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/contain"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/registry"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/schedulertest"
)

func origin() profile.Origin {
	return profile.Origin{Policy: "p", Range: diag.At(diag.Pos{File: "p.cue", Line: 3, Column: 2})}
}

// configured returns the profiles as the scheduler reads what is emitted of them,
// after a profile of defaults, "test".
func configured(t *testing.T, profiles ...profile.Profile) []config.KubeSchedulerProfile {
	t.Helper()
	text, err := profile.Configuration(profiles)
	if err != nil {
		t.Fatal(err)
	}
	if findings := profile.Check("config.yaml", text); findings.HasErrors() {
		t.Fatalf("what is emitted is not clean:\n%s\n%s", findings.Error(), text)
	}
	decode := func(data []byte) []config.KubeSchedulerProfile {
		object, _, err := scheme.Codecs.UniversalDecoder().Decode(data, nil, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, data)
		}
		return object.(*config.KubeSchedulerConfiguration).Profiles
	}
	plain := decode([]byte("apiVersion: " + profile.APIVersion + "\nkind: " + profile.Kind + "\nprofiles: [{schedulerName: test}]\n"))
	return append(plain, decode(text)...)
}

func start(t *testing.T, objects []runtime.Object, profiles ...profile.Profile) *schedulertest.Lab {
	t.Helper()
	return schedulertest.Start(t, schedulertest.NewClient(objects...), schedulertest.Options{
		Plugins: registry.Bundled(), Configured: configured(t, profiles...),
	})
}

// weights returns what the framework of the profile counts each score.
func weights(f framework.Framework) map[string]int64 {
	out := map[string]int64{}
	for _, p := range f.ListPlugins().Score.Enabled {
		out[p.Name] = int64(p.Weight)
	}
	return out
}

// TestProfilesStart holds that the scheduler takes every kind of profile, with the
// scores and weights that the compiler says it has.
func TestProfilesStart(t *testing.T) {
	t.Parallel()
	plugin := func(name string, said map[string]any) profile.Wish {
		w, err := profile.Plugin(name, said, "r", origin())
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	pack := profile.Pack(nil, 0, "r", origin())
	nodes, spread, pods := profile.MustWin(profile.NodeScore, "r", origin()), profile.MustWin(profile.SpreadScore, "r", origin()), profile.MustWin(profile.PodScore, "r", origin())
	needs := []profile.Need{
		profile.NewNeed(pack),
		profile.NewNeed(profile.Pack(map[string]int{"cpu": 2, "nvidia.com/gpu": 5}, 80, "r", origin())),
		profile.NewNeed(profile.Balance(nil, "r", origin())),
		profile.NewNeed(profile.Balance(map[string]int{"cpu": 1, "memory": 3}, "r", origin())),
		profile.NewNeed(nodes),
		profile.NewNeed(spread, pods),
		profile.NewNeed(pack, nodes, spread, pods),
		profile.NewNeed(plugin("CacheLocality", nil)),
		profile.NewNeed(plugin("GPUMemory", map[string]any{"prefer": "best-fit"}), nodes),
		profile.NewNeed(profile.Fragment(map[string]any{"plugins": map[string]any{
			"score":      map[string]any{"enabled": []any{map[string]any{"name": "ImageLocality", "weight": 7.0}}, "disabled": []any{map[string]any{"name": "TaintToleration"}}},
			"multiPoint": map[string]any{"enabled": []any{map[string]any{"name": "NodeResourcesFit", "weight": 4.0}}},
		}}, "r", origin()), nodes),
	}
	var profiles []profile.Profile
	for _, n := range needs {
		profiles = append(profiles, profile.Of(n))
	}
	l := start(t, nil, profiles...)
	for _, p := range profiles {
		f := l.Framework(p.Name)
		if f == nil {
			t.Errorf("there is no profile %q", p.Name)
			continue
		}
		if diff := cmp.Diff(p.Weights(), weights(f)); diff != "" {
			t.Errorf("weights of %s (-said +real)\n%s", p.Name, diff)
		}
	}
	if diff := cmp.Diff(profile.Of(profile.Need{}).Weights(), weights(l.Framework("test"))); diff != "" {
		t.Errorf("default weights (-said +real)\n%s", diff)
	}
}

// node returns a node with 10 cpus and 10 Gi.
func node(name string, labels map[string]string) *corev1.Node {
	labels["kubernetes.io/hostname"] = name
	resources := corev1.ResourceList{"cpu": resource.MustParse("10"), "memory": resource.MustParse("10Gi"), "pods": resource.MustParse("100")}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Status:     corev1.NodeStatus{Capacity: resources, Allocatable: resources},
	}
}

// pod returns a pod; on a node if one is named.
func pod(name, node string, labels map[string]string, cpu, memory string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: schedulertest.Namespace, Name: name, UID: types.UID("uid-" + name), Labels: labels},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "c", Image: "example.com/huge:1",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}},
		}}},
	}
}

// TestMustWinBeatsEverything holds that a preference that must win does so where
// every other score is as much against it as it can be, and that it does not win
// without the profile, so that the opposition is real.
func TestMustWinBeatsEverything(t *testing.T) {
	t.Parallel()
	want, other := node("want", map[string]string{"disk": "ssd"}), node("other", map[string]string{"disk": "hdd"})
	// TaintToleration.
	want.Spec.Taints = []corev1.Taint{{Key: "avoid", Effect: corev1.TaintEffectPreferNoSchedule}}
	// ImageLocality.
	other.Status.Images = []corev1.ContainerImage{{Names: []string{"example.com/huge:1"}, SizeBytes: 2 << 30}}
	app := map[string]string{"app": "web"}
	objects := []runtime.Object{
		want, other,
		// NodeResourcesFit and NodeResourcesBalancedAllocation: full, and of cpu alone.
		// PodTopologySpread: one of its own kind is there already.
		pod("full", "want", app, "9", "0"),
		// InterPodAffinity: what it likes to be near.
		pod("friend", "other", map[string]string{"app": "friend"}, "0", "0"),
	}
	asking := func(name, scheduler string) *corev1.Pod {
		p := pod(name, "", app, "100m", "1Gi")
		p.Spec.SchedulerName = scheduler
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: "kubernetes.io/hostname", WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: &metav1.LabelSelector{MatchLabels: app},
		}}
		p.Spec.Affinity = &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
				Weight:     100,
				Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpIn, Values: []string{"ssd"}}}},
			}}},
			PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
				Weight:          100,
				PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: "kubernetes.io/hostname", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "friend"}}},
			}}},
		}
		return p
	}
	wins := profile.Of(profile.NewNeed(profile.MustWin(profile.NodeScore, "r", origin())))
	l := start(t, objects, wins)
	// One after the other, so that the second finds the first where it was put.
	for _, c := range [][2]string{{wins.Name, "want"}, {"test", "other"}} {
		scheduler, node := c[0], c[1]
		p := asking("asks-"+scheduler, scheduler)
		l.Create(t, p)
		if got := l.Bound(t, p.Name).Spec.NodeName; got != node {
			t.Errorf("profile %s placed the pod on %q, want %q", scheduler, got, node)
		}
	}
}

// TestPackFillsNodes holds that pods of a profile that packs go where most is in
// use, also where that leaves it out of balance and next to their own kind, and
// those of the default one do not.
func TestPackFillsNodes(t *testing.T) {
	t.Parallel()
	full, empty := node("full", map[string]string{}), node("empty", map[string]string{})
	packs := profile.Of(profile.NewNeed(profile.Pack(nil, 0, "r", origin())))
	upTo := profile.Of(profile.NewNeed(profile.Pack(map[string]int{"cpu": 1}, 15, "r", origin())))
	l := start(t, []runtime.Object{full, empty, pod("first", "full", nil, "5", "1Gi")}, packs, upTo)
	for _, c := range [][2]string{{packs.Name, "full"}, {upTo.Name, "empty"}, {"test", "empty"}} {
		p := pod("asks-"+c[0], "", nil, "1", "100Mi")
		p.Spec.SchedulerName = c[0]
		l.Create(t, p)
		if got := l.Bound(t, p.Name).Spec.NodeName; got != c[1] {
			t.Errorf("profile %s placed the pod on %q, want %q", c[0], got, c[1])
		}
	}
}

// TestBindOrder holds that a plugin that binds comes before DefaultBinder in what is
// emitted, and that what Check calls wrong is wrong.
func TestBindOrder(t *testing.T) {
	t.Parallel()
	bind := func(set map[string]any) profile.Profile {
		return profile.Of(profile.NewNeed(profile.Fragment(map[string]any{"plugins": map[string]any{"bind": set}}, "r", origin())))
	}
	emitted := bind(map[string]any{"enabled": []any{map[string]any{"name": binderName}}})
	profiles := configured(t, emitted)
	for _, naive := range []string{
		`{enabled: [{name: TestBinder}]}`,
		`{enabled: [{name: TestBinder}, {name: DefaultBinder}]}`,
		`{enabled: [{name: DefaultBinder}, {name: TestBinder}], disabled: [{name: DefaultBinder}]}`,
	} {
		text := "apiVersion: " + profile.APIVersion + "\nkind: " + profile.Kind + "\nleaderElection: {resourceName: mine}\nprofiles:\n- schedulerName: naive\n  plugins: {bind: " + naive + "}\n"
		if !slices.ContainsFunc(profile.Check("c.yaml", []byte(text)), func(f diag.Finding) bool { return f.Rule == "scheduler/bind-order" }) {
			t.Errorf("%s is not called wrong", naive)
		}
		object, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(text), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		p := object.(*config.KubeSchedulerConfiguration).Profiles[0]
		p.SchedulerName = fmt.Sprintf("naive-%d", len(profiles))
		profiles = append(profiles, p)
	}
	l := schedulertest.Start(t, schedulertest.NewClient(), schedulertest.Options{
		Plugins: append(registry.Bundled(), registry.Plugin{Name: binderName, New: newBinder}), Configured: profiles,
	})
	for name, f := range l.Scheduler.Profiles {
		var order []string
		for _, p := range f.ListPlugins().Bind.Enabled {
			order = append(order, p.Name)
		}
		want := []string{"DefaultBinder", binderName}
		switch name {
		case emitted.Name:
			want = []string{binderName, "DefaultBinder"}
		case "test":
			want = []string{"DefaultBinder"}
		}
		if diff := cmp.Diff(want, order); diff != "" {
			t.Errorf("profile %s binds in this order (-want +got)\n%s", name, diff)
		}
	}
}

// TestOrder holds that Check calls an order wrong where, and only where, the
// framework runs the plugins that a point lists in another.
func TestOrder(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		plugins string
		listed  []string
	}{
		"behind":       {`{filter: {enabled: [{name: NodeName}, {name: GPUMemory}]}}`, []string{"NodeName", "GPUMemory"}},
		"before":       {`{filter: {enabled: [{name: GPUMemory}, {name: NodeName}]}}`, []string{"GPUMemory", "NodeName"}},
		"disabled":     {`{filter: {enabled: [{name: GPUMemory}, {name: NodeName}], disabled: [{name: NodeName}]}}`, []string{"GPUMemory", "NodeName"}},
		"all-disabled": {`{filter: {enabled: [{name: GPUMemory}, {name: NodeName}], disabled: [{name: "*"}]}}`, []string{"GPUMemory", "NodeName"}},
		"multi":        {`{multiPoint: {enabled: [{name: GPUMemory}]}, filter: {enabled: [{name: GPUMemory}, {name: NodeName}]}}`, []string{"GPUMemory", "NodeName"}},
		"not-multi":    {`{multiPoint: {disabled: [{name: NodeName}]}, filter: {enabled: [{name: GPUMemory}, {name: NodeName}]}}`, []string{"GPUMemory", "NodeName"}},
		"in-between":   {`{filter: {enabled: [{name: NodePorts}, {name: GPUMemory}, {name: CacheLocality}, {name: NodeName}]}}`, []string{"NodePorts", "GPUMemory", "CacheLocality", "NodeName"}},
	}
	var profiles []config.KubeSchedulerProfile
	wrong := map[string]bool{}
	for name, c := range cases {
		text := "apiVersion: " + profile.APIVersion + "\nkind: " + profile.Kind + "\nleaderElection: {resourceName: mine}\nprofiles:\n- schedulerName: " + name + "\n  plugins: " + c.plugins + "\n"
		wrong[name] = slices.ContainsFunc(profile.Check("c.yaml", []byte(text)), func(f diag.Finding) bool { return f.Rule == "scheduler/order" })
		object, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(text), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		profiles = append(profiles, object.(*config.KubeSchedulerConfiguration).Profiles[0])
	}
	l := schedulertest.Start(t, schedulertest.NewClient(), schedulertest.Options{Plugins: registry.Bundled(), Configured: profiles})
	for name, c := range cases {
		var order []string
		for _, p := range l.Framework(name).ListPlugins().Filter.Enabled {
			if slices.Contains(c.listed, p.Name) {
				order = append(order, p.Name)
			}
		}
		if real := !slices.Equal(order, c.listed); real != wrong[name] {
			t.Errorf("%s: the framework runs %v of the listed %v, and the check says wrong: %t", name, order, c.listed, wrong[name])
		}
	}
}

const binderName = "TestBinder"

type binder struct{}

func newBinder(_ context.Context, _ runtime.Object, _ fwk.Handle, guard *contain.Guard) (fwk.Plugin, error) {
	return contain.Wrap[struct {
		contain.Plugin
		contain.BindPlugin
	}](guard, binder{})
}

// Name implements fwk.Plugin.
func (binder) Name() string { return binderName }

// Bind implements fwk.BindPlugin.
func (binder) Bind(context.Context, fwk.CycleState, *corev1.Pod, string) *fwk.Status {
	return fwk.NewStatus(fwk.Skip)
}

// TestPoints holds what is said of plugins, that only the framework knows.
func TestPoints(t *testing.T) {
	t.Parallel()
	profiles := configured(t)
	for _, name := range []string{"DeferredPodScheduling", "GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount", "CacheLocality", "GPUMemory"} {
		profiles[0].Plugins.MultiPoint.Enabled = append(profiles[0].Plugins.MultiPoint.Enabled, config.Plugin{Name: name, Weight: 1})
	}
	l := schedulertest.Start(t, schedulertest.NewClient(), schedulertest.Options{Plugins: registry.Bundled(), Configured: profiles})
	actual := map[string][]string{}
	points := reflect.ValueOf(*l.Framework("test").ListPlugins())
	for i := range points.NumField() {
		set, ok := points.Field(i).Interface().(config.PluginSet)
		point := points.Type().Field(i).Name
		point = strings.ToLower(point[:1]) + point[1:]
		if !ok || point == "multiPoint" {
			continue
		}
		for _, p := range set.Enabled {
			actual[p.Name] = append(actual[p.Name], point)
		}
	}
	for _, points := range actual {
		slices.Sort(points)
	}
	said := map[string][]string{}
	for _, name := range profile.KnownPlugins() {
		// Gang needs an engine; what it implements, its own assertions say.
		if name != "Gang" {
			said[name] = slices.Sorted(slices.Values(profile.Points(name)))
		}
	}
	if diff := cmp.Diff(actual, said); diff != "" {
		t.Errorf("extension points (-real +said)\n%s", diff)
	}
	if missing := slices.DeleteFunc(slices.Sorted(maps.Keys(plugins.NewInTreeRegistry())), func(name string) bool { return said[name] != nil }); len(missing) > 0 {
		t.Errorf("nothing is known of %v", missing)
	}
}
