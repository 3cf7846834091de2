package registry

import (
	"fmt"
	"slices"

	config "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
)

// GangFirst puts Gang before DefaultPreemption among what comes after a pod group
// has failed, in the profiles that enable it by MultiPoint: where there is nobody
// to preempt, DefaultPreemption ends that list. A plugin that MultiPoint enables
// and a profile names at its point too comes before all that MultiPoint alone
// enables (pkg/scheduler/framework/runtime, expandMultiPointPlugins).
func GangFirst(profiles []config.KubeSchedulerProfile) {
	for _, profile := range profiles {
		if profile.Plugins == nil || !names(profile.Plugins.MultiPoint.Enabled, args.Gang) {
			continue
		}
		after := &profile.Plugins.PodGroupPostFilter
		if !names(after.Enabled, args.Gang) && !names(after.Disabled, args.Gang) && !names(after.Disabled, "*") {
			after.Enabled = append([]config.Plugin{{Name: args.Gang}}, after.Enabled...)
		}
	}
}

// GangSorts makes the plugin sort the queue of all profiles, since one process has
// one queue, and puts Gang first at PreFilter and PostFilter in those that enable it
// by MultiPoint: what it refuses then costs no other plugin's work, and
// DefaultPreemption makes no room for a part of a gang. It is for the scheduler whose
// Gang places members one by one. The error says which profile sorts the queue
// otherwise.
func GangSorts(profiles []config.KubeSchedulerProfile, plugin string) error {
	for i := range profiles {
		if profiles[i].Plugins == nil {
			profiles[i].Plugins = &config.Plugins{}
		}
		p := profiles[i].Plugins
		for _, sorts := range p.QueueSort.Enabled {
			if sorts.Name != prioritySort {
				return fmt.Errorf("profile %q: plugin %q sorts the queue, and where gangs are placed without the pod-group cycle %s does, in all profiles; take %q out of queueSort, or let the feature gate GenericWorkload be on", profiles[i].SchedulerName, sorts.Name, plugin, sorts.Name)
			}
		}
		p.QueueSort = config.PluginSet{Enabled: []config.Plugin{{Name: plugin}}, Disabled: []config.Plugin{{Name: prioritySort}}}
		if err := wholeGang(profiles[i].SchedulerName, p); err != nil {
			return err
		}
		if !names(p.MultiPoint.Enabled, args.Gang) {
			continue
		}
		for _, point := range []*config.PluginSet{&p.PreFilter, &p.PostFilter} {
			if !names(point.Enabled, args.Gang) {
				point.Enabled = append([]config.Plugin{{Name: args.Gang}}, point.Enabled...)
			}
		}
	}
	return nil
}

// wholeGang returns an error if the profile called name has Gang at some of its
// points only: members would be bound without the others, or wait for ever.
func wholeGang(name string, p *config.Plugins) error {
	whole := names(p.MultiPoint.Enabled, args.Gang)
	for _, point := range []struct {
		name string
		set  config.PluginSet
	}{
		{"preEnqueue", p.PreEnqueue},
		{"preFilter", p.PreFilter},
		{"filter", p.Filter},
		{"postFilter", p.PostFilter},
		{"reserve", p.Reserve},
		{"permit", p.Permit},
	} {
		enabled := names(point.set.Enabled, args.Gang)
		switch {
		case !whole && enabled:
			return fmt.Errorf("profile %q enables %s at %s alone, and without the pod-group cycle it needs all of its points; enable it under multiPoint", name, args.Gang, point.name)
		case whole && !enabled && (names(point.set.Disabled, args.Gang) || names(point.set.Disabled, "*")):
			return fmt.Errorf("profile %q disables %s at %s, and without the pod-group cycle it needs all of its points; leave it enabled there", name, args.Gang, point.name)
		}
	}
	return nil
}

// prioritySort is the plugin that sorts the queue by default.
const prioritySort = "PrioritySort"

// names reports whether the plugin is in the list.
func names(list []config.Plugin, plugin string) bool {
	return slices.ContainsFunc(list, func(p config.Plugin) bool { return p.Name == plugin })
}
