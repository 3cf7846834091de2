package engine

import (
	"maps"
	"slices"

	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
)

// nodeLocal are the plugins whose verdict and raw score of a node follow from the
// pod's own fields and the NodeInfo, so that they stay what they are until one of
// the two changes. Their NormalizeScore looks at nothing but the scores. A plugin
// that is not here may be among them only where it skips the pod.
var nodeLocal = map[string]bool{
	names.NodeName: true, names.NodeUnschedulable: true, names.NodeAffinity: true, names.NodePorts: true,
	names.TaintToleration: true, names.NodeResourcesFit: true, names.NodeResourcesBalancedAllocation: true,
	names.ImageLocality: true, names.NodeDeclaredFeatures: true,
	args.CacheLocality: true, args.GPUMemory: true,
}

// idleWhereSkipped are plugins that have nothing to say of a pod that they skip at
// Filter, although they run at Score: they give each node 0.
var idleWhereSkipped = []string{names.VolumeBinding, names.DynamicResources}

// acrossNodes are the plugins whose verdict of a node follows from pods on others
// as well, but only from those that their selectors match.
var acrossNodes = []string{names.PodTopologySpread, names.InterPodAffinity}

// twinSuffix makes the name of a profile that of its twin. No pod can name a
// scheduler so.
const twinSuffix = "\x00local"

// twin returns the profile without the plugins that look across nodes: what a
// class of equal pods can remember of nodes is what the twin says.
func twin(p config.KubeSchedulerProfile) config.KubeSchedulerProfile {
	p = *p.DeepCopy()
	p.SchedulerName += twinSuffix
	for _, set := range pluginSets(p.Plugins) {
		set.Enabled = slices.DeleteFunc(set.Enabled, func(e config.Plugin) bool { return slices.Contains(acrossNodes, e.Name) })
	}
	p.PluginConfig = slices.DeleteFunc(p.PluginConfig, func(c config.PluginConfig) bool { return slices.Contains(acrossNodes, c.Name) })
	return p
}

// undeclared returns the plugins of a point that are neither node-local nor look
// across nodes: all of them must skip a pod of a class.
func undeclared(enabled []config.Plugin) []string {
	found := map[string]bool{}
	for _, p := range enabled {
		if !nodeLocal[p.Name] && !slices.Contains(acrossNodes, p.Name) {
			found[p.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
