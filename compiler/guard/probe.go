package guard

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/admission"
	"github.com/kubectl-sched/kubectl-sched/compiler/cel"
)

// podsSubject is the subject of the one policy of a pool that answers probes. Its
// objects are written after those for bindings, and the API server takes up all
// that it has heard of at once, so that it answers for both.
const podsSubject = "pods"

// asks is the condition that the request is a probe: a pod that is created as a dry
// run and names, in admission.ProbeAnnotation, an object that shall answer. One
// that is really created is never a probe, so nobody gets past a guard by it.
var asks = cel.And(`request.operation == "CREATE"`, "request.?dryRun.orValue(false)", fmt.Sprintf("object.metadata.?annotations[?%s].hasValue()", cel.Quote(admission.ProbeAnnotation)))

// asked is what a probe names.
var asked = fmt.Sprintf("object.metadata.annotations[%s]", cel.Quote(admission.ProbeAnnotation))

// orProbes makes the conditions hold for probes too: whether a guard is in force
// must show to whoever applies it, exempt or not. Pods that could not use the pool
// never come to these.
func (p Pool) orProbes(conditions []admissionv1.MatchCondition) []admissionv1.MatchCondition {
	for i, c := range conditions {
		conditions[i].Expression = cel.Or(asks, c.Expression)
	}
	return conditions
}

// Answer is the complaint of a guard about a probe that names its policy.
func Answer(content string) string { return "the guard in force is " + content }

// answering makes the policy of pods answer probes: it complains of one that names
// it, by its content, which is another one with every change of what the guard
// does; and of one that names another it does not complain at all.
func (p Pool) answering(made Policy) Policy {
	spec, err := json.Marshal([]any{made.Policy.Spec, made.Binding.Spec})
	if err != nil {
		panic(err) // The API's own types always have a JSON form.
	}
	hash := sha256.Sum256(spec)
	content := hex.EncodeToString(hash[:])[:10]
	made.Policy.Annotations = map[string]string{admission.ContentAnnotation: content}
	last := &made.Policy.Spec.Variables[len(made.Policy.Spec.Variables)-1]
	last.Expression = cel.If(asks, cel.If(asked+" == "+cel.Quote(made.Policy.Name), cel.Quote(Answer(content)), `""`), last.Expression)
	return made
}
