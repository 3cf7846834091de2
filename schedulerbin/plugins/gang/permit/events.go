package permit

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// EventsToRegister returns what lets a member go on that was refused: a node that it
// could be on is new or has changed, or a pod has left one. What is new about its
// own gang is no event that a plugin is told of; podHandler and groupHandler wake it
// then, and sweep wakes it now and then for what else may have kept it off.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeAllocatable | fwk.UpdateNodeLabel | fwk.UpdateNodeTaint}, QueueingHintFn: p.afterNode},
		{Event: fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete | fwk.UpdatePodScaleDown}, QueueingHintFn: p.afterPod},
	}, nil
}

// afterNode queues pod when the node that is new or changed is one for it.
func (p *Plugin) afterNode(logger klog.Logger, pod *corev1.Pod, _, changed any) (fwk.QueueingHint, error) {
	node, ok := changed.(*corev1.Node)
	if !ok {
		return fwk.Queue, fmt.Errorf("event of a node holds a %T", changed)
	}
	if p.state.awaitsRoom(pod) && matches(logger, pod, node) {
		return fwk.Queue, nil
	}
	return fwk.QueueSkip, nil
}

// afterPod queues pod when another has left a node that is one for it, or needs
// less there.
func (p *Plugin) afterPod(logger klog.Logger, pod *corev1.Pod, before, _ any) (fwk.QueueingHint, error) {
	left, ok := before.(*corev1.Pod)
	if !ok {
		return fwk.Queue, fmt.Errorf("event of a pod holds a %T", before)
	}
	if !p.state.awaitsRoom(pod) {
		return fwk.QueueSkip, nil
	}
	node, err := p.handle.SharedInformerFactory().Core().V1().Nodes().Lister().Get(left.Spec.NodeName)
	if err == nil && !matches(logger, pod, node) {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil // in doubt it is one
}

// awaitsRoom reports whether room is what pod waits for. Of a gang that did not fit,
// one member is tried, and the others after it. A pod in no gang is here because it
// was kept off a seat.
func (s *State) awaitsRoom(pod *corev1.Pod) bool {
	name, ok := gangOf(pod)
	if ok && s.holds(pod) != "" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !ok {
		for _, kept := range s.seats {
			if kept.kept[pod.Namespace+"/"+pod.Name] != nil {
				return true
			}
		}
		return false
	}
	g := s.gangs[name]
	return g == nil || g.blocked == nil && !g.isResting(s.clock.Now()) && (g.refused == nil || g.refused.by == pod.UID)
}
