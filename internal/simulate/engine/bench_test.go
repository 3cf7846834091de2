package engine

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kindsOfLoad are what the pods of a load ask for.
var kindsOfLoad = map[string]func(*corev1.Pod){
	"local": func(*corev1.Pod) {},
	"zone": func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 5, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selectorOf(p),
		}}
	},
	"soft": func(p *corev1.Pod) {
		for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelHostname} {
			p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
				MaxSkew: 3, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: selectorOf(p),
			})
		}
	},
	"apart": func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: selectorOf(p), TopologyKey: corev1.LabelHostname,
		}}}}
	},
	"near": func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
			Weight: 50, PodAffinityTerm: corev1.PodAffinityTerm{LabelSelector: selectorOf(p), TopologyKey: corev1.LabelTopologyZone},
		}}}}
	},
}

func selectorOf(p *corev1.Pod) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": p.Labels["app"]}}
}

// load puts nodes with bound pods, and pods that wait, of 50 workloads in turn.
func load(t testing.TB, e *Engine, nodes, bound, waiting int, edit func(*corev1.Pod)) {
	for i := range nodes {
		put(t, e, node(fmt.Sprintf("n%05d", i), fmt.Sprintf("z%d", i%3), "32"))
	}
	build := func(prefix string, i int) *corev1.Pod {
		return pod(fmt.Sprintf("%s%05d", prefix, i), "500m", func(p *corev1.Pod) {
			p.Labels["app"] = fmt.Sprintf("app-%d", i%50)
			edit(p)
		})
	}
	for i := range bound {
		p := build("bound", i)
		on(fmt.Sprintf("n%05d", i*7919%nodes))(p)
		put(t, e, p)
	}
	for i := range waiting {
		put(t, e, build("new", i))
	}
}

func BenchmarkSettle(b *testing.B) {
	for name, edit := range kindsOfLoad {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				e := start(b, Options{})
				load(b, e, 5000, 20000, 2000, edit)
				b.StartTimer()
				settle(b, e)
			}
		})
	}
}
