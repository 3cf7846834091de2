package workload

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// container is one container of a template.
type container struct {
	name string
	path Path
}

// containerLists are the fields of a pod spec with containers that live as long
// as the pod, or before the others do.
var containerLists = []string{"initContainers", "containers"}

// containersIn lists the containers of the pod spec at a path of an object.
// Those without a name, which the API refuses, are left out.
func containersIn(object map[string]any, spec Path) []container {
	if spec == nil {
		return nil
	}
	var out []container
	for _, field := range containerLists {
		list, _ := Lookup(object, spec.join(field)...)
		elements, _ := list.([]any)
		for i, e := range elements {
			if name, ok := Lookup(e, "name"); ok {
				if text, ok := name.(string); ok && text != "" {
					out = append(out, container{text, spec.join(field, i)})
				}
			}
		}
	}
	return out
}

// Containers lists the names of the template's containers, the init containers
// first; nil where the kind does not carry them.
func (t *Template) Containers() []string {
	var out []string
	for _, c := range t.containers {
		out = append(out, c.name)
	}
	return out
}

// EnvPath returns where the template carries the environment of the container of
// that name; false if there is none.
func (t *Template) EnvPath(name string) (Path, bool) {
	i := slices.IndexFunc(t.containers, func(c container) bool { return c.name == name })
	if i < 0 {
		return nil, false
	}
	return t.containers[i].path.join("env"), true
}

// env reads the variables of the containers that are placement, nil if there are
// none.
func env(object map[string]any, containers []container) map[string][]corev1.EnvVar {
	var out map[string][]corev1.EnvVar
	for _, c := range containers {
		list, _ := Lookup(object, c.path.join("env")...)
		elements, _ := list.([]any)
		for _, e := range elements {
			m, _ := e.(map[string]any)
			name, _ := m["name"].(string)
			if !PlacementVariable(name) {
				continue
			}
			v := corev1.EnvVar{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m, &v); err != nil {
				// The API will refuse it; that it is there is what counts here.
				v = corev1.EnvVar{Name: name}
			}
			if f := v.ValueFrom; f != nil && f.FieldRef != nil && f.FieldRef.APIVersion == "v1" {
				f.FieldRef.APIVersion = "" // the API's default, which it fills in
			}
			if out == nil {
				out = map[string][]corev1.EnvVar{}
			}
			out[c.name] = append(out[c.name], v)
		}
	}
	return out
}

// withVariables returns the environment of a container with the variables in
// place of those of their names, or behind the others.
func withVariables(list []any, variables []corev1.EnvVar) ([]any, error) {
	out := slices.Clone(list)
	for i := range variables {
		v, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&variables[i])
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(out, func(e any) bool {
			name, _ := Lookup(e, "name")
			return name == variables[i].Name
		})
		if at < 0 {
			out = append(out, any(v))
			continue
		}
		out[at] = v
	}
	return out, nil
}
