package admission

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/cel"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
)

// maxExpression keeps each constant table well below the 100,000 characters that
// the API server takes for one expression.
const maxExpression = 60_000

// volatile are labels that tell single pods, revisions or runs apart, and so do
// not tell a workload's pods from others.
var volatile = []string{
	"apps.kubernetes.io/pod-index",
	"batch.kubernetes.io/controller-uid",
	"batch.kubernetes.io/job-completion-index",
	"controller-revision-hash",
	"controller-uid",
	"leaderworkerset.sigs.k8s.io/group-index",
	"leaderworkerset.sigs.k8s.io/group-key",
	"leaderworkerset.sigs.k8s.io/worker-index",
	"pod-template-generation",
	"pod-template-hash",
	"rollouts-pod-template-hash",
	"statefulset.kubernetes.io/pod-name",
	"training.kubeflow.org/replica-index",
}

// Volatile returns the labels by which pods of one workload differ.
func Volatile() []string { return append(slices.Clone(volatile), gangLabels...) }

// gangLabels are the labels by which pods name their gang, which policies write: a
// pod has them once it was placed, and so they tell nobody which pods are meant.
var gangLabels = append(gangkey.Labels(), gangkey.LabelMinAvailable)

// canonicalSelector turns a label selector, s, into lists of key, operator and
// values, of which two selectors that say the same have the same.
func canonicalSelector(s string) string {
	return fmt.Sprintf(`%[1]s.?matchLabels.orValue({}).transformList(k, v, [string(k), "In", string(v)])
      + %[1]s.?matchExpressions.orValue([]).map(e, [string(e.key), string(e.operator)] + e.?values.orValue([]).map(v, string(v)).distinct().sort())`, s)
}

// selectorRows returns a label selector as lists of key, operator and values,
// where "=" stands for matchLabels.
func selectorRows(s *metav1.LabelSelector) string {
	var rows []string
	for _, k := range slices.Sorted(func(yield func(string) bool) {
		for k := range s.MatchLabels {
			if !yield(k) {
				return
			}
		}
	}) {
		rows = append(rows, texts([]string{k, "=", s.MatchLabels[k]}))
	}
	for _, e := range s.MatchExpressions {
		rows = append(rows, texts(append([]string{e.Key, string(e.Operator)}, e.Values...)))
	}
	return list(rows)
}

// own defines the selector of the pod's own workload, ownSelector and
// ownMatchKeys: what was known when the set was compiled, or else the labels
// that its controller puts on the pods, or else all lasting ones.
func (p *program) own(s Set) {
	selectors := p.table("knownSelectors", s.Known, func(k Known) (string, bool) {
		if k.Selector == nil {
			return "", false
		}
		return selectorRows(k.Selector), true
	})
	var labels, keys []string
	for _, k := range s.Kinds {
		name := k.Kind
		if k.Group != "" {
			name = k.Group + "/" + k.Kind
		}
		if len(k.Labels) > 0 {
			labels = append(labels, cel.Quote(name)+": "+texts(k.Labels))
		}
		if len(k.MatchKeys) > 0 {
			keys = append(keys, cel.Quote(name)+": "+texts(k.MatchKeys))
		}
	}
	p.define("kindLabels", "{\n  %s\n}[?variables.groupKind].orValue([])", strings.Join(append([]string{`"": [""]`}, labels...), ",\n  "))
	// The labels of the pod by which its controller, or else nothing but what lasts,
	// tells them.
	p.define("ownLabels", `variables.kindLabels.size() > 0 && variables.kindLabels.all(k, k in variables.labels)
  ? variables.kindLabels.transformMapEntry(i, k, {k: string(variables.labels[k])})
  : variables.labels.transformMapEntry(k, v, !(k in %s), {string(k): string(v)})`, texts(Volatile()))
	ofKind := "{\n  " + strings.Join(append([]string{`"": [""]`}, keys...), ",\n  ") + "\n}[?variables.groupKind].orValue([])"
	if selectors == noRow {
		p.define("ownSelector", `{?"matchLabels": optional.ofNonZeroValue(dyn(variables.ownLabels))}`)
		p.define("ownMatchKeys", "%s.filter(k, !(k in variables.ownLabels))", ofKind)
		return
	}
	p.define("ownRows", `%s.orValue(variables.ownLabels.transformList(k, v, [k, "=", v]))`, selectors)
	p.define("ownSelector", `{
    ?"matchLabels": optional.ofNonZeroValue(dyn(variables.ownRows.filter(r, r[1] == "=").transformMapEntry(i, r, {r[0]: r[2]}))),
    ?"matchExpressions": optional.ofNonZeroValue(dyn(variables.ownRows.filter(r, r[1] != "=").map(r, {
      "key": dyn(r[0]), "operator": dyn(r[1]), ?"values": optional.ofNonZeroValue(dyn(r.slice(2, r.size())))
    })))
  }`)
	p.define("ownMatchKeys", "%s.filter(k, !variables.ownRows.exists(r, r[0] == k))", ofKind)
}

// hasOwn is the condition that the pod's workload has pods of its own that can be
// told from others.
const hasOwn = "!" + DaemonSet + " && variables.ownSelector.size() > 0"

// domains defines the least numbers of domains that were found when the set was
// compiled, by topology key, and returns the expression for a key of it.
func (p *program) domains(s Set) func(key string) string {
	if !slices.ContainsFunc(s.Known, func(k Known) bool { return len(k.Domains) > 0 }) {
		return func(string) string { return "2" }
	}
	p.define("domains", `%s.orValue({"": 0})`, p.table("knownDomains", s.Known, func(k Known) (string, bool) {
		if len(k.Domains) == 0 {
			return "", false
		}
		values := map[string]any{}
		for key, n := range k.Domains {
			values[key] = n
		}
		text, _ := literal(values)
		return text, true
	}))
	return func(key string) string { return "variables.domains[?" + key + "].orValue(2)" }
}

// table defines a constant table by workload, and returns the expression that
// looks the pod's workload up: an optional.
func (p *program) table(name string, known []Known, value func(Known) (string, bool)) string {
	var rows []row
	for _, k := range known {
		text, ok := value(k)
		if !ok {
			continue
		}
		key := k.Namespace + "/" + k.Kind + "/" + k.Name
		if k.Group != "" {
			key = k.Namespace + "/" + k.Group + "/" + k.Kind + "/" + k.Name
		}
		rows = append(rows, row{cel.Quote(key), text})
	}
	return p.lookup(name, rows, `variables.podNamespace + "/" + variables.groupKind + "/" + variables.name`)
}

// usesOwn reports whether any wish counts the pods of the pod's own workload.
func (s Set) usesOwn() bool {
	return slices.ContainsFunc(s.Spreads, func(w Spread) bool { return w.Subject.Own }) ||
		slices.ContainsFunc(s.Colocations, func(c Colocation) bool { return c.Own })
}
