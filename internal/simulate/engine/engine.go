package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-sched/kubectl-sched/internal/simulate/store"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/contain"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/plugins/gang"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/podgroup"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/queueing"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/registry"
)

// Options say how an engine decides.
type Options struct {
	// Profiles are those of the schedulers, with all defaults. They need not be
	// there for every pod: a pod that names another scheduler stays as it is.
	Profiles []config.KubeSchedulerProfile
	// Plugins are the plugins that the profiles may enable beside kube-scheduler's
	// own and Gang.
	Plugins []registry.Plugin
	// Seed decides between nodes that are equal in everything.
	Seed uint64
	// Workers is how many nodes are looked at side by side; 0 means one a processor.
	// It makes no difference to any result.
	Workers int
	// Explain keeps the reasons against the other nodes for pods that are placed,
	// too. It costs time for each node.
	Explain bool
	// Ties keeps which nodes a choice was tied with; otherwise they are counted alone.
	Ties bool
	// Exhaustive looks at every node anew for every pod, even where pods are equal
	// and nodes have not changed. It gives the same results, later.
	Exhaustive bool
	// AsConfigured has upstream choose among the nodes that it samples, as each profile
	// says, in the place of the best of all: one outcome of many.
	AsConfigured bool
	// Extenders are those of the schedulers' configurations, of which CallExtenders asks
	// those that are said to filter, score and preempt. It implies upstream's choice.
	Extenders     []Extender
	CallExtenders bool
	// Now is the time in the cluster; the zero time means the start of 2000.
	Now time.Time
	// Cycle is called at the end of each scheduling cycle with how many pods and groups
	// are to be tried at least; nil for nobody.
	Cycle func(waiting int)
	// Decider decides in the place of the seed; nil leaves it to the seed.
	Decider Decider
}

// Engine is a cluster and its scheduler. Make one with New and end it with Close.
// It may be used from one goroutine.
type Engine struct {
	store    *store.Store
	api      *api
	recorder *recorder
	sched    *scheduler.Scheduler
	chooser  *chooser
	clock    *clocktesting.FakeClock
	// groups makes the pod groups of labels and custom objects; nil where no profile
	// places gangs by them.
	groups *podgroup.Offline
	// ganged says which profiles read the labels that name gangs. Where a Decider
	// follows another scheduler, all of its profiles do: they are of one process.
	ganged func(scheduler string) bool
	// volumes bind the claims of pods; nil where a Decider is told what becomes of them.
	volumes *volumes
	heard   func(waiting int)
	end     context.CancelFunc

	cycle int
	// happened counts changes of the cluster, and failedAt is what it was when a pod
	// last failed.
	happened  uint64
	failedAt  map[types.UID]uint64
	attempts  []Attempt
	evictions []Eviction
	// known is how many entities are in the active queue at least.
	known int
	// look tells the Decider what the scheduler sees, once a cycle; nil without one.
	// looked is the last cycle that it was told of.
	look   func() error
	looked int
}

// New returns an engine with an empty cluster. The error is one of the profiles:
// a plugin that is not there, or arguments that it does not take.
func New(ctx context.Context, o Options) (*Engine, error) {
	if err := Gates(); err != nil {
		return nil, err
	}
	if len(o.Profiles) == 0 {
		return nil, errors.New("simulate without any scheduler profile: give at least one")
	}
	if o.Workers == 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Now.IsZero() {
		o.Now = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	e := &Engine{recorder: newRecorder(), clock: clocktesting.NewFakeClock(o.Now), failedAt: map[types.UID]uint64{}}
	e.api = newAPI(func() string { return e.store.NextVersion() })
	if e.heard = o.Cycle; e.heard == nil {
		e.heard = func(int) {}
	}
	e.api.wake = e.recorder.ask
	e.store = store.New(e.api.client)
	// What upstream logs about a pod that does not fit is what the engine reports.
	ctx, e.end = context.WithCancel(klog.NewContext(ctx, logr.Discard()))
	if err := e.wire(ctx, o); err != nil {
		e.end()
		return nil, err
	}
	return e, nil
}

// wire makes the scheduler.
func (e *Engine) wire(ctx context.Context, o Options) error {
	extra := o.Plugins
	if placesGangs(o.Profiles) {
		e.ganged = func(scheduler string) bool {
			return o.Decider != nil || placesGangs(slices.DeleteFunc(slices.Clone(o.Profiles), func(p config.KubeSchedulerProfile) bool { return p.SchedulerName != scheduler }))
		}
		e.groups = podgroup.NewOffline(e.clock)
		extra = append(slices.Clone(extra), registry.Plugin{Name: gang.Name, New: gang.New(e.groups.Groups(), gang.NewHolds(e.clock))})
	}
	plugins, err := registry.New(contain.Options{Metrics: contain.NewMetrics(), Budgets: contain.DefaultBudgets(), Clock: e.clock}, extra...)
	if err != nil {
		return err
	}
	if err := plugins.Register(recorderName, e.recorder.factory); err != nil {
		return err
	}
	if err := plugins.Register(preemptionName, newPreemption(seed(o.Seed), o.Decider, e.clock.Now)); err != nil {
		return err
	}
	var profiles, twins []config.KubeSchedulerProfile
	for _, p := range o.Profiles {
		p = adapted(p)
		if !o.AsConfigured {
			p.PercentageOfNodesToScore = nil
		}
		profiles = append(profiles, p)
		if !o.Exhaustive && !o.Explain && !o.upstream() {
			twins = append(twins, twin(p))
		}
	}
	snapshot := cache.NewEmptySnapshot()
	sampled := int32(100)
	if o.AsConfigured {
		sampled = config.DefaultPercentageOfNodesToScore
	}
	e.sched, err = scheduler.New(ctx, e.api.client, e.store.Factory(), nil,
		func(string) events.EventRecorderLogger { return &events.FakeRecorder{} },
		scheduler.WithProfiles(append(slices.Clone(profiles), twins...)...),
		scheduler.WithFrameworkOutOfTreeRegistry(plugins),
		scheduler.WithPercentageOfNodesToScore(&sampled),
		// Upstream's own loops must not depend on goroutines; the chooser has its own.
		scheduler.WithParallelism(1),
		scheduler.WithNodeInfoSnapshot(snapshot),
		scheduler.WithClock(e.clock),
		scheduler.WithExtenders(o.extenders()...),
	)
	if err != nil {
		return err
	}
	if e.groups != nil {
		queueing.LateMembers(e.sched)
	}
	e.chooser = newChooser(snapshot, seed(o.Seed), o.Workers)
	e.chooser.explain, e.chooser.ties = o.Explain, o.Ties
	e.chooser.decider = o.Decider
	if len(twins) > 0 {
		if e.chooser.fast, err = newFast(ctx, e.chooser, profiles, e.sched, plugins, e.store.Factory()); err != nil {
			return err
		}
		e.recorder.tried = func(node string) { e.chooser.layout.tried(node) }
	}
	if o.upstream() {
		e.asConfigured(o)
	} else {
		e.sched.SchedulePod = e.chooser.schedule
	}
	if o.Decider != nil {
		e.watched(o.Decider)
	} else if e.volumes, err = newVolumes(ctx, e.api.client, e.store.Factory(), o.Profiles); err != nil {
		return err
	}
	upstream := e.sched.FailureHandler
	e.sched.FailureHandler = func(ctx context.Context, f framework.Framework, pod *framework.QueuedPodInfo, status *fwk.Status, nominating *fwk.NominatingInfo, start time.Time) {
		// Members of a group that fail together are tried in this order again.
		e.clock.Step(time.Microsecond)
		e.failed(pod.Pod, status, nominating)
		upstream(ctx, f, pod, status, nominating, start)
		e.recorder.done(pod.Pod.UID)
	}
	context.AfterFunc(ctx, e.sched.SchedulingQueue.Close)
	return nil
}

// Close ends the engine. Nothing of it may be used after.
func (e *Engine) Close() { e.end() }

// Pod returns the pod as it is now, and false if there is none. Nobody may change
// it.
func (e *Engine) Pod(name types.NamespacedName) (*corev1.Pod, bool) {
	return store.Get(e.store, &corev1.Pod{}, name.Namespace, name.Name)
}

// GroupOf returns the name of the group of a pod of the cluster, also of one that the
// scheduler does not see in it because of a scheduling gate; empty for none.
func (e *Engine) GroupOf(pod *corev1.Pod) string {
	if e.groups == nil {
		return podgroup.NameOf(pod)
	}
	return e.groups.GroupOf(pod)
}

// Node returns the node of the name, and false if there is none. Nobody may change
// it.
func (e *Engine) Node(name string) (*corev1.Node, bool) {
	return store.Get(e.store, &corev1.Node{}, "", name)
}

// Find returns the object of the type, namespace and name of like, and false if
// there is none. Nobody may change it.
func Find[T store.Object](e *Engine, like T, namespace, name string) (T, bool) {
	return store.Get(e.store, like, namespace, name)
}

// Attempts returns what came of each try since the last call, in order.
func (e *Engine) Attempts() []Attempt {
	attempts := e.attempts
	e.attempts = nil
	return attempts
}

// Evictions returns the pods that preemption removed since the last call.
func (e *Engine) Evictions() []Eviction {
	evictions := e.evictions
	e.evictions = nil
	return evictions
}

// failed writes down that the pod was not placed.
func (e *Engine) failed(pod *corev1.Pod, status *fwk.Status, nominating *fwk.NominatingInfo) {
	attempt := e.chooser.attempt(pod)
	attempt.Cycle, attempt.Node, attempt.Choice = e.cycle, "", nil
	attempt.Message = status.Message()
	e.failedAt[pod.UID] = e.happened
	if nominating != nil {
		attempt.Nominated = nominating.NominatedNodeName
		e.chooser.nominate(pod.UID, attempt.Nominated)
	}
	e.attempts = append(e.attempts, attempt)
}

// errStuck is a queue that does not come to rest.
func (e *Engine) errStuck(rounds int) error {
	return fmt.Errorf("the simulated queue is not at rest after %d rounds, in each of which something happened; a plugin keeps waking pods that it then rejects", rounds)
}
