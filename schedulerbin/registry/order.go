package registry

import (
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

// names reports whether the plugin is in the list.
func names(list []config.Plugin, plugin string) bool {
	return slices.ContainsFunc(list, func(p config.Plugin) bool { return p.Name == plugin })
}
