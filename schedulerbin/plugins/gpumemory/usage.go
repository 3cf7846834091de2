package gpumemory

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
)

// ReasonWhole is why a node whose devices others hold whole is rejected.
const ReasonWhole = "a pod holds whole GPUs of the node, whose indexes nobody tells"

// ReasonUnread is why a node with a pod that nobody could weigh is rejected.
const ReasonUnread = "a pod of the node asks for GPU memory by an annotation that cannot be read"

// ReasonWaiting is why a node with very many nominated pods is rejected.
const ReasonWaiting = "too many pods without a device wait for the node"

// waiting are pods of a NodeInfo that have no device yet: the nominated ones that
// the framework adds for a Filter.
type waiting struct {
	pods  [maxWaiting + 1]need
	count int
}

// free sets into to what each device of the node has free by what the NodeInfo
// holds, without the pod of that uid. Where it cannot be told, it returns the
// reason why; unsolvable is true where no preemption helps.
func (p *Plugin) free(node fwk.NodeInfo, without types.UID, into *memory, w *waiting) (reason string, unsolvable bool) {
	reason, estimated := p.capacity(node.Node(), into)
	if reason != "" {
		return reason, true
	}
	p.ledger.mu.RLock()
	defer p.ledger.mu.RUnlock()
	if estimated {
		into.bytes[0] += p.ledger.counted[node.Node().Name]
	}
	for _, info := range node.GetPods() {
		pod := info.GetPod()
		if !asks(pod) || pod.UID == without {
			continue
		}
		e, known := p.ledger.pods[pod.UID]
		if !known {
			n, err := read(pod)
			if err != nil {
				return ReasonUnread, false
			}
			e.need = *n
			if pod.Spec.NodeName != "" {
				e.on, _ = parseDevices(pod.Annotations[args.PodGPUIndex])
			}
		}
		switch {
		case estimated:
			into.take(e.Bytes*int64(e.Devices), all(1)) // as it was counted
		case e.on != 0:
			into.take(e.Bytes, e.on)
		case pod.Spec.NodeName != "":
			// It is on some devices, and may be on any.
			into.take(e.Bytes, all(into.count))
		case w.count == maxWaiting:
			return ReasonWaiting, false
		default:
			w.pods[w.count] = e.need
			w.count++
		}
	}
	if p.whole(node) {
		return ReasonWhole, false
	}
	return "", false
}

// whole reports whether a pod that asks for no GPU memory holds whole devices.
func (p *Plugin) whole(node fwk.NodeInfo) bool {
	requested := node.GetRequested().GetScalarResources()
	for _, name := range p.args.WholeDeviceResources {
		held := requested[v1.ResourceName(name)]
		if held == 0 {
			continue
		}
		for _, info := range node.GetPods() {
			if asks(info.GetPod()) {
				held -= info.CalculateResource().Resource.GetScalarResources()[v1.ResourceName(name)]
			}
		}
		if held > 0 {
			return true
		}
	}
	return false
}
