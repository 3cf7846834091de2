package engine

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	fwk "k8s.io/kube-scheduler/framework"
	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread"
)

// acrossPlugin is an instance of a plugin that looks across nodes, over the thin
// nodes of the class whose turn it is.
type acrossPlugin struct {
	name string
	plugin
	// filters and scores say at which points the profile enables the plugin, and
	// filterOrder at which place among its Filter plugins.
	filters, scores bool
	filterOrder     int
	weight          int64
}

// plugin is what such plugins have in common.
type plugin interface {
	fwk.PreFilterPlugin
	fwk.FilterPlugin
	fwk.PreScorePlugin
	fwk.ScorePlugin
}

// newAcross returns the instance of the plugin called name, with the arguments of
// the profile.
func newAcross(ctx context.Context, name string, p config.KubeSchedulerProfile, handle *thinHandle) (plugin, error) {
	var args config.PluginConfig
	for _, c := range p.PluginConfig {
		if c.Name == name {
			args = c
		}
	}
	gates := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	factory := podtopologyspread.New
	if name == names.InterPodAffinity {
		factory = interpodaffinity.New
	}
	made, err := factory(ctx, args.Args, handle, gates)
	if err != nil {
		return nil, err
	}
	p2, ok := made.(plugin)
	if !ok {
		return nil, fmt.Errorf("plugin %s has not the extension points that the simulation counts on", name)
	}
	return p2, nil
}

// filter adds to the statuses of nodes what the plugin says of them. A node that a
// plugin before it has rejected already is not asked about.
func (a *acrossPlugin) filter(ctx context.Context, c *chooser, pod *corev1.Pod, thin *thin, order map[string]int, statuses []*fwk.Status) (fwk.CycleState, error) {
	state := framework.NewCycleState()
	if !a.filters {
		return state, nil
	}
	_, status := a.PreFilter(ctx, state, pod, thin.nodes)
	switch {
	case status.IsSkip():
		return state, nil
	case !status.IsSuccess():
		return state, fmt.Errorf("running PreFilter plugin %q: %w", a.name, status.AsError())
	}
	c.each(len(statuses), func(i int) {
		if before := statuses[i]; before != nil && order[before.Plugin()] < a.filterOrder {
			return
		}
		if status := a.Filter(ctx, state, pod, thin.nodes[i]); !status.IsSuccess() {
			status.SetPlugin(a.name)
			statuses[i] = status
		}
	})
	return state, nil
}

// score returns the weighted points of the feasible nodes, by their place in the
// list; nil where the plugin skips the pod.
func (a *acrossPlugin) score(ctx context.Context, c *chooser, state fwk.CycleState, pod *corev1.Pod, thin *thin, at []int) ([]int64, error) {
	if !a.scores {
		return nil, nil
	}
	nodes := make([]fwk.NodeInfo, len(at))
	for n, i := range at {
		nodes[n] = thin.nodes[i]
	}
	status := a.PreScore(ctx, state, pod, nodes)
	switch {
	case status.IsSkip():
		return nil, nil
	case !status.IsSuccess():
		return nil, fmt.Errorf("running PreScore plugin %q: %w", a.name, status.AsError())
	}
	scores := make(fwk.NodeScoreList, len(at))
	failed := make([]*fwk.Status, len(at))
	c.each(len(at), func(n int) {
		scores[n].Name = nodes[n].Node().Name
		scores[n].Score, failed[n] = a.Score(ctx, state, pod, nodes[n])
	})
	for _, status := range failed {
		if !status.IsSuccess() {
			return nil, fmt.Errorf("running Score plugin %q: %w", a.name, status.AsError())
		}
	}
	return normalized(ctx, a.ScorePlugin(), a.name, a.weight, state, pod, scores)
}

// ScorePlugin returns the plugin as one that scores.
func (a *acrossPlugin) ScorePlugin() fwk.ScorePlugin { return a.plugin }

// normalized returns the points of the plugin for the raw scores, weighted.
func normalized(ctx context.Context, p fwk.ScorePlugin, name string, weight int64, state fwk.CycleState, pod *corev1.Pod, scores fwk.NodeScoreList) ([]int64, error) {
	if e := p.ScoreExtensions(); e != nil {
		if status := e.NormalizeScore(ctx, state, pod, scores); !status.IsSuccess() {
			return nil, fmt.Errorf("running NormalizeScore of plugin %q: %w", name, status.AsError())
		}
	}
	points := make([]int64, len(scores))
	for i, s := range scores {
		if s.Score < fwk.MinScore || s.Score > fwk.MaxScore {
			return nil, fmt.Errorf("plugin %q gives node %s the score %d, which is not from %d to %d", name, s.Name, s.Score, fwk.MinScore, fwk.MaxScore)
		}
		points[i] = s.Score * weight
	}
	return points, nil
}
