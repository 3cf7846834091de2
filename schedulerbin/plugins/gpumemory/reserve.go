package gpumemory

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
)

// Reserve chooses the pod's devices, and notes them in the ledger.
func (p *Plugin) Reserve(_ context.Context, state fwk.CycleState, pod *v1.Pod, nodeName string) *fwk.Status {
	n, err := asked(state, pod)
	if err != nil || n == nil {
		return fwk.AsStatus(err)
	}
	node, err := p.nodes().Get(nodeName)
	if err != nil {
		return fwk.AsStatus(errGone(nodeName, err))
	}
	var free memory
	var w waiting
	if reason, _ := p.free(node, pod.UID, &free, &w); reason != "" {
		return fwk.NewStatus(fwk.Unschedulable, reason)
	}
	p.nominees(pod, node, &w)
	chosen, ok := free.chooseBeside(*n, p.args.Prefer, w.pods[:w.count])
	if !ok {
		return fwk.NewStatus(fwk.Unschedulable, ReasonFull)
	}
	p.ledger.put(pod.UID, entry{need: *n, node: nodeName, on: chosen})
	return nil
}

// nominees adds the pods that are nominated to the node and go before the pod,
// which Filter has left room for (see upstream's addGENominatedPods).
func (p *Plugin) nominees(pod *v1.Pod, node fwk.NodeInfo, w *waiting) {
	for _, info := range p.nominated(node.Node().Name) {
		other := info.GetPod()
		if other.UID == pod.UID || w.count == maxWaiting || corev1helpers.PodPriority(other) < corev1helpers.PodPriority(pod) {
			continue
		}
		if n, err := read(other); err == nil && n != nil && p.ledger.devices(other.UID) == 0 {
			w.pods[w.count] = *n
			w.count++
		}
	}
}

// chooseBeside chooses devices by the preference, such that the others fit beside
// the pod if they can. Where no choice leaves them room, the pod is placed without
// them: Filter has decided that, not Reserve.
func (m *memory) chooseBeside(n need, prefer args.DevicePreference, others []need) (devices, bool) {
	chosen, ok := m.choose(n, prefer)
	if !ok || len(others) == 0 || m.leaves(n, chosen, others) {
		return chosen, ok
	}
	// The preferred devices are in the others' way: try without each of them.
	for i := range m.count {
		if !chosen.has(i) {
			continue
		}
		rest := *m
		rest.bytes[i] = -1
		if other, ok := rest.choose(n, prefer); ok && m.leaves(n, other, others) {
			return other, true
		}
	}
	// Then without the most preferred one, without the two most preferred, and so
	// on: of a pod with one device, that tries all.
	rest := *m
	for {
		other, ok := rest.choose(n, prefer)
		if !ok {
			return chosen, true
		}
		if m.leaves(n, other, others) {
			return other, true
		}
		first, _ := rest.choose(need{Bytes: n.Bytes, Devices: 1}, prefer)
		for i := range rest.count {
			if first.has(i) {
				rest.bytes[i] = -1
			}
		}
	}
}

// leaves reports whether the others fit once the pod is on the devices.
func (m *memory) leaves(n need, on devices, others []need) bool {
	rest := *m
	rest.take(n.Bytes, on)
	return rest.holds(others)
}

// Unreserve gives the devices back. It may come twice, and without a Reserve.
func (p *Plugin) Unreserve(_ context.Context, _ fwk.CycleState, pod *v1.Pod, _ string) {
	p.ledger.drop(pod.UID)
}

// PreBindPreFlight skips the pods that hold no device. Nothing else writes our
// annotation, so that PreBind may run beside other plugins'.
func (p *Plugin) PreBindPreFlight(_ context.Context, _ fwk.CycleState, pod *v1.Pod, _ string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	if p.ledger.devices(pod.UID) == 0 {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	return &fwk.PreBindPreFlightResult{AllowParallel: true}, nil
}

// PreBind writes the indexes of the pod's devices to it, if it asks for any: upstream
// calls PreBindPreFlight only while NominatedNodeNameForExpectation is on. The patch
// names the UID, so that it fails on a pod of the same name that came since.
func (p *Plugin) PreBind(ctx context.Context, _ fwk.CycleState, pod *v1.Pod, nodeName string) *fwk.Status {
	if !asks(pod) {
		return nil
	}
	index := p.ledger.devices(pod.UID).String()
	if index == "" {
		return fwk.AsStatus(fmt.Errorf("plugin %q: pod has no device on node %q; Reserve must be enabled beside PreBind", Name, nodeName))
	}
	if pod.Annotations[args.PodGPUIndex] == index {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         pod.UID,
		"annotations": map[string]string{args.PodGPUIndex: index},
	}})
	if err == nil {
		_, err = p.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	if err != nil {
		return fwk.AsStatus(fmt.Errorf("plugin %q: write the annotation %q of the pod (the scheduler needs the verb patch on pods): %w", Name, args.PodGPUIndex, err))
	}
	return nil
}
