package engine

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
)

// recorderName is the name of recorder in a profile.
const recorderName = "SimulationRecorder"

// recorder binds pods by writing down where they go, and knows which pods are on
// their way: reserved, but neither bound nor given up. It may be used from several
// goroutines at once.
type recorder struct {
	mu      sync.Mutex
	changed *sync.Cond
	under   map[types.UID]bool // reserved for good, not bound yet
	bound   []binding
	asked   bool // somebody waits for the engine
	// tried is told of each node on which a trial reserves, or gives up, a seat.
	tried func(node string)
}

// binding is a pod that was bound, with what its plugins know of it.
type binding struct {
	pod   *corev1.Pod
	node  string
	state fwk.CycleState
}

var (
	_ fwk.ReservePlugin  = &recorder{}
	_ fwk.BindPlugin     = &recorder{}
	_ fwk.PostBindPlugin = &recorder{}
)

func newRecorder() *recorder {
	r := &recorder{under: map[types.UID]bool{}, tried: func(string) {}}
	r.changed = sync.NewCond(&r.mu)
	return r
}

// factory returns the recorder for each profile.
func (r *recorder) factory(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return r, nil
}

// Name returns the name of the plugin.
func (*recorder) Name() string { return recorderName }

// Reserve notes that the pod is under way. A trial of a group binds nothing.
func (r *recorder) Reserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	if state.IsPodGroupSchedulingCycle() {
		r.tried(node)
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.under[pod.UID] = true
	return nil
}

// Unreserve notes the end of a trial. For other pods it leaves it to FailureHandler
// to say that they are not under way any more: what upstream does for a pod that
// failed is not over yet.
func (r *recorder) Unreserve(_ context.Context, state fwk.CycleState, _ *corev1.Pod, node string) {
	if state.IsPodGroupSchedulingCycle() {
		r.tried(node)
	}
}

// Bind writes down where the pod goes.
func (r *recorder) Bind(_ context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bound = append(r.bound, binding{pod, node, state})
	return nil
}

// PostBind is the last that happens to a pod that is bound.
func (r *recorder) PostBind(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) {
	r.done(pod.UID)
}

// done says that nothing more happens to the pod in the background.
func (r *recorder) done(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.under, uid)
	r.changed.Broadcast()
}

// ask has whoever waits in settle serve.
func (r *recorder) ask() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = true
	r.changed.Broadcast()
}

// settle waits until no pod is under way but those for which waits is true, which
// wait for others, and returns what was bound since. Meanwhile it serves those who
// ask.
func (r *recorder) settle(waits func(types.UID) bool, serve func()) []binding {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.busy(waits) {
		if !r.asked {
			r.changed.Wait()
			continue
		}
		r.asked = false
		r.mu.Unlock()
		serve()
		r.mu.Lock()
	}
	bound := r.bound
	r.bound = nil
	return bound
}

func (r *recorder) busy(waits func(types.UID) bool) bool {
	for uid := range r.under {
		if !waits(uid) {
			return true
		}
	}
	return false
}
