package engine

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/parallelize"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// fastProfile is what classes need of a profile.
type fastProfile struct {
	twin   framework.Framework
	handle *thinHandle
	across []*acrossPlugin
	// filterOrder is the place of each Filter plugin of the profile.
	filterOrder map[string]int
	// scoreOrder are the Score plugins of the profile, localScores those of the twin.
	scoreOrder, localScores []string
	scorers                 map[string]*scorer
	// mustSkipFilter and mustSkipScore are the plugins of which nothing is known.
	mustSkipFilter, mustSkipScore []string
}

// scorer is a node-local Score plugin.
type scorer struct {
	name       string
	plugin     fwk.ScorePlugin
	normalizes bool
	weight     int64
}

// newFastProfile prepares the profile, whose framework is f and whose twin is t.
func newFastProfile(ctx context.Context, p config.KubeSchedulerProfile, f, t framework.Framework, registry frameworkruntime.Registry, workers int) (*fastProfile, error) {
	listed := f.ListPlugins()
	fast := &fastProfile{
		twin: t, handle: &thinHandle{Framework: f, parallelizer: parallelize.NewParallelizer(workers)}, filterOrder: map[string]int{}, scorers: map[string]*scorer{},
		mustSkipFilter: undeclared(listed.Filter.Enabled), mustSkipScore: undeclared(listed.Score.Enabled),
	}
	fast.mustSkipScore = slices.DeleteFunc(fast.mustSkipScore, func(name string) bool {
		return slices.Contains(idleWhereSkipped, name) && slices.Contains(fast.mustSkipFilter, name)
	})
	for i, e := range listed.Filter.Enabled {
		fast.filterOrder[e.Name] = i
	}
	weights := weights(f)
	for _, e := range listed.Score.Enabled {
		fast.scoreOrder = append(fast.scoreOrder, e.Name)
		if slices.Contains(acrossNodes, e.Name) {
			continue
		}
		fast.localScores = append(fast.localScores, e.Name)
		if !nodeLocal[e.Name] {
			continue
		}
		s, err := newScorer(ctx, e.Name, weights[e.Name], p, t, registry)
		if err != nil {
			return nil, err
		}
		fast.scorers[e.Name] = s
	}
	for _, name := range acrossNodes {
		filters, scores := isListed(listed.Filter, name), isListed(listed.Score, name)
		if !filters && !scores {
			continue
		}
		a, err := newAcross(ctx, name, p, fast.handle)
		if err != nil {
			return nil, err
		}
		a.filters, a.scores, a.filterOrder, a.weight = filters, scores, fast.filterOrder[name], weights[name]
		fast.across = append(fast.across, a)
	}
	return fast, nil
}

func isListed(set config.PluginSet, name string) bool {
	return slices.ContainsFunc(set.Enabled, func(p config.Plugin) bool { return p.Name == name })
}

// newScorer makes an instance of a node-local Score plugin, for its NormalizeScore.
func newScorer(ctx context.Context, name string, weight int64, p config.KubeSchedulerProfile, t framework.Framework, registry frameworkruntime.Registry) (*scorer, error) {
	factory, ok := registry[name]
	if !ok {
		return nil, fmt.Errorf("plugin %q is in no registry", name)
	}
	var args runtime.Object
	for _, c := range p.PluginConfig {
		if c.Name == name {
			args = c.Args
		}
	}
	made, err := factory(ctx, args, t)
	if err != nil {
		return nil, err
	}
	s, ok := made.(fwk.ScorePlugin)
	if !ok {
		return nil, fmt.Errorf("plugin %q is enabled at Score and has no Score", name)
	}
	return &scorer{name: name, plugin: s, normalizes: s.ScoreExtensions() != nil, weight: weight}, nil
}

// fast is the part of a chooser that remembers.
type fast struct {
	profiles map[string]*fastProfile
	factory  informers.SharedInformerFactory
	digests  digests
	classes  map[classKey]*class
	kinds    *kinds
	layout   *layout
	// asked counts how often classes were asked for.
	asked int
	// tried are the pods that this cycle has looked at: one that comes twice is
	// being tried with others taken away.
	tried     map[types.UID]bool
	exclusive bool
	// number is what the seed gives a node.
	number func(string) uint64
	// nominated are the pods that preemption makes room for: while there are any,
	// a node can have less room than its NodeInfo says.
	nominated map[types.UID]bool
	// remembered counts the pods whose class was used.
	remembered int
}

type classKey struct {
	profile string
	pod     digest
}

// newFast returns the part for the profiles.
func newFast(ctx context.Context, c *chooser, profiles []config.KubeSchedulerProfile, sched *scheduler.Scheduler, outOfTree frameworkruntime.Registry, factory informers.SharedInformerFactory) (*fast, error) {
	registry := plugins.NewInTreeRegistry()
	if err := registry.Merge(outOfTree); err != nil {
		return nil, err
	}
	f := &fast{
		number: c.number, profiles: map[string]*fastProfile{}, factory: factory, kinds: newKinds(), layout: &layout{}, tried: map[types.UID]bool{}, nominated: map[types.UID]bool{},
		digests: digests{}, classes: map[classKey]*class{},
	}
	for _, p := range profiles {
		made, err := newFastProfile(ctx, p, sched.Profiles[p.SchedulerName], sched.Profiles[p.SchedulerName+twinSuffix], registry, c.workers)
		if err != nil {
			return nil, fmt.Errorf("profile %q: %w", p.SchedulerName, err)
		}
		f.profiles[p.SchedulerName] = made
	}
	return f, nil
}

// class returns the class of the pod; nil where it must be looked at by itself,
// as the first of its class is: most pods of a small cluster have no equal.
func (f *fast) class(pod *corev1.Pod, nodes []fwk.NodeInfo) (*class, error) {
	p := f.profiles[pod.Spec.SchedulerName]
	f.exclusive = f.exclusive || f.tried[pod.UID]
	f.tried[pod.UID] = true
	if p == nil || f.exclusive || len(f.nominated) > 0 || pod.Status.NominatedNodeName != "" {
		return nil, nil
	}
	d, err := f.digests.of(pod)
	if err != nil {
		return nil, err
	}
	key := classKey{pod.Spec.SchedulerName, d}
	known, seen := f.classes[key]
	if !seen {
		f.classes[key] = nil
		return nil, nil
	}
	if !f.layout.isOf(nodes) {
		f.layout = newLayout(nodes, f.number)
	}
	f.layout.look()
	if known == nil || known.layout != f.layout {
		r, err := newRelevance(pod, f.factory)
		if err != nil {
			return nil, err
		}
		f.makeRoom(len(nodes))
		known = newClass(p, r, f.layout)
		f.classes[key] = known
	}
	f.asked++
	known.used = f.asked
	return known, nil
}

// maxPlaces is of how many nodes all classes together remember something. Each takes
// about 300 bytes.
const maxPlaces = 1 << 21

// makeRoom drops the class that was not asked for longest, where another one with n
// nodes would be too much.
func (f *fast) makeRoom(n int) {
	var oldest classKey
	places, first := n, -1
	for key, cl := range f.classes {
		if cl == nil {
			continue
		}
		places += len(cl.nodes)
		if first < 0 || cl.used < first {
			oldest, first = key, cl.used
		}
	}
	if places > maxPlaces && first >= 0 {
		f.classes[oldest] = nil
	}
}

// begin begins a scheduling cycle.
func (f *fast) begin() {
	if f == nil {
		return
	}
	f.exclusive = false
	clear(f.tried)
}

// forget drops all that was remembered: an object that plugins or selectors depend
// on has changed.
func (f *fast) forget() {
	if f != nil {
		clear(f.classes)
		f.layout = &layout{}
	}
}

// nominate notes that preemption makes room for the pod on the node, or on none.
func (f *fast) nominate(uid types.UID, node string) {
	switch {
	case f == nil:
	case node == "":
		delete(f.nominated, uid)
	default:
		f.nominated[uid] = true
	}
}

// scheduleClass chooses a node for the pod from what its class remembers. ok is
// false where it must be looked at by itself.
func (c *chooser) scheduleClass(ctx context.Context, f framework.Framework, state fwk.CycleState, pod *corev1.Pod, attempt *Attempt) (ok bool, err error) {
	nodes, err := c.snapshot.ListNodesInPlacement()
	if err != nil {
		return false, err
	}
	cl, err := c.class(pod, nodes)
	if cl == nil || err != nil {
		return false, err
	}
	states, ok, err := cl.filter(ctx, c, state, pod)
	if !ok || err != nil {
		return false, err
	}
	at := cl.fit.at
	c.remembered++
	attempt.Evaluated, attempt.Feasible = len(nodes), len(at)
	if len(at) == 0 {
		d := cl.diagnosis()
		attempt.Rejections = c.rejections(nil, d)
		if f.HasPostFilterPlugins() && !state.IsPodGroupSchedulingCycle() {
			// Preemption goes on from what the profile's own PreFilter plugins know.
			f.RunPreFilterPlugins(ctx, state, pod)
		}
		return true, &framework.FitError{Pod: pod, NumAllNodes: c.snapshot.NumNodesInPlacement(), Diagnosis: d}
	}
	attempt.Node = nodes[at[0]].Node().Name
	if len(at) > 1 {
		totals, points, ok, err := cl.score(ctx, c, state, states, pod)
		if !ok || err != nil {
			return false, err
		}
		attempt.Node, attempt.Choice = c.choose(pod, cl, at, totals, points)
		attempt.Node = c.decided(pod, attempt.Node, len(at), func(n int) (string, int64) { return nodes[at[n]].Node().Name, totals[n] })
	} else {
		attempt.Node = c.decided(pod, attempt.Node, 0, nil)
	}
	return true, nil
}

// choose returns the best of the nodes at the places, and how it was chosen.
func (c *chooser) choose(pod *corev1.Pod, cl *class, at []int, totals []int64, points map[string][]int64) (string, *Choice) {
	r := c.rank(pod, len(at), func(n int) int64 { return totals[n] }, func(n int) uint64 { return cl.numbers[at[n]] })
	scores := func(n int) []Score {
		var list []Score
		for _, name := range cl.profile.scoreOrder {
			if across, ok := points[name]; ok {
				list = append(list, Score{Plugin: name, Points: across[n]})
			} else if k := slices.Index(cl.scores.active, name); k >= 0 {
				list = append(list, Score{Plugin: name, Points: cl.scores.points[k][at[n]]})
			}
		}
		for i := range list {
			list[i].Weight = cl.profile.weight(list[i].Plugin)
		}
		return list
	}
	return cl.nodes[at[r.first]].Node().Name, &Choice{
		Scores: scores(r.first), Total: totals[r.first], Tied: r.tied,
		RunnerUp: cl.nodes[at[r.second]].Node().Name, RunnerUpScores: scores(r.second), RunnerUpTotal: totals[r.second],
		TiedWith: c.tied(r, len(at), func(n int) (string, int64) { return cl.nodes[at[n]].Node().Name, totals[n] }),
	}
}

// weight is that of the Score plugin.
func (p *fastProfile) weight(name string) int64 {
	if s := p.scorers[name]; s != nil {
		return s.weight
	}
	for _, a := range p.across {
		if a.name == name {
			return a.weight
		}
	}
	return 0
}
