package profile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
)

// The features that profiles are named after.
const (
	FeatureBalance = "balance"
	FeatureCache   = "cache"
	FeatureGang    = "gang"
	FeatureGPU     = "gpu"
	FeaturePack    = "pack"
	FeatureRaw     = "raw"
)

// pluginFeatures names our plugins in the names of profiles, and says what their
// scores count beside upstream's; 0 for those that do not score. Data that is warm
// counts as much as a node preference of the pod does by default.
var pluginFeatures = map[string]struct {
	feature string
	weight  int64
}{
	args.CacheLocality: {FeatureCache, 2},
	args.GPUMemory:     {FeatureGPU, 1},
	args.Gang:          {FeatureGang, 0},
}

// Plugin is the wish for a plugin of ours with the arguments that the policy
// says; what it does not say stays at its default, unless another policy says it.
// The names and values of arguments are those of package args, as JSON has them
// ({"timeout": "2m"}). The error is that of args.Decode.
func Plugin(name string, said map[string]any, reason string, origin Origin) (Wish, error) {
	data, err := json.Marshal(said)
	if err != nil {
		return Wish{}, fmt.Errorf("arguments of plugin %q: %w", name, err)
	}
	decoded, err := args.Decode(name, data)
	if err != nil {
		return Wish{}, err
	}
	// What is said is taken in its one form: "300s" is "5m0s".
	encoded, err := args.Encode(decoded)
	if err != nil {
		return Wish{}, err
	}
	var plain map[string]any
	if err := json.Unmarshal(encoded.Raw, &plain); err != nil {
		return Wish{}, fmt.Errorf("arguments of plugin %q: %w", name, err)
	}
	maps.DeleteFunc(plain, func(key string, _ any) bool { _, ok := said[key]; return !ok })
	of := pluginFeatures[name]
	w := Wish{Feature: of.feature, Reason: reason, Origin: origin, settings: []setting{on(name)}}
	if of.weight > 0 {
		w.settings = append(w.settings, setting{[]string{pathWeight, name}, of.weight})
	}
	w.settings = appendLeaves(w.settings, []string{pathArgs, name}, plain)
	return w, nil
}

func on(plugin string) setting  { return setting{[]string{pathEnabled, plugin}, true} }
func off(plugin string) setting { return setting{[]string{pathEnabled, plugin}, false} }

// The stock plugins that wishes speak of (pkg/scheduler/framework/plugins/names).
const (
	balancedAllocation = "NodeResourcesBalancedAllocation"
	imageLocality      = "ImageLocality"
	interPodAffinity   = "InterPodAffinity"
	nodeAffinity       = "NodeAffinity"
	resourcesFit       = "NodeResourcesFit"
	topologySpread     = "PodTopologySpread"
)

// Pack is the wish that pods fill nodes up, so that others stay empty. Resources
// maps the resources that count to their weights (1 to 100); nil for cpu and
// memory alike. UpTo is the percentage of a node's resources beyond which it is
// wanted less again; 0 for none.
//
// It displaces two scores that work against it. NodeResourcesBalancedAllocation
// gives an empty node its full score, since nothing is out of balance there. The
// constraints that PodTopologySpread adds by itself to pods which have none
// spread the pods of a Service or a ReplicaSet with twice the weight of
// NodeResourcesFit; those that the pod has itself still count. Every node is
// looked at, which takes longer in large clusters: the sample that upstream takes
// otherwise begins elsewhere for every pod, so that all nodes would get some.
func Pack(resources map[string]int, upTo int, reason string, origin Origin) Wish {
	strategy := []string{pathArgs, resourcesFit, "scoringStrategy"}
	w := Wish{Feature: FeaturePack, Ranks: true, Reason: reason, Origin: origin, settings: []setting{
		{below(strategy, "type"), "MostAllocated"},
		off(balancedAllocation),
		{[]string{pathArgs, topologySpread, "defaultingType"}, "List"},
		{[]string{pathArgs, topologySpread, "defaultConstraints"}, []any{}},
		everyNode(),
	}}
	if upTo > 0 {
		// The scores of a shape go from 0 to 10 (config.MaxCustomPriorityScore).
		point := func(utilization, score int) any {
			return map[string]any{"utilization": int64(utilization), "score": int64(score)}
		}
		w.settings[0].value = "RequestedToCapacityRatio"
		w.settings = append(w.settings, setting{
			below(strategy, "requestedToCapacityRatio", "shape"), []any{point(0, 0), point(upTo, 10), point(100, 0)},
		})
	}
	return w.withResources(below(strategy, "resources"), resources, false)
}

// Balance is the wish that pods go where the least is in use, and keep the shares
// of each resource alike. Resources are as for Pack.
//
// It displaces ImageLocality, which draws pods to the nodes that ran the same
// image before.
func Balance(resources map[string]int, reason string, origin Origin) Wish {
	strategy := []string{pathArgs, resourcesFit, "scoringStrategy"}
	w := Wish{Feature: FeatureBalance, Ranks: true, Reason: reason, Origin: origin, settings: []setting{
		{below(strategy, "type"), "LeastAllocated"}, on(balancedAllocation), off(imageLocality),
	}}
	w = w.withResources(below(strategy, "resources"), resources, false)
	return w.withResources([]string{pathArgs, balancedAllocation, "resources"}, resources, true)
}

// withResources adds the resources that a score counts; with equal, each with the
// weight 1, which is the only one that NodeResourcesBalancedAllocation takes
// (validation.ValidateNodeResourcesBalancedAllocationArgs).
func (w Wish) withResources(at []string, resources map[string]int, equal bool) Wish {
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		weight := int64(resources[name])
		if equal {
			weight = 1
		}
		w.settings = append(w.settings, setting{below(at, name), weight})
	}
	return w
}

// Score is a score of upstream's that a pod's own fields speak to.
type Score string

// The scores that can be made to win.
const (
	// NodeScore is that of preferred node affinity.
	NodeScore Score = nodeAffinity
	// SpreadScore is that of spread constraints with ScheduleAnyway.
	SpreadScore Score = topologySpread
	// PodScore is that of preferred pod affinity and anti-affinity.
	PodScore Score = interPodAffinity
)

var winFeatures = map[Score]string{NodeScore: "nodes-win", SpreadScore: "spread-wins", PodScore: "pods-win"}

// everyNode has all nodes scored. By default upstream stops once it has found
// enough that are possible, half of them in clusters of 100 nodes and a twentieth
// in the largest (numFeasibleNodesToFind in pkg/scheduler/schedule_one.go).
func everyNode() setting {
	return setting{[]string{pathFields, "percentageOfNodesToScore"}, int64(maxPercentage)}
}

const maxPercentage = 100

// MustWin is the wish that one point of the score outweighs all points of all
// other scores together, over all nodes. For PodScore that pods are where others require to be near
// them counts nothing (hardPodAffinityWeight). The preferences that other pods have
// about this one are part of the same score and cannot be taken out of it
// (ignorePreferredTermsOfExistingPods holds only for pods without any of their own).
func MustWin(score Score, reason string, origin Origin) Wish {
	w := Wish{Feature: winFeatures[score], Ranks: true, Reason: reason, Origin: origin, settings: []setting{
		on(string(score)), {[]string{pathWins, string(score)}, true}, everyNode(),
	}}
	if score == PodScore {
		w.settings = append(w.settings, setting{[]string{pathArgs, interPodAffinity, "hardPodAffinityWeight"}, int64(0)})
	}
	return w
}

// Wins returns the score that the wish is to make win, if it is of that kind.
func (w Wish) Wins() (Score, bool) {
	for _, s := range w.settings {
		if s.path[0] == pathWins {
			return Score(s.path[1]), true
		}
	}
	return "", false
}

// below returns the path with more at its end.
func below(path []string, more ...string) []string { return slices.Concat(path, more) }

// appendLeaves adds a setting for each leaf of a JSON object. A list is a leaf,
// but for one of resources with weights, which is a map by their names.
func appendLeaves(out []setting, path []string, v any) []setting {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 && len(path) > 2 {
			return append(out, setting{path, map[string]any{}})
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = appendLeaves(out, below(path, key), v[key])
		}
		return out
	case []any:
		if byName, ok := resourceWeights(path, v); ok {
			for _, name := range slices.Sorted(maps.Keys(byName)) {
				out = append(out, setting{below(path, name), byName[name]})
			}
			return out
		}
	case float64:
		if i := int64(v); float64(i) == v {
			return append(out, setting{path, i})
		}
	case json.Number:
		if i, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return append(out, setting{path, i})
		}
	case int:
		return append(out, setting{path, int64(v)})
	}
	return append(out, setting{path, v})
}

// isResources reports whether the path is that of a list of resources with
// weights, which is kept by their names.
func isResources(path []string) bool {
	return path[0] == pathArgs && path[len(path)-1] == "resources" && (path[1] == resourcesFit || path[1] == balancedAllocation)
}

// resourceWeights reads a list of resources; false if it is none, or names one
// twice.
func resourceWeights(path []string, list []any) (map[string]any, bool) {
	if !isResources(path) {
		return nil, false
	}
	out := map[string]any{}
	for _, e := range list {
		m, ok := e.(map[string]any)
		name, named := m["name"].(string)
		if _, twice := out[name]; !ok || !named || twice || len(m) > 2 {
			return nil, false
		}
		weight := int64(1)
		if w, said := m["weight"]; said {
			number := appendLeaves(nil, []string{pathArgs}, w)
			if weight, ok = number[0].value.(int64); !ok {
				return nil, false
			}
		}
		out[name] = weight
	}
	return out, len(out) > 0
}
