// Package room is what both ways of placing gangs ask about nodes: which of them a pod
// could be on, and whether it fits beside members whose seats are kept there. What fits
// is decided by the profile's own plugins.
//
// It must not know for whom seats are kept, nor how long.
package room

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/helper"
)

// NewSeat returns a seat for the member: the pod without the node that it is assumed
// to be on. The error is that of a selector that cannot be read.
func NewSeat(member *corev1.Pod) (fwk.PodInfo, error) {
	unbound := member.DeepCopy()
	unbound.Spec.NodeName = ""
	return framework.NewPodInfo(unbound)
}

// FitsBeside reports whether pod fits on the node once the seats there are taken. As
// for nominated pods, the profile's plugins say what fits, but for the one called name
// that asks: the members are put on a copy of the node. The error is that of a plugin.
func FitsBeside(ctx context.Context, handle fwk.Handle, name string, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo, seats []fwk.PodInfo) (bool, error) {
	node, state = node.Snapshot(), state.Clone()
	skip := state.GetSkipFilterPlugins().Clone()
	skip.Insert(name)
	state.SetSkipFilterPlugins(skip)
	for _, seat := range seats {
		node.AddPodInfo(seat)
		if status := handle.RunPreFilterExtensionAddPod(ctx, state, pod, seat, node); !status.IsSuccess() {
			return false, status.AsError()
		}
	}
	status := handle.RunFilterPlugins(ctx, state, pod, node)
	if !status.IsSuccess() && !status.IsRejected() {
		return false, status.AsError()
	}
	return status.IsSuccess(), nil
}

// CouldBeOn returns what says whether the pod could be on a node, as far as its node
// selector, its affinity and the node's taints tell. Its error says that the affinity
// cannot be read.
func CouldBeOn(logger klog.Logger, pod *corev1.Pod) func(*corev1.Node) (bool, error) {
	affinity := nodeaffinity.GetRequiredNodeAffinity(pod)
	return func(node *corev1.Node) (bool, error) {
		if _, tainted := corev1helpers.FindMatchingUntoleratedTaint(logger, node.Spec.Taints, pod.Spec.Tolerations, helper.DoNotScheduleTaintsFilterFunc(), false); tainted {
			return false, nil
		}
		return affinity.Match(node)
	}
}

// SameNodes reports whether two pods ask the same of nodes.
func SameNodes(a, b *corev1.Pod) bool {
	return equality.Semantic.DeepEqual(a.Spec.NodeSelector, b.Spec.NodeSelector) &&
		equality.Semantic.DeepEqual(a.Spec.Affinity, b.Spec.Affinity) &&
		equality.Semantic.DeepEqual(a.Spec.Tolerations, b.Spec.Tolerations)
}
