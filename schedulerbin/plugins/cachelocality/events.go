package cachelocality

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// EventsToRegister lists what can make a rejected pod schedulable: a node that
// comes without draining or stops draining, and the pod's own annotation where it
// could not be read. Other pods never do.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeLabel}, QueueingHintFn: p.onNode},
		{Event: fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.Update}, QueueingHintFn: p.onPod},
	}, nil
}

// onNode wakes the pod for a node that is not draining, unless it was not before.
func (p *Plugin) onNode(_ klog.Logger, pod *v1.Pod, before, after any) (fwk.QueueingHint, error) {
	node, ok := after.(*v1.Node)
	if !ok {
		return fwk.Queue, fmt.Errorf("event of a node brings a %T", after)
	}
	// No node makes the pod's annotation readable.
	if !p.readable(pod) || p.drained(node) {
		return fwk.QueueSkip, nil
	}
	if was, ok := before.(*v1.Node); ok && was != nil && !p.drained(was) {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}

// onPod wakes the pod where its datasets could not be read and now can, or where
// it names none any more.
func (p *Plugin) onPod(_ klog.Logger, _ *v1.Pod, before, after any) (fwk.QueueingHint, error) {
	was, ok := before.(*v1.Pod)
	is, also := after.(*v1.Pod)
	if !ok || !also {
		return fwk.Queue, fmt.Errorf("event of a pod brings %T and %T", before, after)
	}
	if p.readable(is) && (!p.readable(was) || p.names(was) && !p.names(is)) {
		return fwk.Queue, nil
	}
	return fwk.QueueSkip, nil
}
