package workload

import "strings"

// kindRow is a row of the table of kinds as it is written down: paths are text.
type kindRow struct {
	names              []GroupKind
	templates          []templateRow
	replicas, selector string
	podLabels          map[string]string
	revision, run      string
	immutable          bool
	rollout            rolloutRule
	claims             bool
}

type templateRow struct {
	// sort names the template where a kind has several.
	sort string
	// spec is the path of the pod spec.
	spec string
	// when is what must be there for the template to be; empty for the pod spec
	// itself, or for nothing where there is none.
	when   string
	labels string
	// annotations is empty for those beside the pod spec.
	annotations string
	fields      map[Field]string
}

// parse parses the paths of a row that is known to be right.
func (r kindRow) parse() *kind {
	k := &kind{
		replicas: known(r.replicas), selector: known(r.selector), podLabels: r.podLabels,
		revision: r.revision, run: r.run, immutable: r.immutable, rollout: r.rollout, claims: r.claims,
	}
	for _, t := range r.templates {
		def := templateDef{sort: t.sort, spec: known(t.spec), when: known(t.when), labels: known(t.labels), annotations: known(t.annotations), fields: map[Field]pattern{}}
		// Beside a pod spec that is called "spec" there is the metadata of a pod
		// template; beside any other that is only a guess, good enough to read.
		template := len(def.spec) > 0 && def.spec[len(def.spec)-1].key == "spec"
		def.readOnly = len(def.labels) == 0 && !template
		if len(def.labels) == 0 && len(def.spec) > 0 {
			def.labels = def.spec.beside("metadata", "labels")
		}
		if len(def.annotations) == 0 && template {
			def.annotations = def.spec.beside("metadata", "annotations")
		}
		for f, p := range t.fields {
			def.fields[f] = known(p)
		}
		k.templates = append(k.templates, def)
	}
	return k
}

// beside is the pattern with other keys in place of its last part.
func (p pattern) beside(keys ...string) pattern {
	out := append(pattern{}, p[:len(p)-1]...)
	for _, k := range keys {
		out = append(out, part{key: k})
	}
	return out
}

// known parses a path that a test or check has parsed before; nil for none.
func known(text string) pattern {
	if text == "" {
		return nil
	}
	p, err := parsePattern(text)
	if err != nil {
		return nil
	}
	return p
}

func core(kinds ...string) []GroupKind { return inGroup("", kinds...) }

func inGroup(group string, kinds ...string) []GroupKind {
	out := make([]GroupKind, len(kinds))
	for i, k := range kinds {
		out[i] = GroupKind{group, k}
	}
	return out
}

// one is the only template of a kind, with the pod spec at a path.
func one(spec string) []templateRow { return []templateRow{{spec: spec}} }

// below gives the placement fields the paths that they have below a prefix.
func below(prefix string, fields ...Field) map[Field]string {
	out := map[Field]string{}
	for _, f := range fields {
		out[f] = prefix + "." + string(f)
	}
	return out
}

// at returns m with one field at a path of its own.
func at(m map[Field]string, f Field, path string) map[Field]string {
	m[f] = path
	return m
}

const (
	podTemplateHash        = "pod-template-hash"
	controllerRevisionHash = "controller-revision-hash"
	jobName                = "batch.kubernetes.io/job-name"
)

// builtinKinds is the table of the kinds that we know: those of Kubernetes, and
// the custom ones that come up most, with the fields that each can carry.
func builtinKinds() []kindRow {
	rows := append(kubernetesKinds(), customKinds()...)
	for _, row := range rows {
		for i := range row.templates {
			// Where a kind of ours takes labels for its pods, it takes annotations too.
			if t := &row.templates[i]; t.labels != "" && t.annotations == "" {
				t.annotations = strings.TrimSuffix(t.labels, "labels") + "annotations"
			}
		}
	}
	return rows
}

func kubernetesKinds() []kindRow {
	return []kindRow{
		{names: core("Pod"), templates: []templateRow{{spec: "spec", labels: "metadata.labels"}}, immutable: true},
		{names: core("ReplicationController"), templates: one("spec.template.spec"), replicas: "spec.replicas", selector: "spec.selector"},
		{names: inGroup("apps", "Deployment"), templates: one("spec.template.spec"), replicas: "spec.replicas", selector: "spec.selector", revision: podTemplateHash, rollout: deploymentRollout},
		{names: inGroup("apps", "ReplicaSet"), templates: one("spec.template.spec"), replicas: "spec.replicas", selector: "spec.selector"},
		{names: inGroup("apps", "StatefulSet"), templates: one("spec.template.spec"), replicas: "spec.replicas", selector: "spec.selector", revision: controllerRevisionHash, rollout: statefulSetRollout, claims: true},
		{names: inGroup("apps", "DaemonSet"), templates: one("spec.template.spec"), selector: "spec.selector", revision: controllerRevisionHash, rollout: daemonSetRollout},
		{names: inGroup("batch", "Job"), templates: one("spec.template.spec"), replicas: "spec.parallelism", selector: "spec.selector", podLabels: map[string]string{jobName: "{name}", "job-name": "{name}"}, immutable: true},
		{names: inGroup("batch", "CronJob"), templates: one("spec.jobTemplate.spec.template.spec"), replicas: "spec.jobTemplate.spec.parallelism", run: jobName},
	}
}
