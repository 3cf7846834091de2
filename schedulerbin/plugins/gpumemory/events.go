package gpumemory

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
)

// EventsToRegister lists what can make a rejected pod schedulable: a pod that
// held GPU memory or whole devices goes; a node comes, or says that it has other
// memory; the pod asks for something else.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		{Event: fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete}, QueueingHintFn: p.onGone},
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeLabel | fwk.UpdateNodeAnnotation}, QueueingHintFn: p.onNode},
		{Event: fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.Update}, QueueingHintFn: p.onPod},
	}, nil
}

// onGone wakes the pod where the pod that goes leaves GPU memory behind.
func (p *Plugin) onGone(_ klog.Logger, _ *v1.Pod, before, _ any) (fwk.QueueingHint, error) {
	gone, ok := before.(*v1.Pod)
	if !ok {
		return fwk.Queue, fmt.Errorf("event of a pod brings a %T", before)
	}
	if asks(gone) {
		return fwk.Queue, nil
	}
	for i := range gone.Spec.Containers {
		for _, name := range p.args.WholeDeviceResources {
			if q, ok := gone.Spec.Containers[i].Resources.Requests[v1.ResourceName(name)]; ok && !q.IsZero() {
				return fwk.Queue, nil
			}
		}
	}
	return fwk.QueueSkip, nil
}

// onNode wakes the pod for a node that says something else of its memory than
// before, and by that may have room.
func (p *Plugin) onNode(_ klog.Logger, pod *v1.Pod, before, after any) (fwk.QueueingHint, error) {
	is, ok := after.(*v1.Node)
	if !ok {
		return fwk.Queue, fmt.Errorf("event of a node brings a %T", after)
	}
	if !p.largeFor(is, pod) {
		return fwk.QueueSkip, nil
	}
	if was, ok := before.(*v1.Node); ok && was != nil && p.says(was) == p.says(is) {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}

// largeFor reports whether the pod can be read and would fit on the node if that
// were empty.
func (p *Plugin) largeFor(node *v1.Node, pod *v1.Pod) bool {
	n, err := read(pod)
	return err == nil && n != nil && p.large(node, n)
}

// says is all that the node says of its memory.
func (p *Plugin) says(node *v1.Node) string {
	all := node.Annotations[args.NodeGPUMemory] + "\n" + node.Labels[args.NodeGFDMemory] + "\n" + node.Labels[args.NodeGFDCount] + "\n" + node.Labels[args.NodeGFDProduct]
	for _, label := range p.args.FreeLabels {
		all += "\n" + node.Labels[label.Key]
	}
	return all
}

// onPod wakes the pod where it asks for something else than before.
func (p *Plugin) onPod(_ klog.Logger, _ *v1.Pod, before, after any) (fwk.QueueingHint, error) {
	was, ok := before.(*v1.Pod)
	is, also := after.(*v1.Pod)
	if !ok || !also {
		return fwk.Queue, fmt.Errorf("event of a pod brings %T and %T", before, after)
	}
	for _, key := range []string{args.PodGPUMemory, args.PodGPUDevices} {
		if was.Annotations[key] != is.Annotations[key] {
			return fwk.Queue, nil
		}
	}
	return fwk.QueueSkip, nil
}
