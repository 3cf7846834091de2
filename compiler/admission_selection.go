package compiler

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/compiler/admission"
	"github.com/kubectl-sched/kubectl-sched/compiler/cel"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

const useOtherSurface = "use the surface render or live for this policy"

// selects returns whom the policy selects: pods, and the templates of DaemonSets.
// What a pod does not show is reported at its place under path.
func (c *compilation) selects(r *rule, w policy.Workloads, negated bool, path ...string) admission.Selection {
	at := func(below ...string) []string { return append(slices.Clone(path), below...) }
	var s admission.Selection
	c.demandKinds(&s, r, w, at)
	if !negated && !slices.Contains(w.Namespaces, systemNamespace) && (w.Namespaces == nil || slices.ContainsFunc(w.Namespaces, isGlob)) {
		s.Condition(admission.Namespace + " != " + cel.Quote(systemNamespace))
	}
	if w.Namespaces != nil {
		s.Demand(admission.OfNamespace, "", w.Namespaces)
	}
	demandLabels(&s, admission.OfNamespaceLabels, w.NamespaceLabels)
	if w.Names != nil {
		s.Demand(admission.OfName, "", w.Names)
	}
	if len(w.Labels) > 0 {
		if !showsLabels(w.Kinds) {
			c.inexpressible(r, at("labels"), "a pod does not show the labels of the object that made it; select by pods: labels, or by names, or "+useOtherSurface)
		}
		demandLabels(&s, admission.OfObjectLabels, w.Labels)
	}
	if w.Pods != nil {
		demandLabels(&s, admission.OfLabels, w.Pods.Labels)
	}
	if w.Templates != nil {
		s.Condition(c.templateCondition(r, w, at))
	}
	if w.Not != nil {
		s.Condition(cel.Not(c.selects(r, *w.Not, true, at("not")...).Text()))
	}
	return s
}

func demandLabels(s *admission.Selection, source admission.Source, want map[string]policy.Values) {
	for _, key := range sortedKeys(want) {
		s.Demand(source, key, want[key])
	}
}

func (c *compilation) inexpressible(r *rule, path []string, message string) {
	c.report(finding{rule: "compile/inexpressible", policy: r.Name, at: r.author.at(path...), message: message})
}

// showsLabels reports whether the kinds are all such that the object which is
// admitted is the workload itself.
func showsLabels(kinds []string) bool {
	itself := []string{"Pod", "core/Pod", "DaemonSet", "apps/DaemonSet"}
	return len(kinds) > 0 && !slices.ContainsFunc(kinds, func(k string) bool { return !slices.Contains(itself, k) })
}

// throughOthers are the kinds whose pods are made by something in between, which
// is all that a pod shows.
var throughOthers = map[string]string{
	"jobset.x-k8s.io/JobSet": "a Job", "ray.io/RayJob": "a RayCluster", "ray.io/RayService": "a RayCluster",
	"leaderworkerset.x-k8s.io/LeaderWorkerSet": "a StatefulSet", "serving.knative.dev/Service": "a Deployment",
	"trainer.kubeflow.org/TrainingRuntime": "a Job", "kafka.strimzi.io/Kafka": "a StrimziPodSet", "kafka.strimzi.io/KafkaNodePool": "a StrimziPodSet",
	"kafka.strimzi.io/KafkaConnect": "a StrimziPodSet", "kafka.strimzi.io/KafkaMirrorMaker2": "a StrimziPodSet", "kafka.strimzi.io/KafkaBridge": "a Deployment",
	"postgresql.cnpg.io/Pooler": "a Deployment", "acid.zalan.do/postgresql": "a StatefulSet",
	"elasticsearch.k8s.elastic.co/Elasticsearch": "a StatefulSet", "kibana.k8s.elastic.co/Kibana": "a Deployment",
	"opensearch.opster.io/OpenSearchCluster": "a StatefulSet", "monitoring.coreos.com/Prometheus": "a StatefulSet",
	"monitoring.coreos.com/PrometheusAgent": "a StatefulSet", "monitoring.coreos.com/Alertmanager": "a StatefulSet",
	"monitoring.coreos.com/ThanosRuler": "a StatefulSet", "tekton.dev/PipelineRun": "a TaskRun", "argoproj.io/CronWorkflow": "a Workflow",
}

// demandKinds demands that the pod's workload is of one of the kinds.
func (c *compilation) demandKinds(s *admission.Selection, r *rule, w policy.Workloads, at func(...string) []string) {
	if w.Kinds == nil {
		return
	}
	patterns := kindPatterns(w.Kinds)
	selected := func(group, kind string) bool {
		return slices.ContainsFunc(patterns, func(k kindPattern) bool { return k.matches(group, kind) })
	}
	if selected("batch", "CronJob") != selected("batch", "Job") {
		c.inexpressible(r, at("kinds"), "a pod shows the Job that made it, and not whether a CronJob made that; select both kinds, Job and CronJob, or "+useOtherSurface)
	}
	var bare, full, others []string
	for i, k := range patterns {
		for _, name := range sortedKeys(throughOthers) {
			group, kind, _ := strings.Cut(name, "/")
			if !k.kind.glob && k.matches(group, kind) && (k.group != nil || kind != "Service") {
				c.inexpressible(r, at("kinds", strconv.Itoa(i)), fmt.Sprintf("a pod shows its immediate owner alone, and those of a %s are made by %s; select by pods: labels, or %s", kind, throughOthers[name], useOtherSurface))
			}
		}
		switch {
		case k.group == nil:
			bare = append(bare, k.kind.text)
		case k.coreOnly:
			full = append(full, k.kind.text)
			fallthrough
		case !k.group.glob && !k.kind.glob:
			full = append(full, k.group.text+"/"+k.kind.text)
		default:
			others = append(others, cel.And(cel.Matches("variables.group", []string{k.group.text}), cel.Matches("variables.kind", []string{k.kind.text})))
		}
	}
	switch {
	case len(others)+len(full) == 0:
		s.Demand(admission.OfKind, "", bare)
		return
	case len(others)+len(bare) == 0:
		s.Demand(admission.OfGroupKind, "", full)
		return
	}
	if len(bare) > 0 {
		others = append(others, cel.Matches("variables.kind", bare))
	}
	if len(full) > 0 {
		others = append(others, cel.Matches("variables.groupKind", full))
	}
	s.Condition(cel.Or(others...))
}

// templateCondition says whether the pod is of one of the templates: by the
// label in which the kind's controller says so.
func (c *compilation) templateCondition(r *rule, w policy.Workloads, at func(...string) []string) string {
	patterns := kindPatterns(w.Kinds)
	var either []string
	for _, k := range c.kindTable() {
		selected := w.Kinds == nil || slices.ContainsFunc(patterns, func(p kindPattern) bool { return p.matches(k.group, k.kind) })
		switch {
		case !selected:
		case k.templateLabel != "":
			values := w.Templates
			if k.lower {
				values = make([]string, len(w.Templates))
				for i, v := range w.Templates {
					values[i] = strings.ToLower(v)
				}
			}
			either = append(either, cel.And("variables.groupKind == "+cel.Quote(groupKind(k.group, k.kind)), cel.Label(admission.Labels, k.templateLabel, values)))
		case k.several && w.Kinds != nil:
			c.inexpressible(r, at("templates"), fmt.Sprintf("the pods of a %s do not show by a label which template they are of; select by pods: labels, or %s", k.kind, useOtherSurface))
		case !k.several && anyMatches(patternsOf(w.Templates), ""):
			either = append(either, "variables.groupKind == "+cel.Quote(groupKind(k.group, k.kind)))
		}
	}
	if w.Kinds == nil {
		c.inexpressible(r, at("templates"), "whether a pod shows which template it is of depends on its kind; say kinds as well, or "+useOtherSurface)
	}
	return cel.Or(either...)
}

func patternsOf(texts []string) []pattern { return patterns(texts) }

func groupKind(group, kind string) string {
	if group == "" {
		return kind
	}
	return group + "/" + kind
}

// kindFacts is what the pods of a kind show.
type kindFacts struct {
	group, kind   string
	labels        []string
	match         string
	templateLabel string
	// lower says that the label has the template's name in small letters.
	lower   bool
	several bool
}

type kindTable []kindFacts

// kindTable returns the kinds that are known, those that the document teaches
// included, sorted.
func (c *compilation) kindTable() kindTable {
	byName := map[string]*kindFacts{}
	describe := func(group, kind string, podLabels map[string]string, several bool) *kindFacts {
		name := groupKind(group, kind)
		k := byName[name]
		if k == nil {
			k = &kindFacts{group: group, kind: kind}
			byName[name] = k
		}
		k.several = several
		for _, label := range sortedKeys(podLabels) {
			if !slices.Contains(k.labels, label) {
				k.labels = append(k.labels, label)
			}
			switch podLabels[label] {
			case "{template}":
				k.templateLabel, k.lower = label, false
			case "{template:lower}":
				k.templateLabel, k.lower = label, true
			}
		}
		slices.Sort(k.labels)
		return k
	}
	for _, d := range workload.DescribeKinds() {
		for _, gk := range d.Kinds {
			several := len(d.Templates) > 1 || strings.Contains(d.Templates[0].Path+d.Templates[0].When, "*")
			k := describe(gk.Group, gk.Kind, d.PodLabels, several)
			if hasReplicaSets(&workload.Workload{Group: gk.Group, Kind: gk.Kind}) {
				k.match = d.RevisionLabel
			}
			if d.RunLabel != "" {
				k.match = d.RunLabel
			}
		}
	}
	for _, d := range c.Placement.Kinds {
		group, kind, _ := strings.Cut(d.Name, "/")
		several := len(d.Templates) > 1
		for _, t := range d.Templates {
			several = several || strings.Contains(t.Path, "*")
		}
		describe(group, kind, d.PodLabels, several)
	}
	var out kindTable
	for _, name := range sortedKeys(byName) {
		out = append(out, *byName[name])
	}
	return out
}

// rows returns the table as the admission policy needs it: without the kinds that
// no pod shows.
func (t kindTable) rows() []admission.Kind {
	var out []admission.Kind
	for _, k := range t {
		row := admission.Kind{Group: k.group, Kind: k.kind, Labels: k.labels}
		if k.match != "" {
			row.MatchKeys = []string{k.match}
		}
		if _, never := throughOthers[groupKind(k.group, k.kind)]; !never && len(row.Labels)+len(row.MatchKeys) > 0 {
			out = append(out, row)
		}
	}
	return out
}
