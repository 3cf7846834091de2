package gpumemory

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
)

// The reasons why a node that can be read is rejected.
const (
	ReasonSmall = "node's GPUs are too small or too few, even if empty"
	ReasonFull  = "node's GPUs have too little memory free"
)

// Filter rejects a node where the pod, and the nominated pods that the NodeInfo
// holds, do not fit.
func (p *Plugin) Filter(_ context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) *fwk.Status {
	n, err := asked(state, pod)
	if err != nil {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	if n == nil {
		return nil
	}
	var free memory
	var w waiting
	if reason, unsolvable := p.free(node, pod.UID, &free, &w); reason != "" {
		if unsolvable || !p.large(node.Node(), n) {
			return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, reason)
		}
		return fwk.NewStatus(fwk.Unschedulable, reason)
	}
	var fits bool
	if w.count == 0 {
		_, count := free.fitting(n.Bytes)
		fits = count >= n.Devices
	} else {
		w.pods[w.count] = *n
		fits = free.holds(w.pods[:w.count+1])
	}
	switch {
	case fits:
		return nil
	case !p.large(node.Node(), n):
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, ReasonSmall)
	}
	return fwk.NewStatus(fwk.Unschedulable, ReasonFull)
}

// large reports whether the pod would fit on the node if that were empty. Of a
// node that says only what is free nobody knows.
func (p *Plugin) large(node *v1.Node, n *need) bool {
	var m memory
	reason, estimated := p.capacity(node, &m)
	if reason != "" || estimated {
		return reason == "" && n.Devices == 1
	}
	_, count := m.fitting(n.Bytes)
	return count >= n.Devices
}

// PreScore skips the pods that ask for nothing.
func (p *Plugin) PreScore(_ context.Context, state fwk.CycleState, pod *v1.Pod, _ []fwk.NodeInfo) *fwk.Status {
	n, err := asked(state, pod)
	if err != nil || n == nil {
		return fwk.NewStatus(fwk.Skip)
	}
	state.Write(stateKey, n)
	return nil
}

// Score returns how many MiB the tightest of the devices that the pod would get
// has left, -1 if the pod would get none.
func (p *Plugin) Score(_ context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	n, err := asked(state, pod)
	if err != nil || n == nil {
		return -1, fwk.AsStatus(err)
	}
	var free memory
	var w waiting
	if reason, _ := p.free(node, pod.UID, &free, &w); reason != "" {
		return -1, nil
	}
	chosen, ok := free.choose(*n, p.args.Prefer)
	if !ok {
		return -1, nil
	}
	left := int64(-1)
	for i := range free.count {
		if chosen.has(i) && (left < 0 || free.bytes[i]-n.Bytes < left) {
			left = free.bytes[i] - n.Bytes
		}
	}
	return left >> 20, nil
}

// ScoreExtensions returns the plugin.
func (p *Plugin) ScoreExtensions() fwk.ScoreExtensions { return p }

// NormalizeScore maps what is left to 0..100 by the preference: the node with the
// most left has 100 for most-free, and the one with the least for best-fit.
func (p *Plugin) NormalizeScore(_ context.Context, _ fwk.CycleState, _ *v1.Pod, scores fwk.NodeScoreList) *fwk.Status {
	least, most := int64(-1), int64(-1)
	for _, s := range scores {
		if s.Score >= 0 && (least < 0 || s.Score < least) {
			least = s.Score
		}
		most = max(most, s.Score)
	}
	for i := range scores {
		left := scores[i].Score
		switch {
		case left < 0:
			scores[i].Score = 0
		case p.args.Prefer == args.BestFit && most == least, most == 0:
			scores[i].Score = fwk.MaxScore
		case p.args.Prefer == args.BestFit:
			scores[i].Score = fwk.MaxScore - fwk.MaxScore*(left-least)/(most-least)
		default:
			scores[i].Score = fwk.MaxScore * left / most
		}
	}
	return nil
}

// errGone is for a node that the snapshot no longer has.
func errGone(node string, err error) error {
	return fmt.Errorf("plugin %q: node %q: %w", Name, node, err)
}
