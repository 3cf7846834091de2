package engine

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// class remembers, for pods that are equal to the scheduler, what the plugins said
// of each node, until the node changes. Nodes are known by their place in the
// layout.
type class struct {
	profile   *fastProfile
	relevance *relevance
	*layout
	// seen is how much of the layout's log the class has taken in; behind says that
	// it knows nothing yet.
	seen   int
	behind bool
	// used is when the class was last asked.
	used int

	// verdicts are those of the node-local plugins, statuses those of all plugins for
	// the pod of now.
	verdicts, statuses []*fwk.Status

	// fit are the nodes that were fit last, and local says that this followed from
	// the verdicts alone.
	fit   fitNodes
	local bool

	thin *thin
	// alike says that the nodes of a group are equal to the pods; see groups.
	alike  bool
	scores localScores
}

// fitNodes are the places of nodes that are fit, and the nodes themselves.
type fitNodes struct {
	at, spare  []int
	nodes      []fwk.NodeInfo
	thin       []fwk.NodeInfo
	thinIsMade bool
	// standIns are for each node the one without pods that stands for its group.
	standIns       []fwk.NodeInfo
	standInsAreSet bool
}

// localScores remembers what the node-local plugins gave the nodes that are fit.
type localScores struct {
	active []string // the plugins that do not skip the class
	// scored says of which nodes raw is known, and current that points and totals are
	// those for the nodes that are fit now.
	scored  []bool
	current bool
	raw     [][]int64 // by plugin and node
	points  [][]int64 // by plugin and node: normalised and weighted
	totals  []int64   // by node: the sum of points
}

func newClass(p *fastProfile, r *relevance, l *layout) *class {
	n := len(l.nodes)
	return &class{
		profile: p, relevance: r, layout: l, behind: true, alike: alike(r.pod, l.unique),
		verdicts: make([]*fwk.Status, n),
		thin:     newThin(l),
		scores:   localScores{scored: make([]bool, n), totals: make([]int64, n)},
	}
}

// filter finds the nodes that the pod fits, which are in cl.fit afterwards; the
// statuses of the others are in cl.statuses. ok is false where the class does not
// hold for the pod: a plugin that is not node-local has a say. The states are those
// of the plugins that look across nodes.
func (cl *class) filter(ctx context.Context, c *chooser, state fwk.CycleState, pod *corev1.Pod) (states []fwk.CycleState, ok bool, err error) {
	limited, status, _ := cl.profile.twin.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() || !limited.AllNodes() || !state.GetSkipFilterPlugins().HasAll(cl.profile.mustSkipFilter...) {
		return nil, false, nil
	}
	sameVerdicts, err := cl.catchUp(ctx, c, state, pod)
	if err != nil {
		return nil, false, err
	}
	cl.statuses, cl.profile.handle.now = cl.verdicts, cl.thin
	local := true
	for _, a := range cl.profile.across {
		s := framework.NewCycleState()
		states = append(states, s)
		asked, err := a.preFilter(ctx, s, pod, cl)
		if err != nil {
			return nil, false, err
		}
		if !asked {
			continue
		}
		if local {
			local, cl.statuses = false, c.statusesOf(cl.verdicts)
		}
		a.filter(ctx, c, s, pod, cl)
	}
	if local && cl.local && sameVerdicts {
		return states, true, nil
	}
	cl.local = local
	same, err := cl.fit.find(cl.statuses, cl.nodes)
	cl.scores.current = cl.scores.current && same
	return states, err == nil, err
}

// catchUp looks anew at the nodes that have changed, and reports whether the
// verdicts come to the same set of nodes.
func (cl *class) catchUp(ctx context.Context, c *chooser, state fwk.CycleState, pod *corev1.Pod) (same bool, err error) {
	changed := cl.changedSince(cl.seen)
	if cl.behind {
		changed = cl.everywhere()
	}
	verdicts := make([]*fwk.Status, len(changed))
	c.each(len(changed), func(n int) {
		verdicts[n] = cl.profile.twin.RunFilterPlugins(ctx, state, pod, cl.nodes[changed[n]])
	})
	same = !cl.behind
	for n, i := range changed {
		if verdicts[n].Code() == fwk.Error {
			return false, verdicts[n].AsError()
		}
		same = same && verdicts[n].IsSuccess() == cl.verdicts[i].IsSuccess()
		cl.verdicts[i], cl.scores.scored[i] = verdicts[n], false
	}
	if len(cl.profile.across) > 0 {
		for _, i := range changed {
			if err := cl.thin.update(i, cl.nodes[i], cl.bare, c.kinds, cl.relevance); err != nil {
				return false, err
			}
			cl.fit.changed(i, cl.thin.nodes[i])
		}
	}
	cl.seen, cl.behind = len(cl.log), false
	return same, nil
}

// find finds the nodes whose status is success, and reports whether they are those
// from before. The error is that of a plugin.
func (f *fitNodes) find(statuses []*fwk.Status, nodes []fwk.NodeInfo) (same bool, err error) {
	next := slices.Grow(f.spare[:0], len(statuses))
	for i, status := range statuses {
		if status.IsSuccess() {
			next = append(next, i)
		} else if status.Code() == fwk.Error {
			return false, status.AsError()
		}
	}
	if slices.Equal(next, f.at) {
		f.spare = next
		return true, nil
	}
	f.at, f.spare, f.thinIsMade, f.standInsAreSet = next, f.at, false, false
	f.nodes = f.nodes[:0]
	for _, i := range next {
		f.nodes = append(f.nodes, nodes[i])
	}
	return false, nil
}

// changed takes in that the node at place i has another thin node.
func (f *fitNodes) changed(i int, thin fwk.NodeInfo) {
	if !f.thinIsMade {
		return
	}
	if n, ok := slices.BinarySearch(f.at, i); ok {
		f.thin[n] = thin
	}
}

// thinNodes returns the thin nodes of those that are fit.
func (cl *class) thinNodes() []fwk.NodeInfo {
	f := &cl.fit
	if !f.thinIsMade {
		f.thin, f.thinIsMade = f.thin[:0], true
		for _, i := range f.at {
			f.thin = append(f.thin, cl.thin.nodes[i])
		}
	}
	return f.thin
}

// standIns returns as many nodes as are fit, each the one that stands for its group,
// without its pods.
func (cl *class) standIns() []fwk.NodeInfo {
	f := &cl.fit
	if !f.standInsAreSet {
		f.standIns, f.standInsAreSet = f.standIns[:0], true
		for _, i := range f.at {
			f.standIns = append(f.standIns, cl.empty[cl.groups[i]])
		}
	}
	return f.standIns
}

// score returns the totals of the nodes that are fit, and the points of each plugin
// that looks across nodes, both by the order of cl.fit and until the next call. ok
// is false where the class does not hold for the pod.
func (cl *class) score(ctx context.Context, c *chooser, state fwk.CycleState, states []fwk.CycleState, pod *corev1.Pod) (totals []int64, points map[string][]int64, ok bool, err error) {
	if status := cl.profile.twin.RunPreScorePlugins(ctx, state, pod, cl.fit.nodes); !status.IsSuccess() {
		return nil, nil, false, status.AsError()
	}
	skipped := state.GetSkipScorePlugins()
	if !skipped.HasAll(cl.profile.mustSkipScore...) {
		return nil, nil, false, nil
	}
	if err := cl.updateScores(ctx, c, state, pod); err != nil {
		return nil, nil, false, err
	}
	totals = resized(&c.scratch.totals, len(cl.fit.at))
	for n, i := range cl.fit.at {
		totals[n] = cl.scores.totals[i]
	}
	points = map[string][]int64{}
	for k, a := range cl.profile.across {
		across, err := a.score(ctx, c, states[k], pod, cl)
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

// updateScores brings what the node-local plugins give the nodes that are fit up to
// date.
func (cl *class) updateScores(ctx context.Context, c *chooser, state fwk.CycleState, pod *corev1.Pod) error {
	s, at := &cl.scores, cl.fit.at
	active, place := cl.activeScorers(state.GetSkipScorePlugins())
	if !slices.Equal(active, s.active) {
		s.active, s.raw, s.points = active, matrix(len(active), len(cl.nodes)), matrix(len(active), len(cl.nodes))
		clear(s.scored)
		s.current = false
	}
	var changed []int
	for _, i := range at {
		if !s.scored[i] {
			s.scored[i] = true
			changed = append(changed, i)
		}
	}
	if len(changed) == 0 && s.current {
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
	// Where no plugin's points follow from other nodes, those of the rest are right.
	affected := changed
	if !s.current {
		affected = at
	}
	for k, name := range active {
		p := cl.profile.scorers[name]
		switch {
		case p.normalizes && (differs[k] || !s.current):
			if err := cl.normalize(ctx, c, p, k, state, pod); err != nil {
				return err
			}
			affected = at
		case !p.normalizes:
			for _, i := range changed {
				s.points[k][i] = s.raw[k][i] * p.weight
			}
		}
	}
	for _, i := range affected {
		total := int64(0)
		for k := range s.points {
			total += s.points[k][i]
		}
		s.totals[i] = total
	}
	s.current = true
	return nil
}

// activeScorers returns the node-local plugins that give scores, and the place of
// each among all that do.
func (cl *class) activeScorers(skipped sets.Set[string]) (active []string, place []int) {
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
	return active, place
}

// normalize makes points of the raw scores of one plugin.
func (cl *class) normalize(ctx context.Context, c *chooser, p *scorer, k int, state fwk.CycleState, pod *corev1.Pod) error {
	s, at := &cl.scores, cl.fit.at
	list := resized(&c.scratch.list, len(at))
	for n, i := range at {
		list[n] = fwk.NodeScore{Name: cl.names[i], Score: s.raw[k][i]}
	}
	points := resized(&c.scratch.points, len(at))
	if err := normalized(ctx, p.plugin, p.name, p.weight, state, pod, list, points); err != nil {
		return err
	}
	for n, i := range at {
		s.points[k][i] = points[n]
	}
	return nil
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
