// Package registry is the one list of the plugins that the bundled scheduler
// adds to kube-scheduler's own. The scheduler and the simulator both build their
// framework registry from it, so that what is simulated is what runs.
//
// A user's own plugin joins the list the same way:
//
//	registry.New(options, append(registry.Bundled(), registry.Plugin{Name: "Mine", New: mine.New})...)
//
// Every plugin runs contained: its factory is given a guard, and what it returns
// is wrapped by it (see package contain). The package must not know who asks.
package registry

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/contain"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/plugins/cachelocality"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/plugins/gpumemory"
)

// Factory makes a plugin for one profile. The object are its arguments, nil
// where the configuration has none. It returns the plugin wrapped by contain.Wrap
// with the guard, and watches through guard.Handler.
type Factory func(ctx context.Context, object runtime.Object, handle fwk.Handle, guard *contain.Guard) (fwk.Plugin, error)

// Plugin is one plugin that can be enabled by its name.
type Plugin struct {
	Name string
	New  Factory
}

// Bundled returns the plugins of this project that need nothing but a framework,
// in the order of their names. Gang is not among them: it needs an engine that is
// chosen when the program starts, and is added by it. What the profiles of one
// process share, such as which pod is on which device, hangs on the list: a
// program calls Bundled once.
func Bundled() []Plugin {
	return []Plugin{
		{cachelocality.Name, new(cachelocality.Factory).New},
		{gpumemory.Name, new(gpumemory.Factory).New},
	}
}

// New returns the registry of the plugins, each contained with the options, for
// scheduler.WithFrameworkOutOfTreeRegistry. A name that is there twice, or that
// is one of kube-scheduler's own, is an error here rather than at the merge.
func New(options contain.Options, list ...Plugin) (frameworkruntime.Registry, error) {
	registry := frameworkruntime.Registry{}
	inTree := plugins.NewInTreeRegistry()
	for _, p := range list {
		if _, ok := inTree[p.Name]; ok {
			return nil, fmt.Errorf("plugin %q has the name of one of kube-scheduler's own; give it another", p.Name)
		}
		if err := registry.Register(p.Name, contained(p, options)); err != nil {
			return nil, fmt.Errorf("plugin %q is there twice: %w", p.Name, err)
		}
	}
	return registry, nil
}

// contained is the plugin's factory as the framework calls it.
func contained(p Plugin, options contain.Options) frameworkruntime.PluginFactory {
	return func(ctx context.Context, object runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		guard := contain.NewGuard(ctx, p.Name, handle, options)
		return guard.New(ctx, func() (fwk.Plugin, error) {
			plugin, err := p.New(ctx, object, handle, guard)
			if err != nil {
				return nil, err
			}
			if !contain.IsContained(plugin) {
				return nil, fmt.Errorf("plugin %q returned a %T, which is not contained; return what contain.Wrap returns", p.Name, plugin)
			}
			if plugin.Name() != p.Name {
				return nil, fmt.Errorf("plugin %q says that its name is %q, and the framework goes by that", p.Name, plugin.Name())
			}
			return plugin, nil
		})
	}
}
