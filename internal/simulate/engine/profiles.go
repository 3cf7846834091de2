package engine

import (
	"slices"

	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/registry"
)

// adapted returns the profile as the engine runs it: the recorder reserves, binds
// and ends each pod, preemption is complete, and no plugin that acts on the world
// runs. The plugins that decide are those of the profile, in its order.
func adapted(p config.KubeSchedulerProfile) config.KubeSchedulerProfile {
	p = *p.DeepCopy()
	if p.Plugins == nil {
		p.Plugins = &config.Plugins{}
	}
	registry.GangFirst([]config.KubeSchedulerProfile{p})
	for _, set := range pluginSets(p.Plugins) {
		for i := range set.Enabled {
			if set.Enabled[i].Name == names.DefaultPreemption {
				set.Enabled[i].Name = preemptionName
			}
		}
	}
	for i := range p.PluginConfig {
		if p.PluginConfig[i].Name == names.DefaultPreemption {
			p.PluginConfig[i].Name = preemptionName
		}
	}
	recorder := config.Plugin{Name: recorderName}
	all := []config.Plugin{{Name: "*"}}
	p.Plugins.Reserve.Enabled = append(p.Plugins.Reserve.Enabled, recorder)
	p.Plugins.PreBind = config.PluginSet{Disabled: all, Enabled: acting(p.Plugins, names.DynamicResources)}
	p.Plugins.Bind = config.PluginSet{Disabled: all, Enabled: []config.Plugin{recorder}}
	p.Plugins.PostBind = config.PluginSet{Disabled: all, Enabled: append(acting(p.Plugins, args.Gang), recorder)}
	return p
}

// Weighted returns the profile with another weight of a Score plugin that it enables.
func Weighted(p Profile, plugin string, weight int64) Profile {
	p = *p.DeepCopy()
	if p.Plugins == nil {
		p.Plugins = &config.Plugins{}
	}
	// What is said of the point stands over what is said of all.
	for _, set := range []*config.PluginSet{&p.Plugins.MultiPoint, &p.Plugins.Score} {
		for i := range set.Enabled {
			if set.Enabled[i].Name == plugin {
				set.Enabled[i].Weight = int32(weight)
			}
		}
	}
	return p
}

// acting returns the plugin as an enabled one if the profile has it: its PreBind
// or PostBind changes nothing but what is simulated too.
func acting(plugins *config.Plugins, name string) []config.Plugin {
	for _, set := range pluginSets(plugins) {
		if slices.ContainsFunc(set.Enabled, func(p config.Plugin) bool { return p.Name == name }) {
			return []config.Plugin{{Name: name}}
		}
	}
	return nil
}

// pluginSets are the sets of plugins of a profile, multiPoint first.
func pluginSets(p *config.Plugins) []*config.PluginSet {
	return []*config.PluginSet{
		&p.MultiPoint, &p.PreEnqueue, &p.QueueSort, &p.PreFilter, &p.Filter, &p.PostFilter, &p.PreScore, &p.Score,
		&p.Reserve, &p.Permit, &p.PreBind, &p.Bind, &p.PostBind, &p.PodGroupPostFilter,
	}
}

// placesGangs reports whether any of the profiles enables the plugin Gang.
func placesGangs(profiles []config.KubeSchedulerProfile) bool {
	return slices.ContainsFunc(profiles, func(p config.KubeSchedulerProfile) bool {
		return p.Plugins != nil && acting(p.Plugins, args.Gang) != nil
	})
}
