package engine

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// chooser chooses a node for a pod as Scheduler.SchedulePod does, in the same
// steps and by the same plugins, but looks at all nodes and gives the same answer
// each time. It is told of one pod at a time.
type chooser struct {
	snapshot *cache.Snapshot
	seed     seed
	workers  int
	// explain has the reasons against the other nodes kept for pods that are placed
	// too.
	explain bool
	// ties has the nodes kept that a choice was tied with.
	ties bool
	// decider has the last word; nil leaves it to the seed.
	decider Decider

	// last are the attempts that are under way, and nodes the number that the seed
	// gives each node.
	last  map[types.UID]Attempt
	nodes map[string]uint64

	// fast is nil where each pod is looked at by itself.
	*fast
	scratch scratch
}

func newChooser(snapshot *cache.Snapshot, seed seed, workers int) *chooser {
	return &chooser{snapshot: snapshot, seed: seed, workers: workers, last: map[types.UID]Attempt{}, nodes: map[string]uint64{}}
}

// attempt returns the last attempt for the pod, and forgets it.
func (c *chooser) attempt(pod *corev1.Pod) Attempt {
	a := c.last[pod.UID]
	delete(c.last, pod.UID)
	a.Pod = pod
	return a
}

// schedule stands in the place of Scheduler.SchedulePod.
func (c *chooser) schedule(ctx context.Context, f framework.Framework, state fwk.CycleState, info *framework.QueuedPodInfo) (scheduler.ScheduleResult, error) {
	if c.snapshot.NumNodesInPlacement() == 0 {
		return scheduler.ScheduleResult{}, scheduler.ErrNoNodesAvailable
	}
	attempt := Attempt{Pod: info.Pod}
	defer func() { c.last[info.Pod.UID] = attempt }()
	if c.fast != nil {
		ok, err := c.scheduleClass(ctx, f, state, info.Pod, &attempt)
		if err != nil {
			return scheduler.ScheduleResult{}, err
		}
		if ok {
			return scheduler.ScheduleResult{SuggestedHost: attempt.Node, EvaluatedNodes: attempt.Evaluated, FeasibleNodes: attempt.Feasible}, nil
		}
	}
	feasible, diagnosis, err := c.fit(ctx, f, state, info.Pod)
	if err != nil {
		return scheduler.ScheduleResult{}, err
	}
	attempt.Feasible = len(feasible)
	attempt.Evaluated = len(feasible) + diagnosis.NodeToStatus.Len()
	if len(feasible) == 0 || c.explain {
		attempt.Rejections = c.rejections(feasible, diagnosis)
	}
	if len(feasible) == 0 {
		return scheduler.ScheduleResult{}, &framework.FitError{Pod: info.Pod, NumAllNodes: c.snapshot.NumNodesInPlacement(), Diagnosis: diagnosis}
	}
	attempt.Node = feasible[0].Node().Name
	if len(feasible) > 1 {
		scores, err := c.score(ctx, f, state, info.Pod, feasible)
		if err != nil {
			return scheduler.ScheduleResult{}, err
		}
		attempt.Node, attempt.Choice = c.best(f, info.Pod, scores)
		attempt.Node = c.decided(info.Pod, attempt.Node, len(scores), func(n int) (string, int64) { return scores[n].Name, scores[n].TotalScore })
	} else {
		attempt.Node = c.decided(info.Pod, attempt.Node, 0, nil)
	}
	return scheduler.ScheduleResult{SuggestedHost: attempt.Node, EvaluatedNodes: attempt.Evaluated, FeasibleNodes: attempt.Feasible}, nil
}

// fit returns the nodes that the pod fits, in the snapshot's order, and why it
// does not fit the others.
func (c *chooser) fit(ctx context.Context, f framework.Framework, state fwk.CycleState, pod *corev1.Pod) ([]fwk.NodeInfo, framework.Diagnosis, error) {
	diagnosis := framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}
	nodes, err := c.snapshot.ListNodesInPlacement()
	if err != nil {
		return nil, diagnosis, err
	}
	limited, status, by := f.RunPreFilterPlugins(ctx, state, pod)
	diagnosis.UnschedulablePlugins = by
	if !status.IsSuccess() {
		if !status.IsRejected() {
			return nil, diagnosis, status.AsError()
		}
		diagnosis.NodeToStatus.SetAbsentNodesStatus(status)
		diagnosis.PreFilterMsg = status.Message()
		diagnosis.AddPluginStatus(status)
		return nil, diagnosis, nil
	}
	// Room that preemption made is looked at first, and taken unscored.
	if nominated := pod.Status.NominatedNodeName; nominated != "" {
		if node, err := c.snapshot.GetNodeInPlacement(nominated); err == nil {
			feasible, err := c.filter(ctx, f, state, pod, []fwk.NodeInfo{node}, &diagnosis)
			if err == nil && len(feasible) > 0 {
				return feasible, diagnosis, nil
			}
		}
	}
	if !limited.AllNodes() {
		nodes = c.named(limited.NodeNames)
		diagnosis.NodeToStatus.SetAbsentNodesStatus(fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(by))))
	}
	feasible, err := c.filter(ctx, f, state, pod, nodes, &diagnosis)
	return feasible, diagnosis, err
}

// named returns the nodes of the names that are there, in the order of the names.
func (c *chooser) named(names sets.Set[string]) []fwk.NodeInfo {
	nodes := make([]fwk.NodeInfo, 0, len(names))
	for _, name := range sets.List(names) {
		if node, err := c.snapshot.GetNodeInPlacement(name); err == nil {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// filter runs the Filter plugins for each of the nodes, and returns those that the
// pod fits.
func (c *chooser) filter(ctx context.Context, f framework.Framework, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo, diagnosis *framework.Diagnosis) ([]fwk.NodeInfo, error) {
	statuses := make([]*fwk.Status, len(nodes))
	c.each(len(nodes), func(i int) {
		statuses[i] = f.RunFilterPluginsWithNominatedPods(ctx, state, pod, nodes[i])
	})
	feasible := make([]fwk.NodeInfo, 0, len(nodes))
	for i, status := range statuses {
		switch {
		case status.Code() == fwk.Error:
			return nil, status.AsError()
		case status.IsSuccess():
			feasible = append(feasible, nodes[i])
		default:
			diagnosis.NodeToStatus.Set(nodes[i].Node().Name, status)
			diagnosis.AddPluginStatus(status)
		}
	}
	return feasible, nil
}

// score runs the Score plugins for each of the nodes.
func (c *chooser) score(ctx context.Context, f framework.Framework, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) ([]fwk.NodePluginScores, error) {
	scores := make([]fwk.NodePluginScores, len(nodes))
	if !f.HasScorePlugins() {
		for i := range nodes {
			scores[i] = fwk.NodePluginScores{Name: nodes[i].Node().Name, TotalScore: 1}
		}
		return scores, nil
	}
	if status := f.RunPreScorePlugins(ctx, state, pod, nodes); !status.IsSuccess() {
		return nil, status.AsError()
	}
	failed := make([]*fwk.Status, len(nodes))
	c.each(len(nodes), func(i int) {
		raw, status := f.RunRawScorePlugins(ctx, state, pod, nodes[i])
		scores[i], failed[i] = fwk.NodePluginScores{Name: nodes[i].Node().Name, RawScores: raw}, status
	})
	for _, status := range failed {
		if !status.IsSuccess() {
			return nil, fmt.Errorf("running Score plugins: %w", status.AsError())
		}
	}
	if status := f.NormalizeScores(ctx, state, pod, scores); !status.IsSuccess() {
		return nil, status.AsError()
	}
	return scores, nil
}

// best returns the node with the highest total, and how it was chosen.
func (c *chooser) best(f framework.Framework, pod *corev1.Pod, scores []fwk.NodePluginScores) (string, *Choice) {
	r := c.rank(pod, len(scores), func(i int) int64 { return scores[i].TotalScore }, func(i int) uint64 { return c.number(scores[i].Name) })
	weights := weights(f)
	return scores[r.first].Name, &Choice{
		Scores: points(scores[r.first].Scores, weights), Total: scores[r.first].TotalScore, Tied: r.tied,
		RunnerUp: scores[r.second].Name, RunnerUpScores: points(scores[r.second].Scores, weights), RunnerUpTotal: scores[r.second].TotalScore,
		TiedWith: c.tied(r, len(scores), func(i int) (string, int64) { return scores[i].Name, scores[i].TotalScore }),
	}
}

// tied returns the nodes that had the total of the best, if anybody asks for them.
func (c *chooser) tied(r ranking, n int, node func(int) (string, int64)) []string {
	if !c.ties || r.tied == 0 {
		return nil
	}
	names := make([]string, 0, r.tied)
	_, best := node(r.first)
	for i := range n {
		if name, total := node(i); total == best && i != r.first {
			names = append(names, name)
		}
	}
	return names
}

// ranking is the best and the second of several nodes, and how many others have
// the total of the best.
type ranking struct{ first, second, tied int }

// rank ranks n nodes, at least two, by their totals, and by the seed where those
// are equal: number is what the seed gives a node.
func (c *chooser) rank(pod *corev1.Pod, n int, total func(int) int64, number func(int) uint64) ranking {
	of := c.seed.of(key(pod).String())
	r := ranking{first: -1, second: -1}
	type place struct {
		total int64
		luck  uint64
	}
	before := func(a, b place) bool {
		return a.total > b.total || a.total == b.total && a.luck < b.luck
	}
	var first, second place
	for i := range n {
		sum := total(i)
		if r.second >= 0 && sum < second.total {
			continue
		}
		p := place{sum, mix(of ^ number(i))}
		if r.first >= 0 && sum == first.total {
			r.tied++
		}
		switch {
		case r.first < 0 || before(p, first):
			if r.first >= 0 && sum > first.total {
				r.tied = 0
			}
			r.first, r.second, first, second = i, r.first, p, first
		case r.second < 0 || before(p, second):
			r.second, second = i, p
		}
	}
	return r
}

// number is what the seed gives the node.
func (c *chooser) number(node string) uint64 {
	n, ok := c.nodes[node]
	if !ok {
		n = c.seed.of(node)
		c.nodes[node] = n
	}
	return n
}

// weights returns the weight of each Score plugin of the profile.
func weights(f framework.Framework) map[string]int64 {
	w := map[string]int64{}
	for _, p := range f.ListPlugins().Score.Enabled {
		w[p.Name] = int64(p.Weight)
	}
	return w
}

// points returns the scores. Plugins that have no say of the pod are left out.
func points(scores []fwk.PluginScore, weights map[string]int64) []Score {
	out := make([]Score, 0, len(scores))
	for _, s := range scores {
		if s.Score != 0 || !slices.Contains(idleWhereSkipped, s.Name) {
			out = append(out, Score{Plugin: s.Name, Weight: weights[s.Name], Points: s.Score})
		}
	}
	return out
}
