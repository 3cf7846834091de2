// Package workload finds the pod templates in Kubernetes objects: in files, a
// kustomization, standard input or a cluster.
//
// It maps every kind that makes pods, built in or taught by a table of paths,
// to a Workload with its templates, the placement fields each can carry, and
// where each was written. It must not know policies or what is compiled into
// the templates.
package workload

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Workload is one object with at least one pod template.
type Workload struct {
	Group, Version, Kind string
	// Namespace is never empty for a namespaced kind: the reader fills in the
	// default that it was given.
	Namespace, Name string
	// NamespaceUnsaid says that neither the object nor who read it named the
	// namespace, which is "default" for want of another.
	NamespaceUnsaid bool
	// Labels and Annotations are the object's own; read only.
	Labels, Annotations map[string]string
	// UID, ResourceVersion and Owners are set for objects from a cluster.
	UID, ResourceVersion string
	// Controller is "Kind/name" of the controlling owner, or empty.
	Controller string
	// Replicas is how many pods the object asks for; nil where it does not say.
	Replicas *int32
	// Rollout is how the object replaces its pods; nil where it does not.
	Rollout *Rollout
	// Selector is the object's own pod selector, or nil.
	Selector *Selector
	// Templates are the pod templates, in the order of the kind's table and
	// then of the object.
	Templates []Template
	// Record is what an earlier run of ours says it owns in the object; nil if
	// it owns nothing.
	Record *ownership.Record
	// Remembered says that the live object has no such annotation any more, and
	// that Record, as well as the annotation in Object, comes from the state of
	// the set.
	Remembered bool
	// Object is the whole object as it was read, ours included; read only.
	Object map[string]any
	// Source is where it came from.
	Source Source
}

// Ref names the workload for people and as a stable key:
// "Kind namespace/name", with the group where the kind is not built in.
func (w *Workload) Ref() string {
	kind := w.Kind
	if !builtinGroups[w.Group] {
		kind += "." + w.Group
	}
	if w.Namespace == "" {
		return kind + " " + w.Name
	}
	return kind + " " + w.Namespace + "/" + w.Name
}

var builtinGroups = map[string]bool{"": true, "apps": true, "batch": true}

// Rollout is how a Deployment, StatefulSet or DaemonSet replaces its pods.
// Both numbers are resolved against Replicas, by the controller's own rounding.
type Rollout struct {
	Strategy                 string
	MaxSurge, MaxUnavailable int32
}

// Selector is a label selector with its place in the object.
type Selector struct {
	MatchLabels      map[string]string
	MatchExpressions []Expression
}

// Expression is one requirement of a label selector.
type Expression struct {
	Key, Operator string
	Values        []string
}

// Template is one pod template of a workload.
type Template struct {
	// Name tells the templates of one object apart; empty for the kinds that
	// have one.
	Name string
	// Labels are those that pods of the template will have without us: the
	// template's own and, under PodLabels, what the kind's controller adds.
	Labels map[string]string
	// PodLabels are labels that the controller puts on the pods by itself and
	// that are known beforehand, such as batch.kubernetes.io/job-name.
	PodLabels map[string]string
	// RevisionLabel is the label that tells the pods of one revision from those
	// of the next ("pod-template-hash"), or empty where the kind has none.
	RevisionLabel string
	// RunLabel is the label that tells one run's pods from another's (of a
	// CronJob), or empty.
	RunLabel string
	// Paths are the placement fields that the template can carry, and where;
	// PathOf knows which parts of the affinity, too.
	Paths map[Field]Path
	// parts are the paths of the parts of the affinity, for the kinds that have
	// them in different places; then Paths has their common parent.
	parts map[Field]Path
	// PodSpec is the path of the whole pod spec; nil where the kind carries
	// only the fields in Paths.
	PodSpec Path
	// containers are the containers of the pod spec, those that come first before
	// the others; none where the kind does not carry them.
	containers []container
	// Pods is the placement as the manifest has it without us: what our Record
	// says is ours is taken away.
	Pods PodFields
	// Current is the placement as the object has it now, ours included.
	Current PodFields
	// ServiceAccount is the pods' service account ("default" if not said).
	ServiceAccount string
	// Claims are the names of the PersistentVolumeClaims that the pods mount.
	Claims []string
	// Count is how many pods the template has at a time; nil where the object does
	// not say.
	Count *int32
	// Immutable says that the object's template cannot be changed once the
	// object exists (Jobs, bare pods).
	Immutable bool
}

// Field is a placement field of a pod spec, by its JSON name.
type Field string

// The placement fields.
const (
	NodeSelector      Field = "nodeSelector"
	Affinity          Field = "affinity"
	Tolerations       Field = "tolerations"
	SpreadConstraints Field = "topologySpreadConstraints"
	PriorityClassName Field = "priorityClassName"
	PreemptionPolicy  Field = "preemptionPolicy"
	SchedulerName     Field = "schedulerName"
	SchedulingGates   Field = "schedulingGates"
	SchedulingGroup   Field = "schedulingGroup"
)

// What of a pod template's metadata is placement: single keys of the two maps,
// see PlacementLabel and PlacementAnnotation.
const (
	TemplateLabels      Field = "metadata.labels"
	TemplateAnnotations Field = "metadata.annotations"
)

// Env is the environment variables of containers that are placement, see
// PlacementVariable. It has a path for each container, EnvPath.
const Env Field = "env"

// specFields are those of the pod spec.
var specFields = []Field{
	NodeSelector, Affinity, Tolerations, SpreadConstraints, PriorityClassName, PreemptionPolicy, SchedulerName, SchedulingGates, SchedulingGroup,
}

// Fields lists every placement field that has one path, in the order in which
// they are reported.
var Fields = append(slices.Clip(specFields), TemplateLabels, TemplateAnnotations)

// The parts of Affinity. Some kinds carry them in different places, or not all
// of them.
const (
	NodeAffinity    Field = "affinity.nodeAffinity"
	PodAffinity     Field = "affinity.podAffinity"
	PodAntiAffinity Field = "affinity.podAntiAffinity"
)

var affinityParts = []Field{NodeAffinity, PodAffinity, PodAntiAffinity}

// PathOf returns where the template carries a placement field or a part of the
// affinity, or something below it; false if it cannot carry it.
func (t *Template) PathOf(f Field, below ...any) (Path, bool) {
	path, ok := t.Paths[f]
	if part, isPart := strings.CutPrefix(string(f), string(Affinity)+"."); isPart {
		if t.parts != nil {
			path, ok = t.parts[f]
		} else if path, ok = t.Paths[Affinity]; ok {
			path = path.join(part)
		}
	}
	if !ok {
		return nil, false
	}
	return path.join(below...), true
}

// Carries lists the placement fields that the template can carry, in the order
// of Fields; in place of Affinity its parts, where some cannot be carried.
func (t *Template) Carries() []Field {
	var out []Field
	for _, f := range Fields {
		if _, ok := t.Paths[f]; !ok {
			continue
		}
		if f == Affinity && t.parts != nil && len(t.parts) < len(affinityParts) {
			for _, part := range affinityParts {
				if _, ok := t.parts[part]; ok {
					out = append(out, part)
				}
			}
			continue
		}
		out = append(out, f)
	}
	if t.PodSpec != nil {
		out = append(out, Env)
	}
	return out
}

// PodFields is the placement part of a pod spec, in the API's own types.
type PodFields struct {
	NodeSelector              map[string]string                 `json:"nodeSelector,omitempty"`
	Affinity                  *corev1.Affinity                  `json:"affinity,omitempty"`
	Tolerations               []corev1.Toleration               `json:"tolerations,omitempty"`
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
	PriorityClassName         string                            `json:"priorityClassName,omitempty"`
	PreemptionPolicy          *corev1.PreemptionPolicy          `json:"preemptionPolicy,omitempty"`
	SchedulerName             string                            `json:"schedulerName,omitempty"`
	SchedulingGates           []corev1.PodSchedulingGate        `json:"schedulingGates,omitempty"`
	SchedulingGroup           *corev1.PodSchedulingGroup        `json:"schedulingGroup,omitempty"`
	// Labels and Annotations are those of the template that are placement; the
	// others are nobody's business here, and stay as they are.
	Labels      map[string]string `json:"metadata.labels,omitempty"`
	Annotations map[string]string `json:"metadata.annotations,omitempty"`
	// Env is, by the name of the container, the variables that are placement.
	Env map[string][]corev1.EnvVar `json:"env,omitempty"`
	// Raw holds what a policy's raw.pod sets besides the fields above, by JSON
	// name; in Template.Pods it is nil: read Workload.Object instead.
	Raw map[string]any `json:"-"`
}

// Path leads through an object: a string is a map key, an int a list index.
type Path []any

// Source is where a workload came from.
type Source struct {
	// File is the file as the user named it, "-" for standard input, the
	// kustomization's folder, or empty for a cluster.
	File string
	// Document counts the YAML documents of the file from 0.
	Document int
	// Prefix is where in the document the object is: nil for the document
	// itself, "items" and an index for an element of a List.
	Prefix Path
	// Live says that the object was read from a cluster.
	Live bool
	// Managers are the field managers of the live object's pod template fields.
	Managers []string
	// Locate returns where the user wrote the field at the path, or its nearest
	// ancestor; nil for a cluster.
	Locate func(Path) diag.Range
}

// At returns where the field at path was written; for an object from a cluster
// the zero Range.
func (s Source) At(path ...any) diag.Range {
	if s.Locate == nil {
		return diag.Range{}
	}
	return s.Locate(path)
}
