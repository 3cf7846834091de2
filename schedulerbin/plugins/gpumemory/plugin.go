// Package gpumemory is the scheduler plugin GPUMemory: it counts GPU memory by
// device, so that three pods of 12Gi never share one device of 24Gi. What pods
// and nodes say is described at args.PodGPUMemory and the keys beside it.
//
// Extension points, and why:
//   - PreFilter reads what the pod asks for once, refuses what cannot be read, and
//     skips the pods that ask for nothing, so that nothing of ours runs per node.
//   - Filter rejects nodes without enough free devices. What is used is derived
//     from the NodeInfo at hand, so that the victims of a preemption's dry run free
//     their devices; the ledger says only which pod is on which device.
//   - PreScore skips the same pods for Score.
//   - Score and NormalizeScore prefer the most or the least memory left over.
//   - Reserve chooses the devices in memory, and Unreserve gives them back: no
//     events, no I/O, since a group's preemption makes dozens of trials.
//   - PreBind writes the chosen indexes to the pod, before a container can start.
//   - SignPod: pods that ask for the same are the same.
//   - EventsToRegister wakes a pod where a pod with GPU memory goes, or a node says
//     that it has other memory.
//
// The package must not know policies, the compiler that writes what pods ask for, or
// the driver that carries out what it decides.
package gpumemory

import (
	"context"
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/contain"
)

// Name is the name of the plugin in a KubeSchedulerConfiguration.
const Name = args.GPUMemory

// Plugin is GPUMemory in one profile.
type Plugin struct {
	args   *args.GPUMemoryArgs
	ledger *ledger
	nodes  func() fwk.NodeInfoLister
	// nominated are the pods that are to come to a node.
	nominated func(node string) []fwk.PodInfo
	client    kubernetes.Interface
}

var (
	_ fwk.PreFilterPlugin   = (*Plugin)(nil)
	_ fwk.FilterPlugin      = (*Plugin)(nil)
	_ fwk.PreScorePlugin    = (*Plugin)(nil)
	_ fwk.ScorePlugin       = (*Plugin)(nil)
	_ fwk.ScoreExtensions   = (*Plugin)(nil)
	_ fwk.ReservePlugin     = (*Plugin)(nil)
	_ fwk.PreBindPlugin     = (*Plugin)(nil)
	_ fwk.SignPlugin        = (*Plugin)(nil)
	_ fwk.EnqueueExtensions = (*Plugin)(nil)
)

// contained has the extension points of Plugin.
type contained struct {
	contain.Plugin
	contain.EnqueueExtensions
	contain.SignPlugin
	contain.PreFilterPlugin
	contain.FilterPlugin
	contain.PreScorePlugin
	contain.ScorePlugin
	contain.ReservePlugin
	contain.PreBindPlugin
}

// Factory makes the plugin for each profile of one process. All profiles share
// one ledger, because they share the nodes: what one has reserved the others must
// know before it is bound.
type Factory struct {
	mu     sync.Mutex
	ledger *ledger
}

// New returns the plugin, contained. The error is for arguments that are wrong.
func (f *Factory) New(ctx context.Context, object runtime.Object, handle fwk.Handle, guard *contain.Guard) (fwk.Plugin, error) {
	a, err := args.FromObject[*args.GPUMemoryArgs](Name, object)
	if err != nil {
		return nil, err
	}
	p := &Plugin{
		args: a, client: handle.ClientSet(), nominated: handle.NominatedPodsForNode,
		nodes: func() fwk.NodeInfoLister { return handle.SnapshotSharedLister().NodeInfos() },
	}
	if p.ledger, err = f.shared(ctx, handle, guard); err != nil {
		return nil, fmt.Errorf("plugin %q: watch pods: %w", Name, err)
	}
	if len(a.FreeLabels) > 0 {
		// Each profile may read other labels. To count twice does no harm.
		nodes := handle.SharedInformerFactory().Core().V1().Nodes().Informer()
		if _, err := nodes.AddEventHandler(guard.Handler(ctx, p.ledger.nodeHandler(a.FreeLabels))); err != nil {
			return nil, fmt.Errorf("plugin %q: watch nodes: %w", Name, err)
		}
	}
	return contain.Wrap[contained](guard, p)
}

// shared returns the ledger, which follows the pods from the first call on.
func (f *Factory) shared(ctx context.Context, handle fwk.Handle, guard *contain.Guard) (*ledger, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ledger != nil {
		return f.ledger, nil
	}
	l := newLedger()
	pods := handle.SharedInformerFactory().Core().V1().Pods().Informer()
	if _, err := pods.AddEventHandler(guard.Handler(ctx, l.podHandler())); err != nil {
		return nil, err
	}
	f.ledger = l
	return l, nil
}

// Name returns the name of the plugin.
func (*Plugin) Name() string { return Name }

// stateKey is where PreFilter leaves what the pod asks for.
const stateKey fwk.StateKey = Name

// asked returns what the pod asks for, from the state or, in a profile that does
// not enable PreFilter, from the pod. It is nil if the pod asks for nothing.
func asked(state fwk.CycleState, pod *v1.Pod) (*need, error) {
	if data, err := state.Read(stateKey); err == nil {
		if n, ok := data.(*need); ok {
			return n, nil
		}
	}
	return read(pod)
}

// PreFilter reads what the pod asks for. A pod that asks for nothing is skipped;
// one that asks for what cannot be read cannot be scheduled until it is changed.
func (p *Plugin) PreFilter(_ context.Context, state fwk.CycleState, pod *v1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	n, err := read(pod)
	switch {
	case err != nil:
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	case n == nil:
		return nil, fwk.NewStatus(fwk.Skip)
	}
	state.Write(stateKey, n)
	return nil, nil
}

// PreFilterExtensions returns nil: Filter reads the NodeInfo as it is changed.
func (*Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// SignPod says what about the pod makes a difference to the plugin: nothing, if
// it asks for no GPU memory.
func (*Plugin) SignPod(_ context.Context, pod *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	n, err := read(pod)
	if err != nil {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	if n == nil {
		return nil, nil
	}
	return []fwk.SignFragment{{Key: Name, Value: *n}}, nil
}
