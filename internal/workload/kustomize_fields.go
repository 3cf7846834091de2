package workload

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/kubectl-sched/kubectl-sched/internal/objectyaml"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/yamldoc"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// kustomize says of a field that does not fit which type of its own source it
// cannot be read into, without a place, and stops there. So each field is read by
// itself beforehand.

var unknownField = regexp.MustCompile(`unknown field "([^"]*)"`)

// fields reports the fields of a kustomization.yaml that kustomize cannot read.
func (c *kustomizationCheck) fields(t text, root *yamldoc.Node) {
	value, _ := t.doc.Decode() // problems of the text have been reported
	m, ok := value.(map[string]any)
	if !ok {
		c.fail(t.at(root.Start, root.End), "input/kustomize", "a kustomization is a map of fields, such as \"resources\"")
		return
	}
	for i, key := range root.Resolve().Keys {
		name, ok := key.Value.(string)
		if !ok {
			continue
		}
		at := t.at(key.Start, max(key.End, root.Resolve().Values[i].End))
		if name == "helmCharts" || name == "helmChartInflationGenerator" {
			c.fail(at, "input/kustomize", fmt.Sprintf("charts in a kustomization (%s) are not rendered, since that runs helm; give the output of \"helm template\" with -f", name))
			continue
		}
		text, err := objectyaml.Marshal(map[string]any{name: m[name]})
		if err != nil {
			continue
		}
		var into types.Kustomization
		if err := into.Unmarshal(text); err != nil {
			c.fail(at, "input/kustomize", fieldProblem(name, err))
		}
	}
}

// fieldProblem says in the words of YAML why a field cannot be read.
func fieldProblem(name string, err error) string {
	if m := unknownField.FindStringSubmatch(err.Error()); m != nil {
		if m[1] == name {
			return fmt.Sprintf("a kustomization has no field %q", name)
		}
		return fmt.Sprintf("%q has no field %q", name, m[1])
	}
	if m := goName.FindStringSubmatch(err.Error()); m != nil {
		field := name
		if m[2] != "" {
			field = m[2]
		}
		return fmt.Sprintf("%q must be %s, not %s", field, yamlType(m[3]), yamlType(m[1]))
	}
	return fmt.Sprintf("%q cannot be read: %s", name, withoutGo(err.Error()))
}

// yamlType names a type of Go or JSON as people know it from YAML.
func yamlType(name string) string {
	name = strings.TrimLeft(name, "*")
	switch {
	case strings.HasPrefix(name, "[]"), name == "array":
		return "a list"
	case strings.HasPrefix(name, "map["), name == "object", strings.Contains(name, "."):
		return "a map"
	case name == "string":
		return "a string"
	case name == "bool":
		return "true or false"
	case name == "number", strings.Contains(name, "int"), strings.Contains(name, "float"):
		return "a number"
	}
	return "something else"
}

// goName is what kustomize says of its own source.
var goName = regexp.MustCompile(`(?:json: )?cannot unmarshal (\w+) into Go (?:struct field (?:\w+\.)?([\w.]+)|value) of type (\S+)`)

// withoutGo takes what only kustomize's authors understand out of its message.
func withoutGo(message string) string {
	message = strings.Join(strings.Fields(message), " ")
	message = goName.ReplaceAllStringFunc(message, func(s string) string {
		m := goName.FindStringSubmatch(s)
		field := "a value"
		if m[2] != "" {
			field = fmt.Sprintf("%q", m[2])
		}
		return fmt.Sprintf("%s must be %s, not %s", field, yamlType(m[3]), yamlType(m[1]))
	})
	message = strings.ReplaceAll(message, "MalformedYAMLError: ", "")
	return strings.ReplaceAll(message, "yaml: ", "")
}

// placeOf returns the file that a message of kustomize's names, relative to the
// folder; the folder itself for none.
func placeOf(folder, message string) diag.Pos {
	for word := range strings.FieldsSeq(message) {
		word = strings.Trim(word, `'":,;()`)
		if ext := filepath.Ext(word); ext == ".yaml" || ext == ".yml" || ext == ".json" {
			if filepath.IsAbs(word) {
				return diag.Pos{File: word}
			}
			return diag.Pos{File: filepath.Join(folder, word)}
		}
	}
	return diag.Pos{File: folder}
}
