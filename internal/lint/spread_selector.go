package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// spreadNoSelector follows the scheduler's PodTopologySpread, for which a missing
// selector matches nothing and an empty one counts as zero pods. matchLabelKeys
// are added to an empty selector, which then selects.
func spreadNoSelector(t *template) {
	t.eachSpread(func(i int, c corev1.TopologySpreadConstraint) {
		if !selectsNothing(c) {
			return
		}
		what, at := "has no labelSelector", []any{i}
		if c.LabelSelector != nil {
			what, at = "has an empty labelSelector", []any{i, "labelSelector"}
		}
		f := t.report(diag.Error, fmt.Sprintf("the spread over %q %s, so that it counts no pods and constrains nothing; %s", c.TopologyKey, what, t.adviseSelector()), workload.SpreadConstraints, at...)
		s := t.ownSelector()
		switch {
		case s == "":
		case c.LabelSelector != nil:
			f.Fix = replace(f.Range, "write "+s, s)
		default:
			f.Fix = t.insert("write "+s, s, workload.SpreadConstraints, i)
		}
	})
}

func selectsNothing(c corev1.TopologySpreadConstraint) bool {
	if c.LabelSelector == nil {
		return true
	}
	return len(c.LabelSelector.MatchLabels)+len(c.LabelSelector.MatchExpressions)+len(c.MatchLabelKeys) == 0
}

// spreadMissesOwnPods is for selectors that select others.
func spreadMissesOwnPods(t *template) {
	t.eachSpread(func(i int, c corev1.TopologySpreadConstraint) {
		if selectsNothing(c) || t.selectsOwn(c.LabelSelector) || t.t.RunLabel != "" {
			return
		}
		f := t.report(diag.Warning, fmt.Sprintf("the spread over %q counts the pods with %s, which these are not, so that nothing keeps them from piling up; %s", c.TopologyKey, metav1.FormatLabelSelector(c.LabelSelector), t.adviseSelector()),
			workload.SpreadConstraints, i, "labelSelector")
		if s := t.ownSelector(); s != "" {
			f.Fix = replace(f.Range, "write "+s, s)
			f.Fix.Safe = false // whom it was meant for is not known
		}
	})
}

func (t *template) adviseSelector() string {
	if s := t.ownSelector(); s != "" {
		return "count its own pods, with " + s
	}
	return "give the pods a label, and select it"
}

// ownSelector is the YAML of the selector that counts the template's own pods:
// the workload's, or else all labels of the template. It is empty if the pods
// have no labels.
func (t *template) ownSelector() string {
	want := t.t.Labels
	if s := t.w.Selector; s != nil && len(s.MatchLabels) > 0 && len(s.MatchExpressions) == 0 && t.selectsOwn(&metav1.LabelSelector{MatchLabels: s.MatchLabels}) {
		want = s.MatchLabels
	}
	if len(want) == 0 {
		return ""
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(want)) {
		parts = append(parts, fmt.Sprintf("%s: %s", k, scalar(want[k])))
	}
	return fmt.Sprintf("labelSelector: {matchLabels: {%s}}", strings.Join(parts, ", "))
}

// scalar writes a label's value so that YAML reads it as text.
func scalar(v string) string {
	plain := v != "" && strings.Trim(v[:1], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
	if plain && !slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}, strings.ToLower(v)) {
		return v
	}
	return fmt.Sprintf("%q", v)
}
