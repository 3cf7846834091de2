package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Trial is what the scheduler would say of a pod now, without that anything comes
// of it.
type Trial struct {
	Attempt
	// Blockers are, for each node that is not fit, all Filter plugins that object, in
	// the order of the profile; an attempt names the first. They are empty where a
	// plugin refuses the pod altogether.
	Blockers map[string][]Blocker
	// Scored are the nodes that are fit with what each got, where there are several.
	Scored []NodeScores
}

// NodeScores is what a node that is fit got.
type NodeScores struct {
	Node string
	// Scores are in the order of the profile's plugins, and Total is their sum.
	Scores []Score
	Total  int64
}

// Blocker is a plugin that objects to a node.
type Blocker struct {
	Plugin  string
	Reasons []string
}

// ErrUnserved is for a pod whose scheduler is none of the engine's profiles.
var ErrUnserved = errors.New("no profile serves the scheduler that the pod names")

// Try says what would become of the pod if the scheduler looked at it now. The pod
// need not be in the cluster; if it is on a node, it is taken off for this.
func (e *Engine) Try(ctx context.Context, pod *corev1.Pod) (Trial, error) {
	f, ok := e.sched.Profiles[pod.Spec.SchedulerName]
	if !ok {
		return Trial{}, fmt.Errorf("%w: %q", ErrUnserved, pod.Spec.SchedulerName)
	}
	ctx = klog.NewContext(ctx, logr.Discard())
	if placed, ok := e.Pod(key(pod)); ok && placed.Spec.NodeName != "" {
		if err := e.sched.Cache.RemovePod(logr.Discard(), placed); err != nil {
			return Trial{}, err
		}
		defer func() { _ = e.sched.Cache.AddPod(logr.Discard(), placed) }()
	}
	if err := e.sched.Cache.UpdateSnapshot(logr.Discard(), e.chooser.snapshot); err != nil {
		return Trial{}, err
	}
	waiting := *pod
	waiting.Spec.NodeName = ""
	if of := e.GroupOf(pod); of != "" { // where the scheduler would see it without its gates
		waiting.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &of}
	}
	return e.chooser.try(ctx, f, &waiting)
}

// try looks at every node, and at those that are not fit with every plugin.
func (c *chooser) try(ctx context.Context, f framework.Framework, pod *corev1.Pod) (Trial, error) {
	t := Trial{Attempt: Attempt{Pod: pod}, Blockers: map[string][]Blocker{}}
	if c.snapshot.NumNodesInPlacement() == 0 {
		t.Message = "no nodes available to schedule pods"
		return t, nil
	}
	state := framework.NewCycleState()
	feasible, diagnosis, err := c.fit(ctx, f, state, pod)
	if err != nil {
		return t, err
	}
	t.Feasible, t.Evaluated = len(feasible), len(feasible)+diagnosis.NodeToStatus.Len()
	t.Rejections = c.rejections(feasible, diagnosis)
	switch len(feasible) {
	case 0:
		t.Message = (&framework.FitError{Pod: pod, NumAllNodes: c.snapshot.NumNodesInPlacement(), Diagnosis: diagnosis}).Error()
	case 1:
		t.Node = feasible[0].Node().Name
	default:
		scores, err := c.score(ctx, f, state, pod, feasible)
		if err != nil {
			return t, err
		}
		t.Node, t.Choice = c.best(f, pod, scores)
		weights := weights(f)
		for _, s := range scores {
			t.Scored = append(t.Scored, NodeScores{Node: s.Name, Scores: points(s.Scores, weights), Total: s.TotalScore})
		}
	}
	if diagnosis.PreFilterMsg != "" {
		return t, nil
	}
	nodes, err := c.snapshot.ListNodesInPlacement()
	if err != nil {
		return t, err
	}
	blockers := make([][]Blocker, len(nodes))
	skipped := state.GetSkipFilterPlugins()
	c.each(len(nodes), func(i int) { blockers[i] = blockersOf(ctx, f, state, skipped, pod, nodes[i]) })
	for i, list := range blockers {
		if len(list) > 0 {
			t.Blockers[nodes[i].Node().Name] = list
		}
	}
	return t, nil
}

// blockersOf runs the Filter plugins on one node again and again, without those
// that have objected, until none does.
func blockersOf(ctx context.Context, f framework.Framework, of fwk.CycleState, skipped sets.Set[string], pod *corev1.Pod, node fwk.NodeInfo) []Blocker {
	var blockers []Blocker
	without := skipped.Clone()
	if without == nil {
		without = sets.New[string]()
	}
	state := of.Clone()
	for {
		state.SetSkipFilterPlugins(without)
		status := f.RunFilterPluginsWithNominatedPods(ctx, state, pod, node)
		if status.IsSuccess() || status.Plugin() == "" || without.Has(status.Plugin()) {
			return blockers
		}
		blockers = append(blockers, Blocker{Plugin: status.Plugin(), Reasons: status.Reasons()})
		without.Insert(status.Plugin())
	}
}
