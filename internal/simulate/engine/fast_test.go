package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/internal/simulate/store"
)

func drawCluster(t *rapid.T) func() []store.Object {
	draw := rapid.IntRange
	nodes := draw(2, 24).Draw(t, "nodes")
	var makeNodes []func() *corev1.Node
	for i := range nodes {
		zone, cpu := draw(0, 3).Draw(t, "zone"), draw(1, 6).Draw(t, "cpu")
		tainted, disk := draw(0, 9).Draw(t, "tainted"), draw(0, 1).Draw(t, "disk")
		host := draw(0, 59).Draw(t, "hostname")
		makeNodes = append(makeNodes, func() *corev1.Node {
			n := node(fmt.Sprintf("n%02d", i), fmt.Sprintf("z%d", zone), fmt.Sprint(cpu))
			n.Labels["disk"] = []string{"ssd", "hdd"}[disk]
			switch host {
			case 0: // as another node
				n.Labels[corev1.LabelHostname] = "n00"
			case 1:
				delete(n.Labels, corev1.LabelHostname)
			}
			switch tainted {
			case 0:
				n.Spec.Taints = []corev1.Taint{{Key: "pool", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
			case 1:
				n.Spec.Taints = []corev1.Taint{{Key: "pool", Value: "x", Effect: corev1.TaintEffectPreferNoSchedule}}
			case 2:
				delete(n.Labels, corev1.LabelTopologyZone)
			case 3:
				n.Spec.Unschedulable = true
			}
			return n
		})
	}
	var templates []func(*corev1.Pod)
	for k := range draw(1, 5).Draw(t, "templates") {
		templates = append(templates, drawTemplate(t, k))
	}
	type drawn struct{ template, node, prio, leaves int }
	var pods []drawn
	for range draw(1, 40).Draw(t, "pods") {
		pods = append(pods, drawn{draw(0, len(templates)-1).Draw(t, "template"), draw(-3, nodes-1).Draw(t, "on"), draw(0, 12).Draw(t, "priority"), draw(0, 9).Draw(t, "leaves")})
	}
	return func() []store.Object {
		var objects []store.Object
		for _, make := range makeNodes {
			objects = append(objects, make())
		}
		for _, name := range []string{"default", "other"} {
			objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}}})
		}
		objects = append(objects, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "app-0"}}})
		for i, d := range pods {
			p := pod(fmt.Sprintf("p%02d", i), "300m", templates[d.template])
			if d.prio == 0 {
				priority(7)(p)
			}
			if d.node >= 0 && i%2 == 0 {
				on(fmt.Sprintf("n%02d", d.node))(p)
				if d.leaves == 0 {
					p.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)}
				}
			}
			objects = append(objects, p)
		}
		return objects
	}
}

// drawDefaults draws which spread holds for pods that have none of their own.
func drawDefaults(t *rapid.T, profiles []config.KubeSchedulerProfile) []config.KubeSchedulerProfile {
	key := rapid.SampledFrom([]string{"", "", corev1.LabelTopologyZone, corev1.LabelHostname}).Draw(t, "default spread")
	if key == "" {
		return profiles
	}
	for _, c := range profiles[0].PluginConfig {
		if args, ok := c.Args.(*config.PodTopologySpreadArgs); ok {
			args.DefaultingType = config.ListDefaulting
			args.DefaultConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule}}
		}
	}
	return profiles
}

// drawTemplate draws what the pods of one workload ask for.
func drawTemplate(t *rapid.T, k int) func(*corev1.Pod) {
	draw := rapid.IntRange
	cpu, feature, second := draw(1, 12).Draw(t, "tenths"), draw(0, 18).Draw(t, "feature"), draw(0, 18).Draw(t, "second feature")
	about := draw(0, 2).Draw(t, "about app")
	return func(p *corev1.Pod) {
		p.Labels = map[string]string{"app": fmt.Sprintf("app-%d", k)}
		if k == 3 {
			p.Namespace = "other"
		}
		p.Spec.Containers[0].Resources.Requests["cpu"] = *resource.NewMilliQuantity(int64(cpu)*100, resource.DecimalSI)
		for _, f := range []int{feature, second} {
			give(p, f, fmt.Sprintf("app-%d", about))
		}
	}
}

// give gives the pod one feature; app is the app that its terms are about.
func give(p *corev1.Pod, feature int, app string) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	own := &metav1.LabelSelector{MatchLabels: map[string]string{"app": p.Labels["app"]}}
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	a := p.Spec.Affinity
	spread := func(key string, when corev1.UnsatisfiableConstraintAction) {
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: when, LabelSelector: own, NodeTaintsPolicy: ptr.To(corev1.NodeInclusionPolicyHonor),
		})
	}
	term := corev1.PodAffinityTerm{LabelSelector: selector, TopologyKey: corev1.LabelTopologyZone, NamespaceSelector: &metav1.LabelSelector{}}
	byHost := term
	byHost.TopologyKey = corev1.LabelHostname
	switch feature {
	case 0:
		spread(corev1.LabelTopologyZone, corev1.DoNotSchedule)
	case 1:
		spread(corev1.LabelTopologyZone, corev1.ScheduleAnyway)
	case 2:
		spread(corev1.LabelHostname, corev1.DoNotSchedule)
	case 3:
		a.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: own, TopologyKey: corev1.LabelHostname}}}
	case 4:
		a.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}
	case 5:
		a.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}
	case 6:
		a.PodAffinity = &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 30, PodAffinityTerm: term}}}
	case 7:
		a.PodAntiAffinity = &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 60, PodAffinityTerm: term}}}
	case 8:
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: "pool", Operator: corev1.TolerationOpExists})
	case 9:
		if a.NodeAffinity == nil {
			a.NodeAffinity = &corev1.NodeAffinity{}
		}
		a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.PreferredSchedulingTerm{{
			Weight: 10, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpIn, Values: []string{"ssd"}}}},
		}}
	case 10:
		p.Spec.NodeSelector = map[string]string{"disk": "hdd"}
	case 12:
		name := corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"n00", "n02"}}
		if a.NodeAffinity == nil {
			a.NodeAffinity = &corev1.NodeAffinity{}
		}
		a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{name}}}}
	case 13:
		spread(corev1.LabelHostname, corev1.ScheduleAnyway)
	case 14:
		spread(corev1.LabelTopologyZone, corev1.DoNotSchedule)
		p.Spec.TopologySpreadConstraints[len(p.Spec.TopologySpreadConstraints)-1].MinDomains = ptr.To[int32](3)
	case 15:
		a.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{byHost}}
	case 16:
		a.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{byHost, {LabelSelector: own, TopologyKey: corev1.LabelTopologyZone}}}
	case 17:
		a.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{byHost}}
	case 18:
		a.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{byHost, term}}
	case 11:
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
	}
}

// What is remembered of equal pods gives the same attempts, scores and messages as
// looking at every node for every pod.
func TestFastIsExhaustive(t *testing.T) {
	t.Parallel()
	fastPods, cases := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		cases++
		objects, profiles := drawCluster(r), drawDefaults(r, stock(t))
		run := func(exhaustive bool) ([]Attempt, []string) {
			e := start(t, Options{Profiles: profiles, Seed: 3, Exhaustive: exhaustive}, objects()...)
			defer e.Close()
			settle(t, e)
			var evicted []string
			for _, v := range e.Evictions() {
				evicted = append(evicted, v.Victim.Name)
			}
			if !exhaustive {
				fastPods += e.chooser.remembered
			}
			return e.Attempts(), evicted
		}
		want, wantEvicted := run(true)
		got, gotEvicted := run(false)
		if diff := cmp.Diff(wantEvicted, gotEvicted); diff != "" {
			r.Fatalf("other pods are evicted: %s", diff)
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Attempt{}, "Pod"), cmpopts.EquateEmpty()); diff != "" {
			r.Fatal(diff)
		}
	})
	if fastPods < cases {
		t.Errorf("only %d pods were placed from memory in %d cases", fastPods, cases)
	}
}

// A domain is one as soon as a pod may go to one of its nodes, whichever that is.
func TestFastWithNodesPickedByName(t *testing.T) {
	t.Parallel()
	run := func(exhaustive bool) []Attempt {
		e := start(t, Options{Exhaustive: exhaustive}, node("n00", "z0", "9"), node("n01", "z0", "9"), node("n02", "z1", "9"), node("n03", "z1", "9"))
		for i := range 6 {
			put(t, e, pod(fmt.Sprintf("p%d", i), "1", func(p *corev1.Pod) {
				p.Labels["app"] = "web"
				give(p, 0, "")  // a hard spread over zones
				give(p, 12, "") // not n00, and not n02
			}))
		}
		settle(t, e)
		return e.Attempts()
	}
	got, want := run(false), run(true)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Attempt{}, "Pod"), cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	// The second pod cannot follow the first: its zone would be two ahead.
	if got[1].Feasible != 1 {
		t.Errorf("the second pod fits %d nodes, want 1", got[1].Feasible)
	}
}
