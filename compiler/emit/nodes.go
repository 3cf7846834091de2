package emit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/nodelabel"
	"github.com/kubectl-sched/kubectl-sched/internal/objectyaml"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// nodesHeader opens each file for those who make nodes; a file without it is not
// ours to replace.
const nodesHeader = "# Written by kubectl sched compile -o nodes from the placement policies. Do not\n" +
	"# edit: compile again when the policies change.\n"

// Nodes returns what those who make the nodes of the plan's pools have to be told,
// sorted by name: patches of NodePools, values for node groups, configuration of
// kubelets. Each says in comments for which pool it is, by which line of the
// policies, and how new nodes come by it. What somebody may not set is left out,
// and said. For pools that we write ourselves there is what their kubelets can
// register nodes with, so that new nodes leave no gap.
func Nodes(plan *compiler.Plan) ([]File, error) {
	var e nodeEmitter
	e.nodePools(plan.Nodes)
	for _, n := range plan.Nodes {
		switch n.ManagedBy {
		case policy.ManagedKarpenter: // by NodePool, above
		case policy.ManagedNodeGroup:
			for _, group := range nodeGroups {
				if n.Provider == "" || n.Provider == group.provider {
					group.emit(&e, n)
				}
			}
		case policy.ManagedKubelet:
			e.kubelet("kubelet/", n)
		case policy.ManagedLive:
			e.kubelet("live/", n)
		}
	}
	if e.err != nil {
		return nil, e.err
	}
	slices.SortFunc(e.files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return e.files, nil
}

// NodesText returns the files as one text for a reader, each under its name.
func NodesText(files []File) []byte {
	var b strings.Builder
	for i, f := range files {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "# ==> %s\n%s", f.Name, f.After)
	}
	return []byte(b.String())
}

// nodeGroups lists how the providers' node groups are told what a pool asks.
var nodeGroups = []struct {
	provider policy.Provider
	emit     func(*nodeEmitter, compiler.NodeEffect)
}{
	{policy.ProviderAKS, (*nodeEmitter).aks},
	{policy.ProviderClusterAPI, (*nodeEmitter).clusterAPI},
	{policy.ProviderEKS, (*nodeEmitter).eks},
	{policy.ProviderGKE, (*nodeEmitter).gke},
}

// nodeEmitter collects the files, and the first error.
type nodeEmitter struct {
	files []File
	err   error
}

// add adds a file: the comments, which are wrapped, and the body.
func (e *nodeEmitter) add(name string, comments []string, body string) {
	var b strings.Builder
	b.WriteString(nodesHeader)
	for _, c := range comments {
		b.WriteString(comment(c))
	}
	b.WriteString(body)
	e.files = append(e.files, File{Name: name, After: []byte(b.String())})
}

// yaml encodes a document.
func (e *nodeEmitter) yaml(document any) string {
	text, err := objectyaml.Marshal(document)
	if err != nil && e.err == nil {
		e.err = fmt.Errorf("encode what nodes need: %w", err)
	}
	return string(text)
}

// comment wraps a sentence into comment lines.
func comment(text string) string {
	const width = 78
	var b strings.Builder
	line := "#"
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > width && line != "#" {
			b.WriteString(line + "\n")
			line = "#  "
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
	return b.String()
}

// about says for which pool a file is, and where that is written.
func about(n compiler.NodeEffect) string {
	return fmt.Sprintf("Pool %q, managed by %s, asks for it: %s.", n.Pool, n.ManagedBy, places(n.Origins))
}

func places(origins []compiler.Origin) string {
	list := make([]string, len(origins))
	for i, o := range origins {
		list[i] = o.Range.Start.String()
	}
	return strings.Join(list, ", ")
}

func newNodes(n compiler.NodeEffect) string { return "New nodes: " + n.NewNodes() + "." }

// settable parts the labels into those that the maker can give its nodes, and
// comments on those that it cannot.
func settable(maker nodelabel.Maker, n compiler.NodeEffect) (map[string]string, []string) {
	labels := map[string]string{}
	var comments []string
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		if why := maker.Refusal(key); why != "" {
			comments = append(comments, fmt.Sprintf("Left out: label %s=%s, because %s. %s can.", key, n.Labels[key], why, nodelabel.Setters(key)))
			continue
		}
		labels[key] = n.Labels[key]
	}
	return labels, comments
}

// tainting is settable for taints.
func tainting(maker nodelabel.Maker, n compiler.NodeEffect) ([]corev1.Taint, []string) {
	var taints []corev1.Taint
	var comments []string
	for _, t := range n.Taints {
		if why := maker.TaintRefusal(t.Key); why != "" {
			comments = append(comments, fmt.Sprintf("Left out: taint %s, because %s.", t.ToString(), why))
			continue
		}
		taints = append(taints, t)
	}
	return taints, comments
}

// demands comments on what the pool's description asks of nodes that no label
// or taint can give them.
func demands(n compiler.NodeEffect) []string {
	if len(n.Selector) > 1 {
		var terms []string
		for _, t := range n.Selector {
			terms = append(terms, "("+requirementsText(t.MatchExpressions, t.MatchFields)+")")
		}
		return []string{"The pool's nodes meet any one of: " + strings.Join(terms, " or ") + "."}
	}
	if len(n.Requirements) == 0 {
		return nil
	}
	return []string{"Besides, the pool's nodes are those with " + requirementsText(n.Requirements, nil) + "; make such nodes."}
}

func requirementsText(lists ...[]corev1.NodeSelectorRequirement) string {
	var parts []string
	for _, r := range slices.Concat(lists...) {
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Key, r.Operator, strings.Join(r.Values, ", "))))
	}
	return strings.Join(parts, " and ")
}

// pairs lists labels as key=value, sorted.
func pairs(labels map[string]string) []string {
	list := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		list = append(list, key+"="+labels[key])
	}
	return list
}

// taintPairs lists taints as key=value:effect, the way flags have them.
func taintPairs(taints []corev1.Taint) []string {
	list := make([]string, len(taints))
	for i, t := range taints {
		list[i] = fmt.Sprintf("%s=%s:%s", t.Key, t.Value, t.Effect)
	}
	return list
}

// plainTaints are the taints without what only a node has of them.
func plainTaints(taints []corev1.Taint) []map[string]any {
	list := make([]map[string]any, len(taints))
	for i, t := range taints {
		list[i] = map[string]any{"key": t.Key, "effect": string(t.Effect)}
		if t.Value != "" {
			list[i]["value"] = t.Value
		}
	}
	return list
}

// upperEffect is the spelling of an effect in the APIs of EKS and GKE.
func upperEffect(effect corev1.TaintEffect) string {
	switch effect {
	case corev1.TaintEffectNoSchedule:
		return "NO_SCHEDULE"
	case corev1.TaintEffectNoExecute:
		return "NO_EXECUTE"
	case corev1.TaintEffectPreferNoSchedule:
		return "PREFER_NO_SCHEDULE"
	}
	return string(effect)
}

// terraformLabels writes a map of labels, indented by so many spaces.
func terraformLabels(name string, labels map[string]string, indent int) string {
	if len(labels) == 0 {
		return ""
	}
	var b strings.Builder
	pad := strings.Repeat(" ", indent)
	fmt.Fprintf(&b, "%s%s = {\n", pad, name)
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&b, "%s  %q = %q\n", pad, key, labels[key])
	}
	fmt.Fprintf(&b, "%s}\n", pad)
	return b.String()
}

// terraformTaints writes a block for each taint, indented by so many spaces.
func terraformTaints(taints []corev1.Taint, indent int) string {
	var b strings.Builder
	pad := strings.Repeat(" ", indent)
	for _, t := range taints {
		fmt.Fprintf(&b, "%staint {\n%s  key    = %q\n%s  value  = %q\n%s  effect = %q\n%s}\n", pad, pad, t.Key, pad, t.Value, pad, upperEffect(t.Effect), pad)
	}
	return b.String()
}

// command writes a command over several lines.
func command(parts ...string) string { return strings.Join(parts, " \\\n  ") + "\n" }
