// Package inventory is an example of a scheduler plugin of one's own, in the
// bundled scheduler's binary: it keeps pods off nodes that an inventory lists as
// retired. The inventory answers slowly, as such systems do, and the plugin can ask
// it in the wrong place (for each node, in Filter) or in the right one (once a pod,
// in PreFilter).
//
// Extension points, and why:
//   - PreFilter asks once for all nodes, where Args.Ask says so.
//   - Filter rejects retired nodes; it asks for each node where Args.Ask says so.
//   - EventsToRegister wakes a rejected pod where a node comes back or is added.
//
// The package must not know the other plugins, nor what the inventory really is.
package inventory

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/contain"
)

// Name is the plugin's name in a KubeSchedulerConfiguration.
const Name = "Inventory"

// RetiredLabel stands in for the inventory: what it lists is on the nodes.
const RetiredLabel = "example.com/retired"

// ReasonRetired is why a node is rejected.
const ReasonRetired = "the inventory lists the node as retired"

// The values of Args.Ask.
const (
	AskPerPod  = "perPod"
	AskPerNode = "perNode"
)

// Args are the plugin's arguments.
type Args struct {
	// Ask says when the inventory is asked: AskPerPod (the default), once in
	// PreFilter, or AskPerNode, in Filter, which is the mistake to look at.
	Ask string `json:"ask"`
	// Latency is how long an answer takes, at most 1s; none if it is left out.
	Latency metav1.Duration `json:"latency"`
}

// decode reads the arguments strictly: what upstream would ignore is an error.
func decode(object runtime.Object) (*Args, error) {
	a := &Args{Ask: AskPerPod}
	if u, ok := object.(*runtime.Unknown); ok {
		if err := yaml.UnmarshalStrict(u.Raw, a); err != nil {
			return nil, fmt.Errorf("arguments of plugin %q: %w", Name, err)
		}
	}
	if !slices.Contains([]string{AskPerPod, AskPerNode}, a.Ask) {
		return nil, fmt.Errorf("arguments of plugin %q: ask is %q; write %q or %q", Name, a.Ask, AskPerPod, AskPerNode)
	}
	if a.Latency.Duration < 0 || a.Latency.Duration > time.Second {
		return nil, fmt.Errorf("arguments of plugin %q: latency is %s; write 0s to 1s", Name, a.Latency.Duration)
	}
	return a, nil
}

// Plugin is Inventory in one profile.
type Plugin struct {
	args  *Args
	clock clock.Clock
}

// contained has the extension points of Plugin: what is missing here is not called,
// and Wrap refuses a plugin that has others.
type contained struct {
	contain.Plugin
	contain.EnqueueExtensions
	contain.PreFilterPlugin
	contain.FilterPlugin
}

// New returns the plugin, contained: a panic fails the pod and not the scheduler,
// and slow calls are seen. The error is for arguments that are wrong.
func New(_ context.Context, object runtime.Object, _ fwk.Handle, guard *contain.Guard) (fwk.Plugin, error) {
	a, err := decode(object)
	if err != nil {
		return nil, err
	}
	return contain.Wrap[contained](guard, &Plugin{args: a, clock: clock.RealClock{}})
}

// Name returns Inventory.
func (*Plugin) Name() string { return Name }

// ask asks the inventory which of the nodes are retired.
func (p *Plugin) ask(nodes ...fwk.NodeInfo) retired {
	p.clock.Sleep(p.args.Latency.Duration)
	out := retired{}
	for _, n := range nodes {
		if n.Node().Labels[RetiredLabel] == "true" {
			out[n.Node().Name] = true
		}
	}
	return out
}

// retired are the names of the nodes that the inventory lists as retired.
type retired map[string]bool

// Clone returns r itself, which nothing changes once it is there.
func (r retired) Clone() fwk.StateData { return r }

const stateKey fwk.StateKey = Name

// PreFilter asks the inventory once, for all nodes.
func (p *Plugin) PreFilter(_ context.Context, state fwk.CycleState, _ *v1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if p.args.Ask == AskPerPod {
		state.Write(stateKey, p.ask(nodes...))
	}
	return nil, nil
}

// PreFilterExtensions returns nil: no other pod changes what the inventory lists.
func (*Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Filter rejects retired nodes.
func (p *Plugin) Filter(_ context.Context, state fwk.CycleState, _ *v1.Pod, node fwk.NodeInfo) *fwk.Status {
	list, _ := state.Read(stateKey)
	known, ok := list.(retired)
	if !ok {
		known = p.ask(node)
	}
	if known[node.Node().Name] {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, ReasonRetired)
	}
	return nil
}

// EventsToRegister lists what can make a rejected pod schedulable.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{{
		Event:          fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeLabel},
		QueueingHintFn: onNode,
	}}, nil
}

// onNode wakes the pod for a node that is not retired, or no longer.
func onNode(_ klog.Logger, _ *v1.Pod, before, after any) (fwk.QueueingHint, error) {
	node, ok := after.(*v1.Node)
	if !ok {
		return fwk.Queue, fmt.Errorf("event of a node brings a %T", after)
	}
	was, existed := before.(*v1.Node)
	if node.Labels[RetiredLabel] == "true" || existed && was != nil && was.Labels[RetiredLabel] != "true" {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}
