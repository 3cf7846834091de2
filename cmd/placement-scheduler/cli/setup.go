package cli

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	schedulerconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"
	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/utils/clock"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/contain"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/inflight"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/plugins/gang"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/plugins/gang/permit"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/podgroup"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/podstatus"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/queueing"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/recording"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/registry"
)

const (
	// writesAtOnce is how many writes of the scheduler are on their way at a time: fewer
	// than a connection takes (100), so that one is enough.
	writesAtOnce = 50
	// remarksAtOnce is how many statuses of pods, or events, are: what is said of pods
	// must not hold up the Bindings of others.
	remarksAtOnce = 4
)

// setup makes the scheduler that opts describe. Nothing of it runs yet.
func setup(ctx context.Context, opts *options.Options, extra *extraOptions) (*schedulerconfig.CompletedConfig, *scheduler.Scheduler, error) {
	peeked, err := peek(klog.FromContext(ctx), opts)
	if err != nil {
		return nil, nil, err
	}
	ownLease(opts, peeked)
	groups, err := prepareGroups(ctx, opts, peeked)
	if err != nil {
		return nil, nil, err
	}
	recorder, err := newRecorder(extra.recording)
	if err != nil {
		return nil, nil, err
	}
	// Only now: the default plugins follow from the feature gates.
	if opts.ComponentConfig, err = latest.Default(); err != nil {
		return nil, nil, err
	}
	if errs := opts.Validate(); len(errs) > 0 {
		return nil, nil, utilerrors.NewAggregate(errs)
	}
	prepared, err := opts.Config(ctx)
	if err != nil {
		return nil, nil, err
	}
	plugins := append(registry.Bundled(), extra.own...)
	var companions []func(context.Context)
	var gangs gangParts
	if groups.enabled() {
		engine, err := newEngine(ctx, prepared, groups)
		if err != nil {
			return nil, nil, err
		}
		statuses, err := useClients(ctx, prepared, engine)
		if err != nil {
			return nil, nil, err
		}
		legacyregistry.RawMustRegister(statuses)
		companions = append(companions, engine.Run, statuses.Run)
		gangs = gangPlugins(engine, groups, recorder)
		plugins = append(plugins, gangs.plugins...)
		companions = append(companions, gangs.run...)
	}
	if extra.gates {
		opener, err := newGates(ctx, prepared)
		if err != nil {
			return nil, nil, err
		}
		companions = append(companions, func(ctx context.Context) { runGates(ctx, opener) })
	}
	completed := prepared.Complete()
	if err := orderPlugins(completed.ComponentConfig.Profiles, groups); err != nil {
		return nil, nil, err
	}
	var recorded []scheduler.Option
	if recorder != nil {
		if err := scoreEveryNode(&completed.ComponentConfig); err != nil {
			return nil, nil, err
		}
		completed.Client = recorder.Client(completed.Client)
		recorded = append(recorded, scheduler.WithNodeInfoSnapshot(recorder.Snapshot()))
	}
	sched, profiles, err := newScheduler(ctx, &completed, plugins, recorded...)
	if err != nil {
		return nil, nil, err
	}
	if recorder != nil {
		recorder.Attach(sched)
	}
	gangs.attach(ctx, sched)
	for _, run := range companions {
		sched.SchedulingQueue = queueing.RunWith(ctx, sched.SchedulingQueue, run)
	}
	return &completed, sched, options.LogOrWriteConfig(klog.FromContext(ctx), opts.WriteConfigTo, &completed.ComponentConfig, profiles)
}

// gangParts is what places gangs.
type gangParts struct {
	plugins []registry.Plugin
	run     []func(context.Context) // beside the scheduler
	left    func(*corev1.Pod)       // is told of pods that have left their nodes; may be nil
	parts   queueing.Parts          // nil: those of pod groups, by the pod-group cycle
}

// attach puts what places gangs around the scheduler's queue.
func (g gangParts) attach(ctx context.Context, sched *scheduler.Scheduler) {
	if len(g.plugins) == 0 {
		return
	}
	if g.left != nil {
		sched.SchedulingQueue = queueing.TellOfRoom(sched.SchedulingQueue, g.left)
	}
	if g.parts == nil {
		queueing.LateMembers(sched)
		for _, profile := range sched.Profiles { // which have one manager
			g.parts = queueing.GroupParts(profile.PodGroupManager())
		}
	}
	sched.SchedulingQueue = queueing.PartsFirst(ctx, sched.SchedulingQueue, g.parts)
}

// gangPlugins returns what places gangs.
func gangPlugins(engine *podgroup.Engine, groups groups, recorder *recording.Recorder) gangParts {
	if groups.permit {
		state := permit.NewState(engine, clock.RealClock{})
		return gangParts{
			plugins: []registry.Plugin{
				{Name: permit.Name, New: permit.New(state)},
				{Name: permit.SortName, New: permit.NewSort(state)},
			},
			run:   []func(context.Context){state.Run},
			parts: state,
		}
	}
	holds := gang.NewHolds(clock.RealClock{})
	legacyregistry.RawMustRegister(holds)
	if recorder != nil {
		recorder.Holding(holds.Nodes)
	}
	return gangParts{plugins: []registry.Plugin{{Name: gang.Name, New: gang.New(engine, holds)}}, left: holds.Left}
}

// orderPlugins gives the plugins that place gangs their places in the profiles.
func orderPlugins(profiles []config.KubeSchedulerProfile, groups groups) error {
	if groups.permit {
		return registry.GangSorts(profiles, permit.SortName)
	}
	registry.GangFirst(profiles)
	return nil
}

// newEngine makes the source of pod groups and puts it into the informers of
// prepared.
func newEngine(ctx context.Context, prepared *schedulerconfig.Config, groups groups) (*podgroup.Engine, error) {
	instance, err := replica()
	if err != nil {
		return nil, err
	}
	dynamicClient, err := dynamic.NewForConfig(prepared.KubeConfig)
	if err != nil {
		return nil, err
	}
	metadataClient, err := metadata.NewForConfig(prepared.KubeConfig)
	if err != nil {
		return nil, err
	}
	// A client of its own, with its own limit of requests: what is said of gangs that
	// wait must not hold up the Bindings of those that do not.
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(rest.CopyConfig(prepared.KubeConfig), Name))
	if err != nil {
		return nil, err
	}
	engine := podgroup.New(podgroup.Options{
		Client: client, Dynamic: dynamicClient, Metadata: metadataClient,
		Native: groups.native, Virtual: groups.virtual, OneByOne: groups.permit, Reporter: Name, Instance: instance,
	})
	return engine, engine.Attach(ctx, prepared.InformerFactory)
}

// useClients gives the scheduler a client that leaves to the engine what is said of
// virtual groups, and to the queue that it returns what is said on their members.
// The queue has what the scheduler's own requests leave of their limit.
func useClients(ctx context.Context, prepared *schedulerconfig.Config, engine *podgroup.Engine) (*podstatus.Queue, error) {
	limiter := flowcontrol.NewFakeAlwaysRateLimiter()
	if prepared.KubeConfig.QPS > 0 {
		limiter = flowcontrol.NewTokenBucketRateLimiter(prepared.KubeConfig.QPS, prepared.KubeConfig.Burst)
	}
	limited := rest.AddUserAgent(rest.CopyConfig(prepared.KubeConfig), "scheduler") // as upstream's
	limited.RateLimiter = limiter
	limited.Wrap(inflight.Limit(writesAtOnce))
	client, err := kubernetes.NewForConfig(limited)
	if err != nil {
		return nil, err
	}
	unlimited := rest.CopyConfig(limited)
	unlimited.RateLimiter, unlimited.QPS = nil, -1
	unlimited.Wrap(inflight.Limit(remarksAtOnce)) // and with that of the others, which it is a copy of
	after, err := kubernetes.NewForConfig(unlimited)
	if err != nil {
		return nil, err
	}
	if err := useEventClient(ctx, prepared); err != nil {
		return nil, err
	}
	statuses := podstatus.New(podstatus.Options{
		Client: after, Limiter: limiter, Pods: prepared.InformerFactory.Core().V1().Pods().Lister(),
	})
	prepared.Client = statuses.Client(engine.Client(client))
	return statuses, nil
}

// useEventClient has events written a few at a time, those of the lease included.
func useEventClient(ctx context.Context, prepared *schedulerconfig.Config) error {
	few := rest.CopyConfig(prepared.KubeConfig)
	few.Wrap(inflight.Limit(remarksAtOnce))
	client, err := kubernetes.NewForConfig(few)
	if err != nil {
		return err
	}
	before := prepared.EventBroadcaster
	prepared.EventBroadcaster = events.NewEventBroadcasterAdapterWithContext(ctx, client)
	if prepared.LeaderElection != nil {
		lease, ok := prepared.LeaderElection.Lock.(*resourcelock.LeaseLock)
		if !ok {
			return fmt.Errorf("leader election by a %T, not by a lease", prepared.LeaderElection.Lock)
		}
		lease.LockConfig.EventRecorder = prepared.EventBroadcaster.DeprecatedNewLegacyRecorder(prepared.ComponentConfig.Profiles[0].SchedulerName)
	}
	before.Shutdown()
	return nil
}

// replica is what this replica is called in events.
func replica() (string, error) {
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("name this replica in events: %w", err)
	}
	return name, nil
}

// newScheduler makes the scheduler as upstream's command does, with the plugins and
// with more options, and returns the profiles that it came to with all defaults
// filled in.
func newScheduler(ctx context.Context, c *schedulerconfig.CompletedConfig, plugins []registry.Plugin, more ...scheduler.Option) (*scheduler.Scheduler, []config.KubeSchedulerProfile, error) {
	metrics := contain.NewMetrics()
	legacyregistry.RawMustRegister(metrics) // served at /metrics, beside upstream's
	outOfTree, err := registry.New(contain.Options{Metrics: metrics, Budgets: contain.DefaultBudgets(), Clock: clock.RealClock{}}, plugins...)
	if err != nil {
		return nil, nil, err
	}
	var profiles []config.KubeSchedulerProfile
	with := append([]scheduler.Option{
		scheduler.WithComponentConfigVersion(c.ComponentConfig.APIVersion),
		scheduler.WithKubeConfig(c.KubeConfig),
		scheduler.WithProfiles(c.ComponentConfig.Profiles...),
		scheduler.WithPercentageOfNodesToScore(c.ComponentConfig.PercentageOfNodesToScore),
		scheduler.WithFrameworkOutOfTreeRegistry(outOfTree),
		scheduler.WithPodMaxBackoffSeconds(c.ComponentConfig.PodMaxBackoffSeconds),
		scheduler.WithPodInitialBackoffSeconds(c.ComponentConfig.PodInitialBackoffSeconds),
		scheduler.WithPodMaxInUnschedulablePodsDuration(c.PodMaxInUnschedulablePodsDuration),
		scheduler.WithExtenders(c.ComponentConfig.Extenders...),
		scheduler.WithParallelism(c.ComponentConfig.Parallelism),
		scheduler.WithBuildFrameworkCapturer(func(p config.KubeSchedulerProfile) { profiles = append(profiles, p) }),
	}, more...)
	sched, err := scheduler.New(ctx, c.Client, c.InformerFactory, c.DynInformerFactory,
		func(name string) events.EventRecorderLogger { return c.EventBroadcaster.NewRecorder(name) }, with...)
	return sched, profiles, err
}

// discoveryClient returns a client for the API server that the scheduler will use.
func discoveryClient(opts *options.Options, peeked *config.KubeSchedulerConfiguration) (kubernetes.Interface, error) {
	c, err := clientcmd.BuildConfigFromFlags(opts.Master, peeked.ClientConnection.Kubeconfig)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(rest.AddUserAgent(c, Name))
}
