package admission

import (
	"fmt"

	"github.com/kubectl-sched/kubectl-sched/compiler/cel"
)

// ProbeAnnotation is the annotation by which a pod asks whether a set is in
// force: a pod with it that is created as a dry run gets, as its value, the
// content of the place policy that saw it, whether or not any of the set's
// policies is for the pod. It is how `apply --wait` knows that every API server
// request is judged by the new content; on pods that are really created it is
// never read. Its value is the set's label value, so that a probe asks one set.
const ProbeAnnotation = "kubectl-sched.github.io/probe"

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
