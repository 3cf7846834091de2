package emit

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/objectyaml"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// ComponentFile is the name that kustomize looks for in a Component's folder.
const ComponentFile = "kustomization.yaml"

// componentHeader opens a Component; a file without it is not ours to replace.
const componentHeader = "# Written by kubectl sched compile from the placement policies. Do not edit:\n" +
	"# compile again when the policies or the workloads change. List this folder under\n" +
	"# \"components\" in a kustomization whose \"resources\" are what was compiled.\n"

// Component returns a kustomize Component that gives the workloads of the set
// the plan's placement: its kustomization file, and the files of the
// objects that the plan makes, and of where they are named, if there are any. Each workload has an explicit target, by
// its name in the input, and each list of its placement is set as a whole, since
// neither a strategic merge nor appending keeps such lists right. Names and
// namespaces that a kustomization above changes are no matter: a Component
// comes before them.
//
// The NodePools of Karpenter's that are among the manifests get what the pools of
// the plan ask of them; see Nodes.
//
// Findings of severity Error tell of a workload that cannot carry its placement.
func Component(ctx context.Context, plan *compiler.Plan, set *workload.Set) ([]File, diag.Findings) {
	written, findings := Write(ctx, plan, set.Workloads, workload.Stamp{})
	component := kustomization{APIVersion: "kustomize.config.k8s.io/v1alpha1", Kind: "Component"}
	objects, err := Objects(plan, set)
	if err != nil {
		return nil, append(findings, finding("input/encode", ComponentFile, err.Error()))
	}
	var files []File
	guarded := ambiguous(set)
	if objects != nil {
		component.Resources = []string{ObjectsFile}
		files = append(files, File{Name: ObjectsFile, After: objects})
	}
	named, err := podGroupReferences(plan)
	if err != nil {
		return nil, append(findings, finding("input/encode", ReferencesFile, err.Error()))
	}
	if named != nil {
		component.Configurations = []string{ReferencesFile}
		files = append(files, File{Name: ReferencesFile, After: named})
	}
	for i, w := range set.Workloads {
		if written[i] == nil || len(written[i].Edits) == 0 || ctx.Err() != nil {
			continue
		}
		patches, err := patches(w, written[i], guarded[w])
		if err != nil {
			findings = append(findings, diag.Finding{Rule: "input/encode", Severity: diag.Error, Subject: w.Ref(), Range: w.Source.At(), Message: err.Error()})
		}
		component.Patches = append(component.Patches, patches...)
	}
	ofNodePools, err := nodePoolPatches(plan, set)
	if err != nil {
		return nil, append(findings, finding("input/encode", ComponentFile, err.Error()))
	}
	component.Patches = append(component.Patches, ofNodePools...)
	if component.Patches == nil && component.Resources == nil {
		component.GeneratorOptions = &struct{}{}
	}
	text, err := objectyaml.Marshal(component)
	if err != nil {
		return nil, append(findings, finding("input/encode", ComponentFile, err.Error()))
	}
	return append([]File{{Name: ComponentFile, After: append([]byte(componentHeader), text...)}}, files...), findings
}

// kustomization is the part of kustomize's format that a Component needs.
type kustomization struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Resources  []string `json:"resources,omitempty"`
	// Configurations are files that say where objects are named.
	Configurations []string `json:"configurations,omitempty"`
	Patches        []patch  `json:"patches,omitempty"`
	// GeneratorOptions is set, and empty, in a Component that does nothing:
	// kustomize refuses one that says nothing.
	GeneratorOptions *struct{} `json:"generatorOptions,omitempty"`
}

type patch struct {
	Patch  string `json:"patch"`
	Target target `json:"target"`
}

// target picks one object. Its values are regular expressions to kustomize, so
// names are escaped.
type target struct {
	Group     string `json:"group,omitempty"`
	Version   string `json:"version"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// operation is one step of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// patches returns what one workload needs: a JSON patch with whole values for
// its placement, and a merge patch for the annotation, so that a base which
// has got other annotations in the meantime keeps them.
func patches(w *workload.Workload, out *workload.Written, guarded bool) ([]patch, error) {
	to := target{Group: w.Group, Version: w.Version, Kind: w.Kind, Name: quoteName(w.Name)}
	to.Namespace, _ = lookup(w.Object, workload.Path{"metadata", "namespace"}).(string)
	var steps []operation
	for _, unit := range units(w, out) {
		if added, ok := addedVariables(w, out, unit); ok {
			steps = append(steps, added...)
			continue
		}
		at := operation{Op: "add", Path: pointer(unit), Value: lookup(out.Object, unit)}
		if at.Value == nil {
			at.Op = "remove"
		}
		steps = append(steps, at)
	}
	if out.Record == nil {
		steps = append(steps, removals(out)...)
	}
	var list []patch
	if len(steps) > 0 {
		if guarded {
			steps = slices.Insert(steps, 0, operation{Op: "test", Path: "/metadata/name", Value: w.Name})
		}
		text, err := objectyaml.Marshal(steps)
		if err != nil {
			return nil, fmt.Errorf("the placement cannot be written as a patch: %w", err)
		}
		list = append(list, patch{Patch: string(text), Target: to})
	}
	if out.Record == nil {
		return list, nil
	}
	record, err := out.Record.Encode()
	if err != nil {
		return nil, fmt.Errorf("the record of what is ours cannot be written: %w", err)
	}
	text, err := objectyaml.Marshal(map[string]any{
		"apiVersion": strings.TrimPrefix(w.Group+"/"+w.Version, "/"), "kind": w.Kind,
		"metadata": map[string]any{"name": w.Name, "annotations": map[string]any{ownership.Annotation: record}},
	})
	if err != nil {
		return nil, fmt.Errorf("the record of what is ours cannot be written: %w", err)
	}
	return append(list, patch{Patch: string(text), Target: to}), nil
}

// addedVariables returns the operations that add what is new in the environment
// of a container and leave the rest of it to the base; false if the path is of
// something else, or more than that has changed. The container is known by its
// name, which is tested.
func addedVariables(w *workload.Workload, out *workload.Written, unit workload.Path) ([]operation, bool) {
	if len(unit) < 3 || unit[len(unit)-1] != string(workload.Env) || !inContainer(w, unit) {
		return nil, false
	}
	test := operation{Op: "test", Path: pointer(unit[:len(unit)-1]) + "/name", Value: lookup(w.Object, append(slices.Clone(unit[:len(unit)-1]), "name"))}
	before, _ := lookup(w.Object, unit).([]any)
	after, _ := lookup(out.Object, unit).([]any)
	steps := []operation{test}
	switch {
	case len(after) < len(before) || !reflect.DeepEqual(after[:len(before)], before):
		whole := operation{Op: "add", Path: pointer(unit), Value: lookup(out.Object, unit)}
		if whole.Value == nil {
			whole.Op = "remove"
		}
		return append(steps, whole), true
	case len(before) == 0:
		return append(steps, operation{Op: "add", Path: pointer(unit), Value: after}), true
	}
	for _, v := range after[len(before):] {
		steps = append(steps, operation{Op: "add", Path: pointer(unit) + "/-", Value: v})
	}
	return steps, true
}

// inContainer reports whether the path leads into a container of a template.
func inContainer(w *workload.Workload, path workload.Path) bool {
	for i := range w.Templates {
		for _, name := range w.Templates[i].Containers() {
			if at, ok := w.Templates[i].EnvPath(name); ok && hasPrefix(path, at[:len(at)-1]) {
				return true
			}
		}
	}
	return false
}

// removals returns what takes the annotation away. (In a merge patch kustomize
// takes the null of an annotation for text.)
func removals(out *workload.Written) []operation {
	var steps []operation
	for _, e := range out.Edits {
		if isRecord(e.Path) && e.Delete {
			steps = append(steps, operation{Op: "remove", Path: pointer(e.Path)})
		}
	}
	return steps
}

// isRecord reports whether an edit is of the annotation that says what is ours,
// or of the map that is made for it.
func isRecord(path workload.Path) bool {
	record := workload.Path{"metadata", "annotations", ownership.Annotation}
	return len(path) > 0 && hasPrefix(record, path)
}

// units returns the paths of the values that the patch sets as a whole: for each
// edit the placement field that it is in (of labels and annotations one key, of a
// container its environment, of what raw.pod set what is up to the first list), or
// the nearest parent that the object lacks. The record is not among them.
func units(w *workload.Workload, out *workload.Written) []workload.Path {
	var list []workload.Path
	for _, e := range out.Edits {
		if isRecord(e.Path) {
			continue
		}
		unit := missingParent(w.Object, wholeField(w, e.Path))
		if !slices.ContainsFunc(list, func(p workload.Path) bool { return hasPrefix(unit, p) }) {
			list = slices.DeleteFunc(list, func(p workload.Path) bool { return hasPrefix(p, unit) })
			list = append(list, unit)
		}
	}
	slices.SortFunc(list, func(a, b workload.Path) int { return strings.Compare(pointer(a), pointer(b)) })
	return list
}

// wholeField cuts the path of an edit to that of the field that it is part of.
func wholeField(w *workload.Workload, path workload.Path) workload.Path {
	if inContainer(w, path) {
		for i, step := range path {
			if step == string(workload.Env) {
				return path[:i+1]
			}
		}
	}
	for i := range w.Templates {
		t := &w.Templates[i]
		for _, field := range workload.Fields {
			at, ok := t.Paths[field]
			switch {
			case !ok || !hasPrefix(path, at):
			case field == workload.TemplateLabels || field == workload.TemplateAnnotations:
				return path[:min(len(path), len(at)+1)]
			default:
				return at
			}
		}
		if t.PodSpec != nil && hasPrefix(path, t.PodSpec) {
			for n := len(t.PodSpec); n < len(path); n++ {
				if _, index := path[n].(int); index {
					return path[:n]
				}
			}
		}
	}
	return path
}

// missingParent shortens the path to its first key that the object lacks.
func missingParent(object any, path workload.Path) workload.Path {
	for n := 1; n < len(path); n++ {
		if lookup(object, path[:n]) == nil {
			return path[:n]
		}
	}
	return path
}

// lookup returns the value at the path, or nil.
func lookup(value any, path workload.Path) any {
	for _, step := range path {
		switch key := step.(type) {
		case string:
			m, _ := value.(map[string]any)
			value = m[key]
		case int:
			list, _ := value.([]any)
			if key < 0 || key >= len(list) {
				return nil
			}
			value = list[key]
		}
	}
	return value
}

func hasPrefix(path, prefix workload.Path) bool {
	return len(path) >= len(prefix) && slices.Equal(path[:len(prefix)], prefix)
}

func pointer(path workload.Path) string {
	keys := make([]string, len(path))
	for i, step := range path {
		keys[i] = fmt.Sprint(step)
	}
	return policy.Pointer(keys...)
}

// quoteName escapes the one character of object names that a regular expression
// takes for something else.
func quoteName(name string) string { return strings.ReplaceAll(name, ".", `\.`) }

// ambiguous returns the workloads for which kustomize could take another one:
// it matches a target also with the name that an object had before prefixes and
// suffixes, and those of a kustomization that was compiled are not seen any
// more. Then the patch checks the name by itself, so that a build fails rather
// than placing the wrong pods.
func ambiguous(set *workload.Set) map[*workload.Workload]bool {
	rendered := map[string]bool{}
	for _, f := range set.Files {
		rendered[f.Name] = rendered[f.Name] || f.Mode == 0 && f.Name != "-"
	}
	type name struct{ group, kind, name string }
	// partOf are the names that another is made of by a prefix or a suffix.
	named, partOf := map[name]bool{}, map[name]bool{}
	for _, w := range set.Workloads {
		named[name{w.Group, w.Kind, w.Name}] = true
	}
	for _, w := range set.Workloads {
		for i := 1; i < len(w.Name); i++ {
			for _, part := range []string{w.Name[:i], w.Name[i:]} {
				if n := (name{w.Group, w.Kind, part}); named[n] {
					partOf[n] = true
				}
			}
		}
	}
	out := map[*workload.Workload]bool{}
	for _, w := range set.Workloads {
		out[w] = rendered[w.Source.File] && partOf[name{w.Group, w.Kind, w.Name}]
	}
	return out
}
