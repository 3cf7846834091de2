package compiler

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-sched/kubectl-sched/compiler/nodeexpr"
	"github.com/kubectl-sched/kubectl-sched/compiler/profile"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
)

// The labels by which nodes speak of their caches, as CacheLocality reads them by
// default.
const (
	warmLabel    = "cache/warm-for"
	drainedLabel = "cache/drained"
)

// cacheWeight is what a warm node counts among the pod's preferred node affinity,
// where that is all that is needed.
const cacheWeight = 100

// prepareCache decides how a policy's cache is said: by node affinity where that
// says all of it, and else by the plugin.
func (c *compilation) prepareCache(r *rule) {
	if r.Cache == nil {
		return
	}
	lacks := affinityLacks(r.Cache)
	if lacks == "" {
		c.cacheByAffinity(r)
		return
	}
	said := map[string]any{}
	if p := r.Cache.PenaltyPerPod; p != nil {
		said["penaltyPerPod"] = *p
	}
	origin := r.author.origin("cache")
	r.cacheReason = "preferred node affinity cannot say it, because " + lacks + "; the plugin CacheLocality of the bundled scheduler can"
	wish, err := profile.Plugin(args.CacheLocality, said, r.cacheReason, profile.Origin(origin))
	if err != nil {
		c.report(finding{rule: "policy/cache", policy: r.Name, at: origin.Range, message: err.Error()})
		return
	}
	r.datasets = datasetList(r.Cache.Datasets)
	r.need(wish)
}

// affinityLacks says what node affinity cannot say of the cache, empty if it says
// all of it: then the value is fixed and nothing is counted.
func affinityLacks(c *policy.Cache) string {
	var reasons []string
	if len(c.Datasets) > 1 {
		reasons = append(reasons, fmt.Sprintf("it does not add up what a node has of %d datasets", len(c.Datasets)))
	}
	if c.PenaltyPerPod == nil || *c.PenaltyPerPod > 0 {
		reasons = append(reasons, "it does not count the pods that were placed on a warm node since (penaltyPerPod: 0 does without)")
	}
	if c.WarmBy != policy.WarmByLabel {
		reasons = append(reasons, "it does not see what nodes say by annotations (warmBy: \"label\" says that none does)")
	}
	for name := range c.Datasets {
		if len(validation.IsValidLabelValue(name)) > 0 {
			reasons = append(reasons, fmt.Sprintf("%q can be no label", name))
		}
	}
	return strings.Join(reasons, ", and ")
}

// cacheByAffinity prefers the nodes that have the one dataset warm, and forbids
// those that drain their cache.
func (c *compilation) cacheByAffinity(r *rule) {
	origin := r.author.origin("cache")
	for name := range r.Cache.Datasets {
		c.preferTerms(r, nodeexpr.In(nodeexpr.Label(warmLabel), name), cacheWeight, origin,
			"preferred node affinity says exactly this: one dataset, which a node has by its label or not, and no pods are counted", "")
	}
	drained := nodeexpr.Label(drainedLabel)
	absent, err := nodeexpr.Not(maxTerms, nodeexpr.Exists(drained))
	if err != nil {
		c.report(finding{rule: "compile/inexpressible", policy: r.Name, at: origin.Range, message: err.Error()})
		return
	}
	r.nodes.required = append(r.nodes.required, statement{
		expr: nodeexpr.Or(absent, nodeexpr.In(drained, "false")), path: []string{"cache"}, origin: origin, field: "cache",
	})
}

// datasetList writes datasets as pods name them.
func datasetList(datasets map[string]policy.Dataset) string {
	var parts []string
	for _, name := range sortedKeys(datasets) {
		if size := datasets[name].Size; size != "" {
			name += "=" + size
		}
		parts = append(parts, name)
	}
	return strings.Join(parts, ", ")
}

// gatherCache is the cache intent.
func gatherCache(d *draft, r *rule) {
	if r.datasets == "" {
		return
	}
	d.keys = append(d.keys, keyWish{
		field: workload.TemplateAnnotations, key: args.PodDatasets, value: r.datasets, level: LevelPlugin,
		reason: "tells CacheLocality which data the pods read; " + r.cacheReason, origin: r.author.origin("cache", "datasets"),
	})
}
