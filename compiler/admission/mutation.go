package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/compiler/cel"
)

// compile returns the variables of the set.
func (s Set) compile() *program {
	p := &program{}
	p.facts(s)
	p.policies(s)
	if s.usesOwn() {
		p.own(s)
	}
	p.nodeLabels(s)
	p.required(s)
	p.preferred(s)
	p.tolerations(s)
	p.spread(s)
	p.affinity(s)
	p.scalars(s)
	p.raw(s)
	p.outcome(s)
	return p
}

// outcome defines the affinity as a whole, and the names of the fields that
// change.
func (p *program) outcome(s Set) {
	p.define("nodeAffinityChanged", `variables.requiredChanged || variables.preferredChanged`)
	p.define("togetherChanged", `variables.togetherRequiredChanged || variables.togetherPreferredChanged`)
	p.define("apartChanged", `variables.apartRequiredChanged || variables.apartPreferredChanged`)
	p.define("affinityChanged", `variables.nodeAffinityChanged || variables.togetherChanged || variables.apartChanged`)
	half := func(changed, terms, was string) string {
		return fmt.Sprintf("variables.%s ? optional.of(dyn(%s)) : variables.spec.?affinity.?%s", changed, terms, was)
	}
	p.define("affinity", `{
    ?"nodeAffinity": variables.nodeAffinityChanged ? optional.of(dyn({
      ?"requiredDuringSchedulingIgnoredDuringExecution": %s,
      ?"preferredDuringSchedulingIgnoredDuringExecution": %s
    })) : variables.spec.?affinity.?nodeAffinity,
    ?"podAffinity": variables.togetherChanged ? optional.of(dyn({
      ?"requiredDuringSchedulingIgnoredDuringExecution": %s,
      ?"preferredDuringSchedulingIgnoredDuringExecution": %s
    })) : variables.spec.?affinity.?podAffinity,
    ?"podAntiAffinity": variables.apartChanged ? optional.of(dyn({
      ?"requiredDuringSchedulingIgnoredDuringExecution": %s,
      ?"preferredDuringSchedulingIgnoredDuringExecution": %s
    })) : variables.spec.?affinity.?podAntiAffinity
  }`,
		half("requiredChanged", `{"nodeSelectorTerms": variables.requiredTerms}`, "nodeAffinity.?requiredDuringSchedulingIgnoredDuringExecution"),
		half("preferredChanged", "variables.preferredTerms", "nodeAffinity.?preferredDuringSchedulingIgnoredDuringExecution"),
		half("togetherRequiredChanged", "variables.togetherRequired", "podAffinity.?requiredDuringSchedulingIgnoredDuringExecution"),
		half("togetherPreferredChanged", "variables.togetherPreferred", "podAffinity.?preferredDuringSchedulingIgnoredDuringExecution"),
		half("apartRequiredChanged", "variables.apartRequired", "podAntiAffinity.?requiredDuringSchedulingIgnoredDuringExecution"),
		half("apartPreferredChanged", "variables.apartPreferred", "podAntiAffinity.?preferredDuringSchedulingIgnoredDuringExecution"))
	changes := []string{
		`variables.nodeLabelsAdded.size() > 0 ? "nodeSelector" : ""`,
		`variables.affinityChanged ? "affinity" : ""`,
		`variables.tolerationsChanged ? "tolerations" : ""`,
		`variables.spreadsChanged ? "topologySpreadConstraints" : ""`,
	}
	for _, field := range []string{priorityClassName, preemptionPolicy, schedulerName} {
		changes = append(changes, fmt.Sprintf(`variables.%s != "" ? "%s" : ""`, field, field))
	}
	for i, place := range s.leafPlaces() {
		changes = append(changes, fmt.Sprintf(`variables.raw_%d.size() > 0 ? %s : ""`, i, cel.Quote(strings.Join(place.path, "."))))
	}
	p.define("changes", `%s.filter(c, c != "")`, lines(changes))
	p.define("path", `variables.daemonSet ? "/spec/template/spec" : "/spec"`)
}

// operation returns a list of one operation of a JSON patch, or of none.
func operation(when, op, path, value string) string {
	patch := fmt.Sprintf(`JSONPatch{op: %q, path: %s}`, op, path)
	if value != "" {
		patch = fmt.Sprintf(`JSONPatch{op: %q, path: %s, value: %s}`, op, path, value)
	}
	return fmt.Sprintf("(%s ? [%s] : [])", when, patch)
}

// mutation returns the expression of the one mutation. A mark of another content
// says that the set's former version has already placed the pod in this very
// request: half of each would be worse.
func (s Set) mutation(content string) string {
	under := func(path ...string) string { return "variables.path + " + cel.Quote(pointer(path...)) }
	ops := []string{
		operation(`variables.nodeLabelsAdded.size() > 0 && !has(variables.spec.nodeSelector)`, "add", under("nodeSelector"), "dyn({})"),
		`variables.nodeLabelsAdded.map(l, JSONPatch{op: "add", path: variables.path + "/nodeSelector/" + jsonpatch.escapeKey(l[0]), value: l[1]})`,
		operation(`variables.affinityChanged`, "add", under("affinity"), "variables.affinity"),
		operation(`variables.tolerationsChanged`, "add", under("tolerations"), "variables.tolerationsNow"),
		operation(`variables.spreadsChanged`, "add", under("topologySpreadConstraints"), "variables.spreadsNow"),
		operation(`variables.schedulerName != ""`, "add", under(schedulerName), "variables.schedulerName"),
		operation(`variables.priorityClassName != ""`, "add", under(priorityClassName), "variables.priorityClassName"),
		// What came of the class that the pod had; the API server fills in ours.
		operation(`variables.priorityClassName != "" && has(variables.spec.priority)`, "remove", under("priority"), ""),
		operation(`variables.priorityClassName != "" && has(variables.spec.preemptionPolicy)`, "remove", under(preemptionPolicy), ""),
		operation(`variables.preemptionPolicy != ""`, "add", under(preemptionPolicy), "variables.preemptionPolicy"),
	}
	ops = append(ops, s.rawOperations(under)...)
	key := Annotation(s.Name)
	ops = append(ops,
		operation(`variables.mark == "" && !has(object.metadata.annotations)`, "add", cel.Quote("/metadata/annotations"), "dyn({})"),
		operation(`variables.mark != variables.marked`, "add", cel.Quote(pointer("metadata", "annotations", key)), "variables.marked"))
	return s.answer(content) + fmt.Sprintf("variables.policies.size() == 0 || variables.mark != \"\" && !variables.mark.startsWith(%s)\n? []\n: %s",
		cel.Quote(content+" "), strings.Join(ops, "\n+ "))
}

// answer is the beginning of the mutation that answers a probe and does nothing
// else to it, in no pass.
func (s Set) answer(content string) string {
	name := s.Name
	if name == "" {
		name = DefaultSet
	}
	return fmt.Sprintf(`request.?dryRun.orValue(false) && object.metadata.?annotations[?%s].orValue("") in %s
? [JSONPatch{op: "replace", path: %s, value: %s}]
: `, cel.Quote(ProbeAnnotation), cel.List([]string{name, content}), cel.Quote(pointer("metadata", "annotations", ProbeAnnotation)), cel.Quote(content))
}

// rawOperations set the leaves, and before them the maps that they stand in.
func (s Set) rawOperations(under func(...string) string) []string {
	parents := map[string][]string{}
	paths := map[string][]string{}
	var leaves []string
	for i, place := range s.leafPlaces() {
		set := fmt.Sprintf("variables.raw_%d", i)
		for n := 1; n < len(place.path); n++ {
			at := place.path[:n]
			parents[pointer(at...)] = append(parents[pointer(at...)], set+".size() > 0")
			paths[pointer(at...)] = at
		}
		leaves = append(leaves, fmt.Sprintf(`%s.map(v, JSONPatch{op: "add", path: %s, value: v})`, set, under(place.path...)))
	}
	var out []string
	for _, parent := range slices.Sorted(maps.Keys(parents)) {
		at := "variables.spec"
		for _, step := range paths[parent] {
			at += "[?" + cel.Quote(step) + "]"
		}
		out = append(out, operation(cel.And("("+cel.Or(parents[parent]...)+")", "!"+at+".hasValue()"), "add", under(paths[parent]...), "dyn({})"))
	}
	return append(out, leaves...)
}
