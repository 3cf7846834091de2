package adopt

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/nodeexpr"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// stripped returns the workload without the placement that is imported: what is
// left alone stays.
func stripped(w *workload.Workload, templates []*template) *workload.Workload {
	out := *w
	out.Templates = append([]workload.Template(nil), w.Templates...)
	for _, t := range templates {
		out.Templates[t.index].Pods = t.rest()
	}
	return &out
}

// rest is the placement that is left alone.
func (t *template) rest() workload.PodFields {
	have := t.t.Pods
	out := workload.PodFields{SchedulingGroup: have.SchedulingGroup, Labels: have.Labels, Annotations: have.Annotations, Env: have.Env}
	var demands corev1.NodeSelectorTerm
	affinity := func() *corev1.Affinity {
		if out.Affinity == nil {
			out.Affinity = &corev1.Affinity{}
		}
		return out.Affinity
	}
	nodes := func() *corev1.NodeAffinity {
		if a := affinity(); a.NodeAffinity == nil {
			a.NodeAffinity = &corev1.NodeAffinity{}
		}
		return out.Affinity.NodeAffinity
	}
	for _, p := range t.pieces {
		if p.phrases[p.choice].rank != unsaid {
			continue
		}
		switch v := p.value.(type) {
		case selectorLabel:
			out.NodeSelector = with(out.NodeSelector, v.Key, v.Value)
		case nodeexpr.Requirement:
			term := termOf(v)
			demands.MatchExpressions = append(demands.MatchExpressions, term.MatchExpressions...)
			demands.MatchFields = append(demands.MatchFields, term.MatchFields...)
			nodes().RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{demands}}
		case *corev1.NodeSelector:
			nodes().RequiredDuringSchedulingIgnoredDuringExecution = v
		case corev1.PreferredSchedulingTerm:
			nodes().PreferredDuringSchedulingIgnoredDuringExecution = append(nodes().PreferredDuringSchedulingIgnoredDuringExecution, v)
		case podTerm:
			v.putInto(affinity(), p.sort == sortApart)
		case corev1.TopologySpreadConstraint:
			out.TopologySpreadConstraints = append(out.TopologySpreadConstraints, v)
		case corev1.Toleration:
			out.Tolerations = append(out.Tolerations, v)
		case priority:
			out.PriorityClassName = v.Class
			if v.Preemption != "" {
				out.PreemptionPolicy = new(corev1.PreemptionPolicy(v.Preemption))
			}
		case string:
			switch p.sort {
			case sortScheduler:
				out.SchedulerName = v
			case sortGate:
				out.SchedulingGates = append(out.SchedulingGates, corev1.PodSchedulingGate{Name: v})
			default:
				out.PreemptionPolicy = new(corev1.PreemptionPolicy(v))
			}
		}
	}
	return out
}

// putInto adds the term to the affinity.
func (t podTerm) putInto(a *corev1.Affinity, apart bool) {
	var required *[]corev1.PodAffinityTerm
	var preferred *[]corev1.WeightedPodAffinityTerm
	if apart {
		if a.PodAntiAffinity == nil {
			a.PodAntiAffinity = &corev1.PodAntiAffinity{}
		}
		required, preferred = &a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, &a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	} else {
		if a.PodAffinity == nil {
			a.PodAffinity = &corev1.PodAffinity{}
		}
		required, preferred = &a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, &a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	}
	if t.Required {
		*required = append(*required, t.Term)
	} else {
		*preferred = append(*preferred, corev1.WeightedPodAffinityTerm{Weight: t.Weight, PodAffinityTerm: t.Term})
	}
}
