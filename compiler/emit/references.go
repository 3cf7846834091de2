package emit

import (
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/objectyaml"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
)

// ReferencesFile is the name of the file that tells kustomize where workloads name
// objects that the plan makes.
const ReferencesFile = "references.yaml"

// references is kustomize's configuration of where objects are named
// (api/konfig/builtinpluginconsts, nameReference).
type references struct {
	NameReference []nameReference `json:"nameReference"`
}

type nameReference struct {
	Group      string      `json:"group"`
	Kind       string      `json:"kind"`
	FieldSpecs []fieldSpec `json:"fieldSpecs"`
}

type fieldSpec struct {
	Group string `json:"group,omitempty"`
	Kind  string `json:"kind"`
	Path  string `json:"path"`
}

// podGroupReferences returns where the workloads of the plan name its PodGroups, so
// that a prefix that a kustomization above gives to names reaches both; nil if it
// makes none.
func podGroupReferences(plan *compiler.Plan) ([]byte, error) {
	groups := map[string]string{} // namespace/name → API group
	for _, o := range plan.Objects {
		if o.Kind() == "PodGroup" {
			groups[o.Object.GetNamespace()+"/"+o.Object.GetName()] = o.Object.GetObjectKind().GroupVersionKind().Group
		}
	}
	specs := map[string][]fieldSpec{}
	for _, c := range plan.Changes {
		t := &c.Workload.Templates[c.Template]
		note := func(name string, path workload.Path) {
			group, ours := groups[c.Workload.Namespace+"/"+name]
			spec := fieldSpec{c.Workload.Group, c.Workload.Kind, kustomizePath(path)}
			if ours && !slices.Contains(specs[group], spec) {
				specs[group] = append(specs[group], spec)
			}
		}
		if at, ok := t.Paths[workload.TemplateLabels]; ok {
			note(c.After.Labels[gangkey.Label], slices.Concat(at, workload.Path{gangkey.Label}))
		}
		if at, ok := t.Paths[workload.SchedulingGroup]; ok && c.After.SchedulingGroup != nil && c.After.SchedulingGroup.PodGroupName != nil {
			note(*c.After.SchedulingGroup.PodGroupName, slices.Concat(at, workload.Path{"podGroupName"}))
		}
	}
	var out references
	for _, group := range slices.Sorted(maps.Keys(specs)) {
		slices.SortFunc(specs[group], func(a, b fieldSpec) int {
			return strings.Compare(a.Group+"/"+a.Kind+"/"+a.Path, b.Group+"/"+b.Kind+"/"+b.Path)
		})
		out.NameReference = append(out.NameReference, nameReference{group, "PodGroup", specs[group]})
	}
	if out.NameReference == nil {
		return nil, nil
	}
	return objectyaml.Marshal(out)
}

// kustomizePath writes a path as kustomize's fieldSpecs have it: a slash in a key is
// escaped, and of a list every element is meant.
func kustomizePath(path workload.Path) string {
	var b strings.Builder
	for i, step := range path {
		key, ok := step.(string)
		if !ok {
			b.WriteString("[]")
			continue
		}
		if i > 0 {
			b.WriteByte('/')
		}
		b.WriteString(strings.ReplaceAll(key, "/", `\/`))
	}
	return b.String()
}
