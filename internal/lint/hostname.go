package lint

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// hostnameIsNotName looks for values of the hostname label that are the name of
// a node whose label says something else.
func hostnameIsNotName(t *template) {
	if !t.caps().NodesKnown {
		return
	}
	if v, ok := t.t.Pods.NodeSelector[corev1.LabelHostname]; ok {
		t.checkHostname(v, workload.NodeSelector, corev1.LabelHostname)
	}
	for i, term := range nodeTerms(t.t.Pods) {
		for j, e := range term.MatchExpressions {
			if e.Key != corev1.LabelHostname || e.Operator != corev1.NodeSelectorOpIn {
				continue
			}
			for k, v := range e.Values {
				t.checkHostname(v, workload.NodeAffinity, requiredTerms, "nodeSelectorTerms", i, "matchExpressions", j, "values", k)
			}
		}
	}
}

func (t *template) checkHostname(value string, f workload.Field, below ...any) {
	nodes := t.caps().Nodes
	if slices.ContainsFunc(nodes, func(n capability.Node) bool { return n.Labels[corev1.LabelHostname] == value }) {
		return
	}
	i := slices.IndexFunc(nodes, func(n capability.Node) bool { return n.Name == value })
	if i < 0 {
		return
	}
	message := fmt.Sprintf("no node has the hostname label %q, which is the name of a node; ", value)
	if label, ok := nodes[i].Labels[corev1.LabelHostname]; ok {
		message += fmt.Sprintf("write %q, the label that it has, or matchFields with metadata.name", label)
	} else {
		message += "it has no hostname label: use matchFields with metadata.name"
	}
	finding := t.report(diag.Warning, message, f, below...)
	if label, ok := nodes[i].Labels[corev1.LabelHostname]; ok {
		text := scalar(label)
		if f == workload.NodeSelector {
			text = corev1.LabelHostname + ": " + text
		}
		finding.Fix = replace(finding.Range, "write "+label, text)
	}
}
