package contain

import (
	"context"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"
)

// Options are what all guards of a process share.
type Options struct {
	// Metrics count what the plugins do.
	Metrics *Metrics
	// Budgets are how long calls may take.
	Budgets Budgets
	// Clock measures the calls.
	Clock clock.PassiveClock
}

// Guard contains one plugin of one profile.
type Guard struct {
	plugin, profile string
	// events tell of panics on the pod; nil where there are none, as in a
	// simulation.
	events events.EventRecorder
	// logger is for calls that come without a context.
	logger  klog.Logger
	options Options
}

// NewGuard returns the guard for the plugin in the profile that handle belongs
// to, which may be nil in a test. Calls that bring no logger of their own are
// logged with that of ctx.
func NewGuard(ctx context.Context, plugin string, handle fwk.Handle, options Options) *Guard {
	g := &Guard{plugin: plugin, logger: klog.FromContext(ctx), options: options}
	if handle != nil {
		g.profile = handle.ProfileName()
		if recorder := handle.EventRecorder(); recorder != nil {
			g.events = recorder
		}
	}
	return g
}

// Name is the name of the plugin.
func (g *Guard) Name() string { return g.plugin }

// New calls a plugin's factory: a panic is returned as an error.
func (g *Guard) New(ctx context.Context, factory func() (fwk.Plugin, error)) (plugin fwk.Plugin, err error) {
	m := g.meter(atFactory)
	defer m.error(ctx, m.now(), nil, &err)
	return factory()
}

// Handler contains an informer's handler: there is no pod to fail, so a panic is
// logged and counted, and that one event is lost to the plugin. Client-go would
// end the process.
func (g *Guard) Handler(ctx context.Context, inner cache.ResourceEventHandler) cache.ResourceEventHandler {
	m := g.meter(atHandler)
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			defer m.nothing(ctx, m.now(), nil)
			inner.OnAdd(object, initial)
		},
		UpdateFunc: func(before, after any) {
			defer m.nothing(ctx, m.now(), nil)
			inner.OnUpdate(before, after)
		},
		DeleteFunc: func(object any) {
			defer m.nothing(ctx, m.now(), nil)
			inner.OnDelete(object)
		},
	}
}
