package workload

import (
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// KindSpec teaches one custom kind that makes pods: where its pod templates
// are and which placement fields each can carry.
type KindSpec struct {
	// Name is "group/Kind".
	Name string
	// Templates maps the name of each sort of template to where it is.
	Templates map[string]TemplateSpec
	// PodLabels are labels that the kind's controller puts on its pods; "{name}"
	// stands for the object's name, "{template}" for the template's.
	PodLabels map[string]string
	// Range is where the user wrote it, for findings.
	Range diag.Range
}

// TemplateSpec is where one sort of pod template is. Paths are dotted keys;
// "[*name]" means each element of a list, named by its field "name", and "*"
// each value of a map.
type TemplateSpec struct {
	// Path leads to the pod spec; empty where the kind carries only Fields.
	Path string
	// Fields are the placement fields that are carried elsewhere than under
	// Path, or, without Path, the only ones that are carried.
	Fields map[Field]string
	// Labels leads to the pods' labels; empty for the "metadata.labels" beside
	// the pod spec at Path.
	Labels string
}

// GroupKind names a kind without its version.
type GroupKind struct{ Group, Kind string }

// Kinds is the table of all kinds that have pod templates.
type Kinds struct {
	byName map[GroupKind]*kind
}

type kind struct{}

// NewKinds returns the table of the kinds that come built in and the given
// ones, which win over those of the same name. Findings say which of the given
// ones are wrong.
func NewKinds(extra []KindSpec) (*Kinds, diag.Findings) {
	return &Kinds{}, nil
}

// All lists the kinds of the table, sorted by group and kind: what to look for
// in a cluster.
func (k *Kinds) All() []GroupKind { return nil }
