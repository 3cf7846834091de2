package engine

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// class remembers, for pods that are equal to the scheduler, what the plugins said
// of each node, until the node changes. Nodes are known by their place in the
// snapshot's list.
type class struct {
	profile   *fastProfile
	relevance *relevance
	*layout
	// seen is how much of the log of trials the class has taken in.
	seen int

	// Of the node-local plugins: the verdict on each node as of its generation.
	generations []int64
	verdicts    []*fwk.Status
	// statuses are the verdicts of all plugins, made anew for each pod.
	statuses []*fwk.Status

	thin *thin

	scores localScores
}

// localScores remembers what the node-local plugins gave the nodes that are fit.
type localScores struct {
	active []string // the plugins that do not skip the class
	// scored is the generation of the node that raw is of; 0 for none.
	scored []int64
	raw    [][]int64 // by plugin and node
	points [][]int64 // by plugin and node: normalised and weighted
	totals []int64   // by node: the sum of points
	fit    []bool
}

func newClass(p *fastProfile, r *relevance, l *layout, seen int) *class {
	n := len(l.nodes)
	return &class{
		profile: p, relevance: r, layout: l, seen: seen,
		generations: make([]int64, n), verdicts: make([]*fwk.Status, n), statuses: make([]*fwk.Status, n),
		thin:   &thin{nodes: make([]fwk.NodeInfo, n), generations: make([]int64, n), stale: true},
		scores: localScores{scored: make([]int64, n), totals: make([]int64, n), fit: make([]bool, n)},
	}
}

// layout is the nodes of a snapshot, and the place of each.
type layout struct {
	nodes []fwk.NodeInfo
	at    map[string]int
	// numbers are what the seed gives the nodes.
	numbers []uint64
	bare    bare
}

func newLayout(nodes []fwk.NodeInfo, number func(string) uint64) *layout {
	n := len(nodes)
	l := &layout{nodes: slices.Clone(nodes), at: make(map[string]int, n), numbers: make([]uint64, n), bare: make(bare, n)}
	for i, node := range nodes {
		l.at[node.Node().Name], l.numbers[i] = i, number(node.Node().Name)
	}
	return l
}

// takeIn forgets what the class knows of nodes on which a group was tried. Their
// generation does not tell: upstream keeps it, because the cache has not changed.
func (cl *class) takeIn(trials []string) {
	for _, name := range trials[cl.seen:] {
		if i, ok := cl.at[name]; ok {
			cl.generations[i], cl.thin.generations[i], cl.scores.scored[i] = unknown, unknown, unknown
		}
	}
	cl.seen = len(trials)
}

// unknown is no generation of a NodeInfo.
const unknown = -1

// filter returns the places of the nodes that the pod fits. The statuses of the
// others are in cl.statuses. ok is false where the class does not hold for the pod:
// a plugin that is not node-local has a say. The states are those of the plugins
// that look across nodes.
func (cl *class) filter(ctx context.Context, c *chooser, state fwk.CycleState, pod *corev1.Pod) (at []int, states []fwk.CycleState, ok bool, err error) {
	limited, status, _ := cl.profile.twin.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() || !limited.AllNodes() || !state.GetSkipFilterPlugins().HasAll(cl.profile.mustSkipFilter...) {
		return nil, nil, false, nil
	}
	var changed []int
	for i, node := range cl.nodes {
		if g := node.GetGeneration(); g != cl.generations[i] {
			cl.generations[i] = g
			changed = append(changed, i)
		}
	}
	c.each(len(changed), func(n int) {
		i := changed[n]
		cl.verdicts[i] = cl.profile.twin.RunFilterPlugins(ctx, state, pod, cl.nodes[i])
	})
	for _, i := range changed {
		if cl.verdicts[i].Code() == fwk.Error {
			return nil, nil, false, cl.verdicts[i].AsError()
		}
	}
	copy(cl.statuses, cl.verdicts)
	if len(cl.profile.across) > 0 {
		if err := cl.updateThin(c); err != nil {
			return nil, nil, false, err
		}
	}
	for _, a := range cl.profile.across {
		s, err := a.filter(ctx, c, pod, cl.thin, cl.profile.filterOrder, cl.statuses)
		if err != nil {
			return nil, nil, false, err
		}
		states = append(states, s)
	}
	for i, status := range cl.statuses {
		if status.IsSuccess() {
			at = append(at, i)
		} else if status.Code() == fwk.Error {
			return nil, nil, false, status.AsError()
		}
	}
	return at, states, true, nil
}

// updateThin brings the thin nodes up to date, and makes them those that the
// plugins across nodes look at.
func (cl *class) updateThin(c *chooser) error {
	for i, node := range cl.nodes {
		if node.GetGeneration() == cl.thin.generations[i] {
			continue
		}
		if err := cl.thin.update(i, node, cl.bare, c.kinds, cl.relevance); err != nil {
			return err
		}
	}
	cl.thin.refresh()
	cl.profile.handle.now = cl.thin
	return nil
}

// score returns the totals of the nodes at the places, and the points of each
// plugin by the same order. ok is false where the class does not hold for the pod.
func (cl *class) score(ctx context.Context, c *chooser, state fwk.CycleState, states []fwk.CycleState, pod *corev1.Pod, at []int) (totals []int64, points map[string][]int64, ok bool, err error) {
	feasible := make([]fwk.NodeInfo, len(at))
	for n, i := range at {
		feasible[n] = cl.nodes[i]
	}
	if status := cl.profile.twin.RunPreScorePlugins(ctx, state, pod, feasible); !status.IsSuccess() {
		return nil, nil, false, status.AsError()
	}
	skipped := state.GetSkipScorePlugins()
	if !skipped.HasAll(cl.profile.mustSkipScore...) {
		return nil, nil, false, nil
	}
	if err := cl.updateScores(ctx, c, state, pod, at); err != nil {
		return nil, nil, false, err
	}
	totals = make([]int64, len(at))
	for n, i := range at {
		totals[n] = cl.scores.totals[i]
	}
	points = map[string][]int64{}
	for k, a := range cl.profile.across {
		across, err := a.score(ctx, c, states[k], pod, cl.thin, at)
		if err != nil {
			return nil, nil, false, err
		}
		if across == nil {
			continue
		}
		points[a.name] = across
		for n := range across {
			totals[n] += across[n]
		}
	}
	return totals, points, true, nil
}

// updateScores brings what the node-local plugins give the nodes at the places up
// to date.
func (cl *class) updateScores(ctx context.Context, c *chooser, state fwk.CycleState, pod *corev1.Pod, at []int) error {
	s := &cl.scores
	skipped := state.GetSkipScorePlugins()
	var active []string
	var place []int // of each active plugin among those that give scores
	running := 0
	for _, name := range cl.profile.localScores {
		if skipped.Has(name) {
			continue
		}
		if cl.profile.scorers[name] != nil {
			active, place = append(active, name), append(place, running)
		}
		running++
	}
	if !slices.Equal(active, s.active) {
		s.active, s.raw, s.points = active, matrix(len(active), len(cl.nodes)), matrix(len(active), len(cl.nodes))
		clear(s.scored)
	}
	sameFit := s.setFit(at)
	var changed []int
	for _, i := range at {
		if s.scored[i] != cl.generations[i] {
			s.scored[i] = cl.generations[i]
			changed = append(changed, i)
		}
	}
	if len(changed) == 0 && sameFit {
		return nil
	}
	raws := make([][]fwk.PluginScore, len(changed))
	failed := make([]*fwk.Status, len(changed))
	c.each(len(changed), func(n int) {
		raws[n], failed[n] = cl.profile.twin.RunRawScorePlugins(ctx, state, pod, cl.nodes[changed[n]])
	})
	differs := make([]bool, len(active))
	for n, i := range changed {
		if !failed[n].IsSuccess() {
			return failed[n].AsError()
		}
		for k := range active {
			if raw := raws[n][place[k]].Score; raw != s.raw[k][i] {
				s.raw[k][i], differs[k] = raw, true
			}
		}
	}
	for k, name := range active {
		p := cl.profile.scorers[name]
		switch {
		case p.normalizes && (differs[k] || !sameFit):
			if err := s.normalize(ctx, p, k, state, pod, cl.nodes, at); err != nil {
				return err
			}
		case !p.normalizes:
			for _, i := range changed {
				s.points[k][i] = s.raw[k][i] * p.weight
			}
		}
	}
	for _, i := range at {
		total := int64(0)
		for k := range s.points {
			total += s.points[k][i]
		}
		s.totals[i] = total
	}
	return nil
}

// normalize makes points of the raw scores of one plugin.
func (s *localScores) normalize(ctx context.Context, p *scorer, k int, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo, at []int) error {
	list := make(fwk.NodeScoreList, len(at))
	for n, i := range at {
		list[n] = fwk.NodeScore{Name: nodes[i].Node().Name, Score: s.raw[k][i]}
	}
	points, err := normalized(ctx, p.plugin, p.name, p.weight, state, pod, list)
	if err != nil {
		return err
	}
	for n, i := range at {
		s.points[k][i] = points[n]
	}
	return nil
}

// setFit notes which nodes are fit, and reports whether they are those from before.
func (s *localScores) setFit(at []int) bool {
	same, next := true, 0
	for i := range s.fit {
		fit := next < len(at) && at[next] == i
		if fit {
			next++
		}
		same = same && fit == s.fit[i]
		s.fit[i] = fit
	}
	return same
}

func matrix(rows, columns int) [][]int64 {
	m := make([][]int64, rows)
	for i := range m {
		m[i] = make([]int64, columns)
	}
	return m
}

// diagnosis is why the pod fits no node, as upstream would have it.
func (cl *class) diagnosis() framework.Diagnosis {
	d := framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}
	for i, status := range cl.statuses {
		if !status.IsSuccess() {
			d.NodeToStatus.Set(cl.nodes[i].Node().Name, status)
			d.AddPluginStatus(status)
		}
	}
	return d
}
