package engine

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	fwk "k8s.io/kube-scheduler/framework"
	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
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
	// byNode is the plugin as it is with upstream's gate for terms about the hostname,
	// which it then asks of each node's own pods instead of counting them before; nil
	// where there is none. It comes to the same if no two nodes share a hostname.
	byNode plugin
	// filters and scores say at which points the profile enables the plugin, and
	// filterOrder at which place among its Filter plugins.
	filters, scores bool
	filterOrder     int
	weight          int64
	// constraints are those that hold for pods that have none of their own; lenient
	// says that nodes without their keys count, too.
	constraints []corev1.TopologySpreadConstraint
	lenient     bool
}

// plugin is what such plugins have in common.
type plugin interface {
	fwk.PreFilterPlugin
	fwk.FilterPlugin
	fwk.PreScorePlugin
	fwk.ScorePlugin
}

// systemConstraints are those of pods without any where the arguments leave it to the
// scheduler. Of upstream's, which are not exported, only the keys and that they are
// soft matter here (plugin.go of podtopologyspread).
var systemConstraints = []corev1.TopologySpreadConstraint{
	{TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway},
	{TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway},
}

// newAcross returns an instance of the plugin called name, with the arguments of the
// profile.
func newAcross(ctx context.Context, name string, p config.KubeSchedulerProfile, handle *thinHandle) (*acrossPlugin, error) {
	var args runtime.Object
	for _, c := range p.PluginConfig {
		if c.Name == name {
			args = c.Args
		}
	}
	gates := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	factory := podtopologyspread.New
	if name == names.InterPodAffinity {
		factory = interpodaffinity.New
	}
	instance := func() (plugin, error) {
		made, err := factory(ctx, args, handle, gates)
		if err != nil {
			return nil, err
		}
		across, ok := made.(plugin)
		if !ok {
			return nil, fmt.Errorf("plugin %s has not the extension points that the simulation counts on", name)
		}
		return across, nil
	}
	a := &acrossPlugin{name: name}
	var err error
	if a.plugin, err = instance(); err != nil {
		return nil, err
	}
	if name == names.InterPodAffinity {
		gates.EnableInterPodAffinityHostnameFastPath = true
		if a.byNode, err = instance(); err != nil {
			return nil, err
		}
	}
	if spread, ok := args.(*config.PodTopologySpreadArgs); ok {
		a.constraints = spread.DefaultConstraints
		if a.lenient = spread.DefaultingType == config.SystemDefaulting; a.lenient {
			a.constraints = systemConstraints
		}
	}
	return a, nil
}

// filterOf is the instance that says which nodes of the layout are fit.
func (a *acrossPlugin) filterOf(l *layout) plugin {
	if a.byNode != nil && l.ownHostnames {
		return a.byNode
	}
	return a.plugin
}

// preFilter reports whether the plugin has a say of where the pod fits.
func (a *acrossPlugin) preFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, cl *class) (bool, error) {
	if !a.filters {
		return false, nil
	}
	nodes := cl.thin.counting.nodes
	if !cl.alike || a.ownDomains(pod, cl.layout) {
		nodes = cl.thin.nodes
	}
	_, status := a.filterOf(cl.layout).PreFilter(ctx, state, pod, nodes)
	if !status.IsSuccess() && !status.IsSkip() {
		return false, fmt.Errorf("running PreFilter plugin %q: %w", a.name, status.AsError())
	}
	return status.IsSuccess(), nil
}

// anyKey reports whether the topology key of a constraint of the kind, which holds for
// the pod, is such a one.
func (a *acrossPlugin) anyKey(pod *corev1.Pod, kind corev1.UnsatisfiableConstraintAction, is func(key string) bool) bool {
	constraints := pod.Spec.TopologySpreadConstraints
	if len(constraints) == 0 {
		constraints = a.constraints
	}
	return slices.ContainsFunc(constraints, func(c corev1.TopologySpreadConstraint) bool {
		return c.WhenUnsatisfiable == kind && is(c.TopologyKey)
	})
}

// ownDomains reports whether the plugin may count by domains that are a node's own,
// so that it must be told of each node: one without pods, too, can be the domain with
// the fewest.
func (a *acrossPlugin) ownDomains(pod *corev1.Pod, l *layout) bool {
	return a.anyKey(pod, corev1.DoNotSchedule, func(key string) bool { return l.unique[key] })
}

// scoresByGroup reports whether PreScore comes to the same where each node that is fit
// is given as the one that stands for its group: still as many, but they stay in the
// processor's cache. It takes the domains of soft constraints from them, of those by
// hostname only how many there are, and the names of nodes without one of the keys.
func (a *acrossPlugin) scoresByGroup(pod *corev1.Pod, l *layout) bool {
	missingCounts := a.lenient && len(pod.Spec.TopologySpreadConstraints) == 0
	return !a.anyKey(pod, corev1.ScheduleAnyway, func(key string) bool {
		return l.unique[key] && key != corev1.LabelHostname || !missingCounts && !l.onAll[key]
	})
}

// filter adds to the statuses of the class what the plugin says of the nodes. A node
// that a plugin before it has rejected already is not asked about.
func (a *acrossPlugin) filter(ctx context.Context, c *chooser, state fwk.CycleState, pod *corev1.Pod, cl *class) {
	asked, as := c.scratch.apart(len(cl.nodes), cl, func(i int) (int, bool) {
		before := cl.statuses[i]
		return i, before.IsSuccess() || cl.profile.filterOrder[before.Plugin()] >= a.filterOrder
	})
	filter := a.filterOf(cl.layout)
	c.each(len(asked), func(n int) {
		status := filter.Filter(ctx, state, pod, cl.thin.nodes[asked[n]])
		if !status.IsSuccess() {
			status.SetPlugin(a.name)
		}
		c.scratch.answers[n] = status
	})
	for i, n := range as {
		if n >= 0 && !c.scratch.answers[n].IsSuccess() {
			cl.statuses[i] = c.scratch.answers[n]
		}
	}
}

// score returns the weighted points of the nodes that are fit for the class, by the
// order of cl.fit; nil where the plugin skips the pod.
func (a *acrossPlugin) score(ctx context.Context, c *chooser, state fwk.CycleState, pod *corev1.Pod, cl *class) ([]int64, error) {
	if !a.scores {
		return nil, nil
	}
	nodes := cl.thinNodes()
	counted := nodes
	if a.scoresByGroup(pod, cl.layout) {
		counted = cl.standIns()
	}
	status := a.PreScore(ctx, state, pod, counted)
	switch {
	case status.IsSkip():
		return nil, nil
	case !status.IsSuccess():
		return nil, fmt.Errorf("running PreScore plugin %q: %w", a.name, status.AsError())
	}
	asked, as := c.scratch.apart(len(nodes), cl, func(n int) (int, bool) { return cl.fit.at[n], true })
	raw := resized(&c.scratch.raw, len(asked))
	c.each(len(asked), func(k int) {
		raw[k], c.scratch.answers[k] = a.Score(ctx, state, pod, nodes[asked[k]])
	})
	for _, status := range c.scratch.answers[:len(asked)] {
		if !status.IsSuccess() {
			return nil, fmt.Errorf("running Score plugin %q: %w", a.name, status.AsError())
		}
	}
	scores := resized(&c.scratch.list, len(nodes))
	for n, k := range as {
		scores[n] = fwk.NodeScore{Name: cl.names[cl.fit.at[n]], Score: raw[k]}
	}
	points := c.scratch.pointsOf(a.name, len(nodes))
	return points, normalized(ctx, a.plugin, a.name, a.weight, state, pod, scores, points)
}

// normalized writes the points of the plugin for the raw scores, weighted.
func normalized(ctx context.Context, p fwk.ScorePlugin, name string, weight int64, state fwk.CycleState, pod *corev1.Pod, scores fwk.NodeScoreList, points []int64) error {
	if e := p.ScoreExtensions(); e != nil {
		if status := e.NormalizeScore(ctx, state, pod, scores); !status.IsSuccess() {
			return fmt.Errorf("running NormalizeScore of plugin %q: %w", name, status.AsError())
		}
	}
	for i, s := range scores {
		if s.Score < fwk.MinScore || s.Score > fwk.MaxScore {
			return fmt.Errorf("plugin %q gives node %s the score %d, which is not from %d to %d", name, s.Name, s.Score, fwk.MinScore, fwk.MaxScore)
		}
		points[i] = s.Score * weight
	}
	return nil
}
