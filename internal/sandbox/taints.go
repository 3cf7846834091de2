package sandbox

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// taints reads a list of taints, each a mapping (key, value, effect) or a text
// as kubectl taint takes it: "key=value:Effect" or "key:Effect".
func (p *poolParser) taints(n *yaml.Node) []corev1.Taint {
	var taints []corev1.Taint
	for _, item := range p.list(n, "taints") {
		before := len(p.findings)
		taint := p.taint(item)
		if len(p.findings) > before {
			continue
		}
		if err := validateTaint(taint); err != nil {
			p.report(item, "%v", err)
			continue
		}
		if slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
			p.report(item, "the taint %s is there twice; a node has one of each key and effect", taint.ToString())
			continue
		}
		taints = append(taints, taint)
	}
	return taints
}

func (p *poolParser) taint(n *yaml.Node) corev1.Taint {
	var taint corev1.Taint
	if n.Kind == yaml.ScalarNode {
		pair, effect, _ := strings.Cut(p.text(n, "a taint"), ":")
		taint.Key, taint.Value, _ = strings.Cut(pair, "=")
		taint.Effect = corev1.TaintEffect(effect)
		return taint
	}
	p.fields(n, "a taint", map[string]func(*yaml.Node){
		"key":    func(v *yaml.Node) { taint.Key = p.text(v, "key") },
		"value":  func(v *yaml.Node) { taint.Value = p.text(v, "value") },
		"effect": func(v *yaml.Node) { taint.Effect = corev1.TaintEffect(p.text(v, "effect")) },
	})
	return taint
}

func validateTaint(t corev1.Taint) error {
	if problems := validation.IsQualifiedName(t.Key); len(problems) > 0 {
		return fmt.Errorf("the taint's key %q is not a label key: %s", t.Key, first(problems))
	}
	if problems := validation.IsValidLabelValue(t.Value); len(problems) > 0 {
		return fmt.Errorf("the taint's value %q is not a label value: %s", t.Value, first(problems))
	}
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	if !slices.Contains(effects, t.Effect) {
		return fmt.Errorf("the taint's effect is %q; it must be NoSchedule, PreferNoSchedule or NoExecute (\"key=value:NoSchedule\")", t.Effect)
	}
	return nil
}
