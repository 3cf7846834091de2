package preview

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate/engine"
)

// Lost is a preference of a pod that does not decide where the pod goes.
type Lost struct {
	// Plugin is the one that carries the preference out, in the profile, with the
	// weight.
	Plugin, Profile string
	Weight          int64
	// Chosen is where the pod goes all the same, and Preferred the best of the nodes
	// that the preference likes most, with what each got from the plugin.
	Chosen, Preferred             string
	ChosenPoints, PreferredPoints int64
	// By is the plugin that outweighs it, by how many points between the two nodes.
	By      string
	Outdone int64
	// Needs is the least weight with which it decides; 0 where that was tried, and the
	// pod went elsewhere.
	Needs int64
	// Would is where the pod goes with that weight.
	Would   string
	Origins []compiler.Origin
}

// prefers are the plugins that carry out preferences, and whether a pod has one.
var prefers = []struct {
	plugin string
	has    func(*corev1.Pod) bool
}{
	{"NodeAffinity", func(p *corev1.Pod) bool {
		a := p.Spec.Affinity
		return a != nil && a.NodeAffinity != nil && len(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0
	}},
	{"InterPodAffinity", func(p *corev1.Pod) bool {
		a := p.Spec.Affinity
		return a != nil && (a.PodAffinity != nil && len(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0 ||
			a.PodAntiAffinity != nil && len(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0)
	}},
	{"PodTopologySpread", func(p *corev1.Pod) bool {
		return slices.ContainsFunc(p.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool { return c.WhenUnsatisfiable == corev1.ScheduleAnyway })
	}},
}

// lost returns the preferences of the pod that do not decide, each with the weight
// that was tried.
func (x *explainer) lost(ctx context.Context, e *Explanation, pod *corev1.Pod, t engine.Trial) ([]Lost, error) {
	var all []Lost
	for _, p := range prefers {
		if !p.has(pod) {
			continue
		}
		l, ok := outweighed(t, p.plugin)
		if !ok {
			continue
		}
		l.Profile, l.Origins = pod.Spec.SchedulerName, Origins(x.request.Plan, e.Workload, p.plugin)
		if err := x.tryWeight(ctx, pod, &l); err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// tryWeight has the pod placed with the weight that the preference needs.
func (x *explainer) tryWeight(ctx context.Context, pod *corev1.Pod, l *Lost) error {
	world, _, err := newWorld(ctx, x.request, func(p engine.Profile) engine.Profile {
		if p.SchedulerName != l.Profile {
			return p
		}
		return engine.Weighted(p, l.Plugin, l.Needs)
	})
	if err != nil {
		return err
	}
	defer world.Close()
	t, err := world.Try(ctx, pod)
	if err != nil {
		return err
	}
	l.Would = t.Node
	if _, still := outweighed(t, l.Plugin); still {
		l.Needs = 0
	}
	return nil
}

// outweighed compares the node that was chosen with those that the plugin likes most,
// and reports whether it is none of them.
func outweighed(t engine.Trial, plugin string) (Lost, bool) {
	most := int64(-1)
	var chosen engine.NodeScores
	for _, n := range t.Scored {
		most = max(most, pointsOf(n, plugin))
		if n.Node == t.Node {
			chosen = n
		}
	}
	has := pointsOf(chosen, plugin)
	if has < 0 || has == most {
		return Lost{}, false
	}
	l := Lost{Plugin: plugin, Chosen: chosen.Node, ChosenPoints: has, PreferredPoints: most}
	best := engine.NodeScores{Total: -1}
	for _, n := range t.Scored {
		if pointsOf(n, plugin) != most {
			continue
		}
		if n.Total > best.Total || n.Total == best.Total && n.Node < best.Node {
			best = n
		}
	}
	l.Preferred = best.Node
	for _, s := range chosen.Scores {
		if s.Plugin == plugin {
			l.Weight = s.Weight
			continue
		}
		if by := s.Points - max(0, pointsOf(best, s.Plugin)); by > l.Outdone {
			l.By, l.Outdone = s.Plugin, by
		}
	}
	l.Needs = least(t, best, plugin, l.Weight, most)
	return l, true
}

// least is the smallest weight of the plugin with which the node is before all that
// the plugin likes less: the points of the others stay, its own grow with it.
func least(t engine.Trial, node engine.NodeScores, plugin string, weight, most int64) int64 {
	needs := weight
	for _, n := range t.Scored {
		has := pointsOf(n, plugin)
		if has == most || weight == 0 {
			continue
		}
		// What the weight must more than make up for.
		behind := (n.Total - has) - (node.Total - most)
		if gain := (most - has) / weight; gain > 0 && needs*gain <= behind {
			needs = behind/gain + 1
		}
	}
	return needs
}

// pointsOf is what the plugin gave the node, -1 if it had no say.
func pointsOf(n engine.NodeScores, plugin string) int64 {
	i := slices.IndexFunc(n.Scores, func(s engine.Score) bool { return s.Plugin == plugin })
	if i < 0 {
		return -1
	}
	return n.Scores[i].Points
}
