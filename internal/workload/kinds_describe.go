package workload

import (
	"cmp"
	"maps"
	"slices"
)

// KindDescription is one kind of the built-in table, for its documentation.
type KindDescription struct {
	Kinds     []GroupKind
	Templates []TemplateDescription
	// PodLabels are what the kind's controller puts on its pods.
	PodLabels map[string]string
	// RevisionLabel and RunLabel are the labels that tell the pods of revisions,
	// and of runs, apart; empty where the kind has none.
	RevisionLabel, RunLabel string
	// Immutable says that the template cannot be changed once the object exists.
	Immutable bool
}

// TemplateDescription is one sort of pod template of a kind.
type TemplateDescription struct {
	// Name is empty where the kind has one sort.
	Name string
	// Path leads to the pod spec, which carries every placement field; empty
	// where the kind carries only Fields.
	Path string
	// When is the path of what must be there for the template to be; empty for the
	// pod spec itself.
	When string
	// Fields are the fields that are carried elsewhere, and where; labels and
	// annotations among them, where they are not beside the pod spec.
	Fields map[Field]string
}

// DescribeKinds returns the built-in table, sorted by the first kind of a row.
func DescribeKinds() []KindDescription {
	var out []KindDescription
	for _, row := range builtinKinds() {
		d := KindDescription{Kinds: row.names, PodLabels: row.podLabels, RevisionLabel: row.revision, RunLabel: row.run, Immutable: row.immutable}
		for _, t := range row.templates {
			d.Templates = append(d.Templates, TemplateDescription{Name: t.sort, Path: t.spec, When: t.when, Fields: t.described()})
		}
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b KindDescription) int {
		return cmp.Or(cmp.Compare(a.Kinds[0].Group, b.Kinds[0].Group), cmp.Compare(a.Kinds[0].Kind, b.Kinds[0].Kind))
	})
	return out
}

// described returns all fields of the row that have a path of their own.
func (t templateRow) described() map[Field]string {
	out := maps.Clone(t.fields)
	for f, path := range map[Field]string{TemplateLabels: t.labels, TemplateAnnotations: t.annotations} {
		if path == "" || t.spec != "" {
			continue
		}
		if out == nil {
			out = map[Field]string{}
		}
		out[f] = path
	}
	return out
}
