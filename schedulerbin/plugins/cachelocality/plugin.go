// Package cachelocality is the scheduler plugin CacheLocality: it prefers nodes
// that have a pod's datasets warm, and keeps the pod off nodes that are draining
// their cache. What pods and nodes say is described at args.CacheLocalityArgs.
//
// Extension points, and why:
//   - PreFilter reads the pod's datasets once, refuses what cannot be read, and
//     skips the pods that name none, so that nothing of ours runs per node.
//   - Filter rejects nodes that are draining their cache.
//   - PreScore skips the same pods for Score.
//   - Score is the share of the pod's data that the node has warm, by bytes where
//     the pod gives sizes, less the penalty of a hot node.
//   - NormalizeScore maps that to 0..100 so that a little warm data is never
//     rounded to none.
//   - Reserve and Unreserve count the pods placed on a node since what it says it
//     has warm last changed, for the penalty.
//   - SignPod: equal datasets, equal pods.
//   - EventsToRegister wakes a pod where a node stops draining or is added.
//
// The counts live in memory. After a restart or a change of leader every node
// starts at zero, which costs at most a few placements on a hot node.
//
// The package must not know policies, the compiler that writes what pods say, or how
// the caches come to be warm.
package cachelocality

import (
	"context"
	"fmt"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/contain"
)

// Name is the name of the plugin in a KubeSchedulerConfiguration.
const Name = args.CacheLocality

// ReasonDrained is why a node is rejected.
const ReasonDrained = "node is draining its cache"

// Plugin is CacheLocality in one profile.
type Plugin struct {
	args *args.CacheLocalityArgs
	// heat is nil where there is no penalty.
	heat *heat
}

var (
	_ fwk.PreFilterPlugin   = (*Plugin)(nil)
	_ fwk.FilterPlugin      = (*Plugin)(nil)
	_ fwk.PreScorePlugin    = (*Plugin)(nil)
	_ fwk.ScorePlugin       = (*Plugin)(nil)
	_ fwk.ScoreExtensions   = (*Plugin)(nil)
	_ fwk.ReservePlugin     = (*Plugin)(nil)
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
}

// Factory makes the plugin for each profile of one process. Profiles that read
// what is warm from the same keys share their counts: a node is hot whoever sent
// the pods.
type Factory struct {
	mu    sync.Mutex
	heats map[string]*heat
}

// New returns the plugin, contained. The error is for arguments that are wrong.
func (f *Factory) New(ctx context.Context, object runtime.Object, handle fwk.Handle, guard *contain.Guard) (fwk.Plugin, error) {
	a, err := args.FromObject[*args.CacheLocalityArgs](Name, object)
	if err != nil {
		return nil, err
	}
	p := &Plugin{args: a}
	if a.PenaltyPerPod > 0 {
		if p.heat, err = f.heat(ctx, a.WarmKeys, handle, guard); err != nil {
			return nil, fmt.Errorf("plugin %q: watch nodes: %w", Name, err)
		}
	}
	return contain.Wrap[contained](guard, p)
}

// heat returns the counts for the keys, which it begins if need be.
func (f *Factory) heat(ctx context.Context, keys []string, handle fwk.Handle, guard *contain.Guard) (*heat, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := strings.Join(keys, "\n")
	if h := f.heats[name]; h != nil {
		return h, nil
	}
	h := newHeat(keys)
	nodes := handle.SharedInformerFactory().Core().V1().Nodes().Informer()
	if _, err := nodes.AddEventHandler(guard.Handler(ctx, h.handler())); err != nil {
		return nil, err
	}
	if f.heats == nil {
		f.heats = map[string]*heat{}
	}
	f.heats[name] = h
	return h, nil
}

// Name returns the name of the plugin.
func (*Plugin) Name() string { return Name }

// stateKey is where PreFilter leaves the pod's datasets.
const stateKey fwk.StateKey = Name

// Clone returns d itself, which nothing changes once it is there.
func (d *datasets) Clone() fwk.StateData { return d }

// PreFilter reads the pod's datasets. A pod that names none is skipped; one whose
// datasets cannot be read cannot be scheduled until it is changed.
func (p *Plugin) PreFilter(_ context.Context, state fwk.CycleState, pod *v1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	d, err := p.read(pod)
	switch {
	case err != nil:
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	case d == nil:
		return nil, fwk.NewStatus(fwk.Skip)
	}
	state.Write(stateKey, d)
	return nil, nil
}

// PreFilterExtensions returns nil: no other pod changes what a node has warm.
func (*Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Filter rejects nodes that are draining their cache. It reads the pod itself
// rather than the state, so that a profile that enables this point alone works.
func (p *Plugin) Filter(_ context.Context, _ fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) *fwk.Status {
	if p.names(pod) && p.drained(node.Node()) {
		// Preempting pods does not stop the draining.
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, ReasonDrained)
	}
	return nil
}

// drained reports whether the node says that it is draining its cache. Any value
// but "false" says so: of a "yes" or "True" the careful reading is the safe one.
func (p *Plugin) drained(node *v1.Node) bool {
	for _, key := range p.args.DrainedKeys {
		if value, ok := node.Labels[key]; ok && value != "false" {
			return true
		}
	}
	return false
}

// PreScore skips the pods that name no datasets.
func (p *Plugin) PreScore(_ context.Context, state fwk.CycleState, pod *v1.Pod, _ []fwk.NodeInfo) *fwk.Status {
	if _, err := state.Read(stateKey); err == nil {
		return nil
	}
	// Either the pod names none, or the profile does not enable PreFilter.
	d, err := p.read(pod)
	if err != nil || d == nil {
		return fwk.NewStatus(fwk.Skip)
	}
	state.Write(stateKey, d)
	return nil
}

// wholly is the score of a node that has all of the pod's data warm, in hundredths
// of a point, and point is one of the 100 that the framework counts.
const (
	wholly = 100 * point
	point  = 100
)

// Score returns the share of the pod's data that the node has warm, less the
// penalty, from 0 to wholly.
func (p *Plugin) Score(_ context.Context, state fwk.CycleState, _ *v1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	data, err := state.Read(stateKey)
	if err != nil {
		return 0, fwk.AsStatus(fmt.Errorf("plugin %q: read the pod's datasets, which PreScore leaves (enable it beside Score): %w", Name, err))
	}
	d, ok := data.(*datasets)
	if !ok {
		return 0, fwk.AsStatus(fmt.Errorf("plugin %q: the state holds a %T", Name, data))
	}
	share := d.warm(node.Node(), p.args.WarmKeys)
	if share == 0 || p.heat == nil {
		return share, nil
	}
	return max(0, share-p.heat.placed(node.Node().Name)*p.args.PenaltyPerPod*point), nil
}

// ScoreExtensions returns the plugin.
func (p *Plugin) ScoreExtensions() fwk.ScoreExtensions { return p }

// NormalizeScore makes points of what Score returned. It does not stretch them:
// where the best node has a tenth of the data, the plugin has a tenth of its say.
func (*Plugin) NormalizeScore(_ context.Context, _ fwk.CycleState, _ *v1.Pod, scores fwk.NodeScoreList) *fwk.Status {
	for i := range scores {
		if raw := scores[i].Score; raw > 0 {
			scores[i].Score = max(1, raw/point)
		}
	}
	return nil
}

// reservedKey is where Reserve leaves the counter that it raised.
const reservedKey fwk.StateKey = Name + "/reserved"

// Reserve counts the pod on the node.
func (p *Plugin) Reserve(_ context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	if p.heat != nil && p.names(pod) {
		state.Write(reservedKey, p.heat.place(node))
	}
	return nil
}

// Unreserve takes back what Reserve counted, if it did.
func (*Plugin) Unreserve(_ context.Context, state fwk.CycleState, _ *v1.Pod, _ string) {
	data, err := state.Read(reservedKey)
	if err != nil {
		return // Reserve never ran, or this is the second Unreserve
	}
	if placed, ok := data.(*counter); ok {
		placed.pods.Add(-1)
	}
	state.Delete(reservedKey)
}

// SignPod says what about the pod makes a difference to the plugin: nothing, if
// it names no datasets.
func (p *Plugin) SignPod(_ context.Context, pod *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	d, err := p.read(pod)
	if err != nil {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	if d == nil {
		return nil, nil
	}
	return []fwk.SignFragment{{Key: Name, Value: d.sets}}, nil
}
