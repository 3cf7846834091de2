package workload

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
	// Annotations leads to the pods' annotations; empty for the
	// "metadata.annotations" beside a pod spec that is called "spec". Without it and
	// that the kind carries none.
	Annotations string
}

// GroupKind names a kind without its version.
type GroupKind struct{ Group, Kind string }

// String returns "group/Kind", or the kind alone for the core group.
func (g GroupKind) String() string {
	if g.Group == "" {
		return g.Kind
	}
	return g.Group + "/" + g.Kind
}

// Kinds is the table of all kinds that have pod templates. It does not change
// once it is made.
type Kinds struct {
	byName map[GroupKind]*kind
	types  typeTable
}

// kind is one row of the table.
type kind struct {
	templates []templateDef
	// replicas and selector are where the object says how many pods it wants
	// and which are its own; nil where it does not.
	replicas, selector pattern
	// podLabels are what the controller puts on the pods.
	podLabels map[string]string
	// revision and run are the labels that tell revisions and runs apart.
	revision, run string
	immutable     bool
	rollout       rolloutRule
	// claims says that the object's volumeClaimTemplates make a claim for each
	// pod.
	claims bool
}

// templateDef is where one sort of template of a kind is.
type templateDef struct {
	sort   string
	spec   pattern
	when   pattern
	fields map[Field]pattern
	labels pattern
	// readOnly says that labels is not sure enough to be written to.
	readOnly bool
	// annotations is nil where the kind carries none.
	annotations pattern
}

var defaultKinds = sync.OnceValue(func() *Kinds {
	k, _ := NewKinds(nil)
	return k
})

// NewKinds returns the table of the kinds that come built in and the given
// ones, which win over those of the same name. Findings say which of the given
// ones are wrong; those are left out.
func NewKinds(extra []KindSpec) (*Kinds, diag.Findings) {
	k := &Kinds{byName: map[GroupKind]*kind{}, types: placementTypes()}
	for _, row := range builtinKinds() {
		for _, name := range row.names {
			k.byName[name] = row.parse()
		}
	}
	var findings diag.Findings
	for _, spec := range extra {
		row, err := spec.row()
		if err != nil {
			findings = append(findings, diag.Finding{
				Rule: "workload/invalid-kind", Severity: diag.Error, Subject: spec.Name, Range: spec.Range, Message: err.Error(),
			})
			continue
		}
		known, ok := k.byName[row.names[0]]
		parsed := row.parse()
		if ok { // what the user does not say of a kind that we know stays
			merged := *known
			merged.templates = parsed.templates
			merged.podLabels = maps.Clone(known.podLabels)
			if merged.podLabels == nil {
				merged.podLabels = map[string]string{}
			}
			maps.Copy(merged.podLabels, parsed.podLabels)
			parsed = &merged
		}
		k.byName[row.names[0]] = parsed
	}
	return k, findings
}

// All lists the kinds of the table, sorted by group and kind: what to look for
// in a cluster.
func (k *Kinds) All() []GroupKind {
	return slices.SortedFunc(maps.Keys(k.byName), func(a, b GroupKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
}

// Controls reports whether an object of one of the kinds controls o: what holds for
// it is said there.
func (k *Kinds) Controls(o metav1.Object) bool {
	owner := metav1.GetControllerOf(o)
	if owner == nil {
		return false
	}
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && k.byName[GroupKind{gv.Group, owner.Kind}] != nil
}

// row turns what the user wrote into a row of the table.
func (s KindSpec) row() (kindRow, error) {
	group, name, ok := strings.Cut(s.Name, "/")
	if !ok || group == "" || name == "" || strings.Contains(name, "/") {
		return kindRow{}, fmt.Errorf("a kind is named %q, such as \"argoproj.io/Rollout\", not %q", "group/Kind", s.Name)
	}
	row := kindRow{names: []GroupKind{{group, name}}, podLabels: s.PodLabels}
	if len(s.Templates) == 0 {
		return kindRow{}, fmt.Errorf("the kind has no templates; give at least one with its path")
	}
	for _, sort := range sortedKeys(s.Templates) {
		t := s.Templates[sort]
		if t.Path == "" && len(t.Fields) == 0 {
			return kindRow{}, fmt.Errorf("the template %q has neither a path nor fields; give one of them", sort)
		}
		tr := templateRow{sort: sort, spec: t.Path, labels: t.Labels, annotations: t.Annotations, fields: qualified(t.Fields)}
		if err := tr.check(); err != nil {
			return kindRow{}, fmt.Errorf("the template %q: %w", sort, err)
		}
		tr.fields = wholeAffinity(tr.fields)
		row.templates = append(row.templates, tr)
	}
	for i := range row.templates {
		row.templates[i].when = row.part(i)
	}
	return row, nil
}

// qualified returns the fields with the parts of the affinity, which users call
// by their own names ("podAffinity"), under their full ones.
func qualified(given map[Field]string) map[Field]string {
	fields := make(map[Field]string, len(given))
	for f, path := range given {
		if part := Affinity + "." + f; slices.Contains(affinityParts, part) {
			f = part
		}
		fields[f] = path
	}
	return fields
}

// wholeAffinity returns the fields with a path for the affinity as a whole where
// only parts of it have one, and for all of its parts where only some have one
// of their own.
func wholeAffinity(given map[Field]string) map[Field]string {
	fields := maps.Clone(given)
	whole, hasWhole := fields[Affinity]
	if !slices.ContainsFunc(affinityParts, func(f Field) bool { return fields[f] != "" }) {
		return fields
	}
	for _, f := range affinityParts {
		switch own := fields[f]; {
		case own == "" && hasWhole:
			fields[f] = whole + strings.TrimPrefix(string(f), string(Affinity))
		case own != "" && fields[Affinity] == "":
			fields[Affinity] = own
		}
	}
	return fields
}

// part is what an object must have for a template of fields to be there: the
// first step that all of its paths share and those of no other template. It is
// empty where no step tells them apart, or where a wildcard or the pod spec does.
func (r kindRow) part(i int) string {
	t := r.templates[i]
	if t.spec != "" {
		return ""
	}
	var own []string
	for _, f := range slices.Sorted(maps.Keys(t.fields)) {
		if strings.Contains(t.fields[f], "*") {
			return ""
		}
		steps := strings.Split(t.fields[f], ".")
		if steps = steps[:len(steps)-1]; own == nil {
			own = steps
		}
		own = own[:shared(own, steps)]
	}
	apart := 0
	for j, other := range r.templates {
		for _, path := range append(slices.Collect(maps.Values(other.fields)), other.spec) {
			if j != i && path != "" {
				apart = max(apart, shared(own, strings.Split(path, "."))+1)
			}
		}
	}
	if apart == 0 || apart > len(own) {
		return ""
	}
	return strings.Join(own[:apart], ".")
}

// shared is how many steps two paths have in common.
func shared(a, b []string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// check parses the paths of a template that the user gave.
func (t templateRow) check() error {
	paths := map[string]string{}
	if t.spec != "" {
		paths["path"] = t.spec
	}
	if t.labels != "" {
		paths["labels"] = t.labels
	}
	if t.annotations != "" {
		paths["annotations"] = t.annotations
	}
	for f, p := range t.fields {
		if !slices.Contains(specFields, f) && !slices.Contains(affinityParts, f) {
			var names []string
			for _, known := range append(slices.Clone(specFields), affinityParts...) {
				names = append(names, strings.TrimPrefix(string(known), string(Affinity)+"."))
			}
			if near, ok := diag.Nearest(string(f), names); ok {
				return fmt.Errorf("%q is no placement field; did you mean %q", f, near)
			}
			return fmt.Errorf("%q is no placement field; those are %s", f, strings.Join(names, ", "))
		}
		paths["fields."+string(f)] = p
	}
	wildcards, first := "", ""
	for _, name := range sortedKeys(paths) {
		p, err := parsePattern(paths[name])
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		w := fmt.Sprint(p.upToWildcard())
		if first == "" {
			wildcards, first = w, name
		}
		if w != wildcards {
			return fmt.Errorf("%s and %s must lead through the same lists and maps", first, name)
		}
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
