package profile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
)

// The extension points of a KubeSchedulerConfiguration.
const (
	pointMulti              = "multiPoint"
	pointPreEnqueue         = "preEnqueue"
	pointQueueSort          = "queueSort"
	pointPreFilter          = "preFilter"
	pointFilter             = "filter"
	pointPostFilter         = "postFilter"
	pointPreScore           = "preScore"
	pointScore              = "score"
	pointReserve            = "reserve"
	pointPermit             = "permit"
	pointPreBind            = "preBind"
	pointBind               = "bind"
	pointPostBind           = "postBind"
	pointPlacementGenerate  = "placementGenerate"
	pointPlacementScore     = "placementScore"
	pointPodGroupPostFilter = "podGroupPostFilter"
)

const defaultBinder = "DefaultBinder"

// pluginPoints are the extension points of every plugin that the bundled scheduler
// has: upstream's, whose names are those of pkg/scheduler/framework/plugins/names,
// and ours. Only the framework could tell, which this package must not link; a
// test holds the table to it.
var pluginPoints = map[string][]string{
	"DefaultBinder":                   {pointBind},
	"DefaultPreemption":               {pointPreEnqueue, pointPostFilter, pointPodGroupPostFilter},
	"DeferredPodScheduling":           {pointPreFilter, pointFilter, pointPermit},
	"DynamicResources":                {pointPreEnqueue, pointPreFilter, pointFilter, pointPostFilter, pointScore, pointReserve, pointPreBind, pointPodGroupPostFilter},
	"GangScheduling":                  {pointPreEnqueue, pointPermit},
	"ImageLocality":                   {pointScore},
	"InterPodAffinity":                {pointPreFilter, pointFilter, pointPreScore, pointScore},
	"NodeAffinity":                    {pointPreFilter, pointFilter, pointPreScore, pointScore},
	"NodeDeclaredFeatures":            {pointPreFilter, pointFilter},
	"NodeName":                        {pointPreFilter, pointFilter},
	"NodePorts":                       {pointPreFilter, pointFilter},
	"NodeResourcesBalancedAllocation": {pointPreScore, pointScore},
	"NodeResourcesFit":                {pointPreFilter, pointFilter, pointPreScore, pointScore, pointPlacementScore},
	"NodeUnschedulable":               {pointPreFilter, pointFilter},
	"NodeVolumeLimits":                {pointPreFilter, pointFilter},
	"PodGroupPodsCount":               {pointPlacementScore},
	"PodTopologySpread":               {pointPreFilter, pointFilter, pointPreScore, pointScore},
	"PrioritySort":                    {pointQueueSort},
	"SchedulingGates":                 {pointPreEnqueue},
	"TaintToleration":                 {pointPreFilter, pointFilter, pointPreScore, pointScore},
	"TopologyPlacementGenerator":      {pointPlacementGenerate},
	"VolumeBinding":                   {pointPreFilter, pointFilter, pointPreScore, pointScore, pointReserve, pointPreBind},
	"VolumeRestrictions":              {pointPreFilter, pointFilter},
	"VolumeZone":                      {pointPreFilter, pointFilter},

	args.CacheLocality: {pointPreFilter, pointFilter, pointPreScore, pointScore, pointReserve},
	args.GPUMemory:     {pointPreFilter, pointFilter, pointPreScore, pointScore, pointReserve, pointPreBind},
	args.Gang:          {pointPreEnqueue, pointPreFilter, pointFilter, pointReserve, pointPermit, pointPostBind, pointPodGroupPostFilter},
}

// KnownPlugins returns the names of the plugins that the bundled scheduler has:
// upstream's and ours, sorted.
func KnownPlugins() []string { return slices.Sorted(maps.Keys(pluginPoints)) }

// Points returns the extension points at which the plugin does something, as a
// configuration names them; nil for a plugin that is not known.
func Points(plugin string) []string { return slices.Clone(pluginPoints[plugin]) }

// stock is what upstream does where a configuration says nothing.
type stock struct {
	// plugins are the default plugins in their order, and weights what their scores
	// count.
	plugins []string
	weights map[string]int64
	// args are the default arguments of each plugin, as a tree of settings, and
	// fields those of the whole configuration.
	args map[string]map[string]any
}

// defaults returns upstream's defaults, with the feature gates as they are by
// default. They are a constant of the version that we are built against.
var defaults = sync.OnceValue(func() stock {
	s, err := readDefaults()
	if err != nil {
		// Our own text, and upstream's own defaults: it is a defect of the build.
		panic(fmt.Sprintf("defaults of the scheduler: %v", err))
	}
	return s
})

func readDefaults() (stock, error) {
	s := stock{weights: map[string]int64{}, args: map[string]map[string]any{}}
	var c configv1.KubeSchedulerConfiguration
	scheme.Scheme.Default(&c)
	if len(c.Profiles) != 1 || c.Profiles[0].Plugins == nil {
		return s, fmt.Errorf("there are %d profiles by default, not one with plugins", len(c.Profiles))
	}
	for _, p := range c.Profiles[0].Plugins.MultiPoint.Enabled {
		s.plugins = append(s.plugins, p.Name)
		if scores(p.Name) {
			s.weights[p.Name] = 1
			if p.Weight != nil && *p.Weight > 0 {
				s.weights[p.Name] = int64(*p.Weight)
			}
		}
	}
	for _, pc := range c.Profiles[0].PluginConfig {
		tree, err := plain(pc.Args.Object)
		if err != nil {
			return s, fmt.Errorf("arguments of %s: %w", pc.Name, err)
		}
		s.args[pc.Name] = tree
	}
	for _, name := range args.Names() {
		a, err := args.Default(name)
		if err != nil {
			return s, err
		}
		encoded, err := args.Encode(a)
		if err != nil {
			return s, err
		}
		var tree map[string]any
		if err := json.Unmarshal(encoded.Raw, &tree); err != nil {
			return s, fmt.Errorf("arguments of %s: %w", name, err)
		}
		s.args[name] = tree
	}
	return s, nil
}

// plain returns the object as JSON values, without its apiVersion and kind.
func plain(o runtime.Object) (map[string]any, error) {
	data, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	if err := json.Unmarshal(data, &tree); err != nil {
		return nil, err
	}
	delete(tree, "apiVersion")
	delete(tree, "kind")
	return tree, nil
}

// scores reports whether the plugin scores nodes. One that is not known may.
func scores(plugin string) bool {
	points, known := pluginPoints[plugin]
	return !known || slices.Contains(points, pointScore)
}
