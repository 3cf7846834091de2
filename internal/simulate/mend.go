package simulate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	resourcehelper "k8s.io/component-helpers/resource"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/kubectl-sched/kubectl-sched/internal/simulate/engine"
)

// Edit is one change that could let a pod fit.
type Edit struct {
	// Text says what to change: "tolerate pool=gpu:NoSchedule".
	Text string
	// Plugin is whose objection it meets.
	Plugin string

	apply func(*corev1.Pod)
}

// Mend returns the smallest change that lets the pod fit a node as things are: one
// edit, else two; nil if there is none. Of equal ones it is the first, in the order
// of domains not counted, tolerations, constraints relaxed and room. Each has been tried. It stops
// looking when the budget is spent, and then reports that as not all.
func (w *World) Mend(ctx context.Context, pod *corev1.Pod, budget time.Duration) (edits []Edit, all bool, err error) {
	deadline := time.Now().Add(budget)
	trial, err := w.engine.Try(ctx, pod)
	if err != nil || trial.Feasible > 0 {
		return nil, true, err
	}
	candidates := w.edits(pod, trial)
	fits := func(list ...Edit) (bool, error) {
		edited := pod.DeepCopy()
		for _, e := range list {
			e.apply(edited)
		}
		t, err := w.engine.Try(ctx, edited)
		return err == nil && t.Feasible > 0, err
	}
	for _, e := range candidates {
		if ok, err := fits(e); ok || err != nil {
			return []Edit{e}, true, err
		}
	}
	for i, a := range candidates {
		for _, b := range candidates[i+1:] {
			if time.Now().After(deadline) {
				return nil, false, nil
			}
			if ok, err := fits(a, b); ok || err != nil {
				return []Edit{a, b}, true, err
			}
		}
	}
	return nil, true, nil
}

// most is how many plugins may object to a node that two edits can still open.
const most = 2

// edits returns the edits that could meet the objections to nodes that few plugins
// object to.
func (w *World) edits(pod *corev1.Pod, trial engine.Trial) []Edit {
	plugins := sets.New[string]()
	var near []*corev1.Node
	for _, node := range w.sortedNodes() {
		blockers := trial.Blockers[node.Name]
		if len(blockers) == 0 || len(blockers) > most {
			continue
		}
		near = append(near, node)
		for _, b := range blockers {
			plugins.Insert(b.Plugin)
		}
	}
	var edits []Edit
	if plugins.Has("PodTopologySpread") {
		edits = append(edits, counted(pod)...)
	}
	if plugins.Has("TaintToleration") {
		edits = append(edits, tolerations(pod, near)...)
	}
	if plugins.Has("NodeUnschedulable") {
		edits = append(edits, Edit{Text: "uncordon a node, or tolerate " + corev1.TaintNodeUnschedulable, Plugin: "NodeUnschedulable", apply: func(p *corev1.Pod) {
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
		}})
	}
	if plugins.Has("NodeAffinity") {
		edits = append(edits, nodeAffinity(pod)...)
	}
	if plugins.Has("PodTopologySpread") {
		edits = append(edits, spreads(pod)...)
	}
	if plugins.Has("InterPodAffinity") {
		edits = append(edits, podAffinity(pod)...)
	}
	if plugins.Has("NodePorts") {
		edits = append(edits, Edit{Text: "do without the host port", Plugin: "NodePorts", apply: func(p *corev1.Pod) {
			for i := range p.Spec.Containers {
				p.Spec.Containers[i].Ports = nil
			}
		}})
	}
	if plugins.Has("NodeResourcesFit") {
		edits = append(edits, w.room(pod, near)...)
	}
	return edits
}

// tolerations has one edit for each taint that the pod does not tolerate.
func tolerations(pod *corev1.Pod, nodes []*corev1.Node) []Edit {
	var edits []Edit
	seen := sets.New[string]()
	for _, node := range nodes {
		for _, taint := range node.Spec.Taints {
			if taint.Effect == corev1.TaintEffectPreferNoSchedule || seen.Has(taint.ToString()) {
				continue
			}
			if tolerated(pod, taint) {
				continue
			}
			seen.Insert(taint.ToString())
			edits = append(edits, Edit{Text: "tolerate " + taint.ToString(), Plugin: "TaintToleration", apply: func(p *corev1.Pod) {
				p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpEqual, Value: taint.Value, Effect: taint.Effect})
			}})
		}
	}
	return edits
}

func tolerated(pod *corev1.Pod, taint corev1.Taint) bool {
	return corev1helpers.TolerationsTolerateTaint(logr.Discard(), pod.Spec.Tolerations, &taint, false)
}

// nodeAffinity has one edit for each part of what the pod requires of its node.
func nodeAffinity(pod *corev1.Pod) []Edit {
	var edits []Edit
	for _, key := range sets.List(sets.KeySet(pod.Spec.NodeSelector)) {
		edits = append(edits, Edit{Text: fmt.Sprintf("do without the node selector %s=%s, or label a node so", key, pod.Spec.NodeSelector[key]), Plugin: "NodeAffinity", apply: func(p *corev1.Pod) {
			delete(p.Spec.NodeSelector, key)
		}})
	}
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for i, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for k, r := range term.MatchExpressions {
				edits = append(edits, Edit{Text: "do without the required node affinity " + requirement(r) + ", or label a node so", Plugin: "NodeAffinity", apply: func(p *corev1.Pod) {
					t := &p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[i]
					t.MatchExpressions = without(t.MatchExpressions, k, r)
					if len(t.MatchExpressions)+len(t.MatchFields) == 0 {
						p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
					}
				}})
			}
		}
	}
	return edits
}

// without returns the requirements but for r, which was the k-th before any other
// edit.
func without(list []corev1.NodeSelectorRequirement, k int, r corev1.NodeSelectorRequirement) []corev1.NodeSelectorRequirement {
	for i := min(k, len(list)-1); i >= 0; i-- {
		if requirement(list[i]) == requirement(r) {
			return slices.Delete(list, i, i+1)
		}
	}
	return list
}

func requirement(r corev1.NodeSelectorRequirement) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Key, r.Operator, strings.Join(r.Values, ",")))
}

// counted has one edit for each hard spread constraint that counts nodes which the
// pod does not tolerate, and so domains which it cannot be in.
func counted(pod *corev1.Pod) []Edit {
	var edits []Edit
	honor := corev1.NodeInclusionPolicyHonor
	for i, c := range pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable == corev1.DoNotSchedule && (c.NodeTaintsPolicy == nil || *c.NodeTaintsPolicy != honor) {
			edits = append(edits, Edit{Text: "count only nodes whose taints it tolerates (nodeTaintsPolicy: Honor) in the spread over " + c.TopologyKey, Plugin: "PodTopologySpread", apply: func(p *corev1.Pod) {
				p.Spec.TopologySpreadConstraints[i].NodeTaintsPolicy = &honor
			}})
		}
	}
	return edits
}

// spreads has one edit for each hard spread constraint.
func spreads(pod *corev1.Pod) []Edit {
	var edits []Edit
	for i, c := range pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable == corev1.DoNotSchedule {
			edits = append(edits, Edit{Text: "prefer the spread over " + c.TopologyKey + " instead of requiring it", Plugin: "PodTopologySpread", apply: func(p *corev1.Pod) {
				p.Spec.TopologySpreadConstraints[i].WhenUnsatisfiable = corev1.ScheduleAnyway
				p.Spec.TopologySpreadConstraints[i].MinDomains = nil
			}})
		}
	}
	return edits
}

// podAffinity has one edit for each required term.
func podAffinity(pod *corev1.Pod) []Edit {
	var edits []Edit
	a := pod.Spec.Affinity
	if a == nil {
		return nil
	}
	if a.PodAffinity != nil {
		for i, t := range a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			edits = append(edits, Edit{Text: "prefer to be together in one " + t.TopologyKey + " instead of requiring it", Plugin: "InterPodAffinity", apply: func(p *corev1.Pod) {
				terms := p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
				p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = cut(terms, i, len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution))
			}})
		}
	}
	if a.PodAntiAffinity != nil {
		for i, t := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			edits = append(edits, Edit{Text: "prefer to be apart by " + t.TopologyKey + " instead of requiring it", Plugin: "InterPodAffinity", apply: func(p *corev1.Pod) {
				terms := p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
				p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = cut(terms, i, len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution))
			}})
		}
	}
	return edits
}

// cut returns the terms without the i-th of n; another edit may have cut one that
// came before it.
func cut(terms []corev1.PodAffinityTerm, i, n int) []corev1.PodAffinityTerm {
	i -= n - len(terms)
	if i < 0 {
		i = 0
	}
	return slices.Delete(slices.Clone(terms), i, i+1)
}

// room has one edit for each resource that runs short: as much less of it as the
// node that is nearest needs.
func (w *World) room(pod *corev1.Pod, nodes []*corev1.Node) []Edit {
	var edits []Edit
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		short, taken := int64(0), w.requested(pod, name)
		for _, node := range nodes {
			free := node.Status.Allocatable[name]
			if n := milli(pod, name) - (free.MilliValue() - taken[node.Name]); n > 0 && (short == 0 || n < short) {
				short = n
			}
		}
		if short == 0 {
			continue
		}
		amount := resource.NewMilliQuantity(short, resource.DecimalSI)
		if name == corev1.ResourceMemory {
			amount = resource.NewQuantity((short+999)/1000, resource.BinarySI)
		}
		edits = append(edits, Edit{Text: fmt.Sprintf("free %s more %s on a node, or ask for so much less", amount, name), Plugin: "NodeResourcesFit", apply: func(p *corev1.Pod) { reduce(p, name, short) }})
	}
	return edits
}

// requested is what the pods on each node ask for of the resource, in thousandths,
// without the pod itself.
func (w *World) requested(but *corev1.Pod, name corev1.ResourceName) map[string]int64 {
	taken := map[string]int64{}
	for pod := range w.pods {
		if other, ok := w.engine.Pod(pod); ok && other.UID != but.UID {
			taken[other.Spec.NodeName] += milli(other, name)
		}
	}
	return taken
}

// milli is what the pod asks for of the resource, in thousandths.
func milli(pod *corev1.Pod, name corev1.ResourceName) int64 {
	q := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})[name]
	return q.MilliValue()
}

// reduce takes the amount, in thousandths, from what the pod's containers ask for.
func reduce(pod *corev1.Pod, name corev1.ResourceName, amount int64) {
	for i := range pod.Spec.Containers {
		requests := pod.Spec.Containers[i].Resources.Requests
		q, ok := requests[name]
		if !ok || amount <= 0 {
			continue
		}
		take := min(amount, q.MilliValue())
		amount -= take
		requests[name] = *resource.NewMilliQuantity(q.MilliValue()-take, q.Format)
	}
}
