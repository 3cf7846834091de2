package lint

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/kubectl-sched/kubectl-sched/compiler/profile"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// configurationGroup is the API group of schedulers' configurations; one of another
// kind is misspelt.
const configurationGroup = "kubescheduler.config.k8s.io"

// configurationText is how a text begins a line that is such a configuration's, in YAML
// or JSON. Its arguments may have the group too, further to the right.
var configurationText = regexp.MustCompile(`(?m)^\{?\s{0,2}["']?(kind["']?\s*:\s*["']?` + profile.Kind + `\b|apiVersion["']?\s*:\s*["']?` + regexp.QuoteMeta(configurationGroup) + `/)`)

// configuration makes a rule of one that profile.Check has.
func configuration(id string) func(*judgement) {
	return func(j *judgement) {
		for _, f := range j.configurationFindings() {
			if f.Rule == id {
				j.report(f)
			}
		}
	}
}

// configurationFindings checks every KubeSchedulerConfiguration among the objects,
// and those in the data of ConfigMaps, whoever wrote them, once; see profile.Check.
func (j *judgement) configurationFindings() diag.Findings {
	if j.configurationsRead {
		return j.configurations
	}
	j.configurationsRead = true
	for _, o := range j.Others {
		switch {
		case o.Kind == profile.Kind || o.Group == configurationGroup:
			for _, p := range profile.CheckObject(o.Object) {
				j.configurations = append(j.configurations, diag.Finding{
					Rule: p.Rule, Severity: p.Severity, Range: o.Source.At(pathIn(o.Object, p.Path)...), Message: p.Message,
				})
			}
		case o.Kind == "ConfigMap" && o.Group == "":
			j.configurations = append(j.configurations, inConfigMap(o)...)
		}
	}
	return j.configurations
}

// pathIn is the path as an object has it, where lists have numbers.
func pathIn(object any, path []string) []any {
	var out []any
	for _, step := range path {
		switch at := object.(type) {
		case map[string]any:
			object, out = at[step], append(out, step)
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(at) {
				return out
			}
			object, out = at[i], append(out, i)
		default:
			return out
		}
	}
	return out
}

// inConfigMap checks the configurations in the values of a ConfigMap. A finding is
// at the value's key, and says the line in it.
func inConfigMap(o *workload.Object) diag.Findings {
	var findings diag.Findings
	data, _ := o.Object["data"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(data)) {
		text, _ := data[key].(string)
		if !configurationText.MatchString(text) {
			continue
		}
		for _, f := range profile.Check(key, []byte(text)) {
			f.Message = fmt.Sprintf("in line %d of %q: %s", f.Range.Start.Line, key, f.Message)
			f.Subject, f.Range = "ConfigMap "+o.Namespace+"/"+o.Name, o.Source.At("data", key)
			findings = append(findings, f)
		}
	}
	return findings
}
