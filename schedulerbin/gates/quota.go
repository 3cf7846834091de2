package gates

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/condition"
)

// room is what there is of a quota, and what is taken: by the pods that do not
// wait for it. The quota's own status counts those that do as well, since
// admission charged them when they were created, so that by it pods that wait for
// a larger quota would keep each other out.
type room struct {
	quota *corev1.ResourceQuota
	used  corev1.ResourceList
	err   error
}

// quota judges a condition about a ResourceQuota. others says that other gates of
// ours keep the pod anyway.
func (p *pass) quota(pod *corev1.Pod, want *condition.Quota, others bool) verdict {
	v := verdict{kind: condition.KindQuota, reason: ReasonQuota}
	r := p.roomOf(want.Name)
	if r.err != nil {
		v.note = r.err.Error()
		return v
	}
	if r.quota == nil {
		v.note = fmt.Sprintf("there is no resource quota %q", want.Name)
		return v
	}
	if others {
		v.reason, v.note = ReasonOtherGates, fmt.Sprintf("it takes room in resource quota %q when the pod's other gates are open", want.Name)
		return v
	}
	needs, err := p.needs(pod, r.quota)
	if err != nil {
		v.note = err.Error()
		return v
	}
	total := quota.Mask(quota.Add(r.used, needs), quota.ResourceNames(needs))
	fits, exceeded := quota.LessThanOrEqual(total, r.quota.Spec.Hard)
	if fits {
		v.open, v.note = true, fmt.Sprintf("resource quota %q has room for it", want.Name)
		return v
	}
	slices.Sort(exceeded)
	said := make([]string, len(exceeded))
	for i, resource := range exceeded {
		need, hard, used := needs[resource], r.quota.Spec.Hard[resource], r.used[resource]
		said[i] = fmt.Sprintf("%s (needs %s, %s of %s are taken)", resource, need.String(), used.String(), hard.String())
	}
	v.note = fmt.Sprintf("resource quota %q has no room for it: %s", want.Name, strings.Join(said, ", "))
	return v
}

// take gives the pod its room in the quotas of gates that are to be opened.
func (p *pass) take(pod *corev1.Pod, gates []string) {
	taken := map[string]bool{}
	for _, gate := range gates {
		c, err := condition.Of(pod.Annotations, gate)
		if err != nil || c.Quota == nil || taken[c.Quota.Name] {
			continue
		}
		taken[c.Quota.Name] = true
		r := p.roomOf(c.Quota.Name)
		if needs, err := p.needs(pod, r.quota); err == nil {
			r.used = quota.Add(r.used, needs)
		}
	}
}

// needs returns what the pod takes of what the quota bounds; nothing if the quota
// is not about such pods.
func (p *pass) needs(pod *corev1.Pod, of *corev1.ResourceQuota) (corev1.ResourceList, error) {
	matches, err := p.evaluator.Matches(of, pod)
	if err != nil {
		return nil, fmt.Errorf("match the pod with resource quota %q: %w", of.Name, err)
	}
	if !matches {
		return nil, nil
	}
	usage, err := p.evaluator.Usage(pod)
	if err != nil {
		return nil, fmt.Errorf("read what pod %q takes of resource quota %q: %w", pod.Name, of.Name, err)
	}
	bounded := p.evaluator.MatchingResources(quota.ResourceNames(of.Spec.Hard))
	return quota.RemoveZeros(quota.Mask(usage, bounded)), nil
}

// roomOf returns what there is of a quota. Without a quota there is none.
func (p *pass) roomOf(name string) *room {
	if r, ok := p.room[name]; ok {
		return r
	}
	r := &room{}
	p.room[name] = r
	o, exists, err := p.quotas.GetStore().GetByKey(p.namespace + "/" + name)
	if err != nil {
		r.err = fmt.Errorf("read resource quota %q: %w", name, err)
	}
	found, ok := o.(*corev1.ResourceQuota)
	if !exists || !ok {
		return r
	}
	r.quota = found.DeepCopy()
	// Upstream matches by the bounds in the status, which are written later.
	r.quota.Status.Hard = r.quota.Spec.Hard
	r.used = corev1.ResourceList{}
	pods, err := p.pods.GetIndexer().ByIndex("namespace", p.namespace)
	if err != nil {
		r.err = fmt.Errorf("list the pods that take of resource quota %q: %w", name, err)
	}
	for _, o := range pods {
		pod, ok := o.(*corev1.Pod)
		if !ok || p.waitsFor(pod, name) {
			continue
		}
		needs, err := p.needs(pod, r.quota)
		if err != nil {
			r.err = err
		}
		r.used = quota.Add(r.used, needs)
	}
	return r
}

// waitsFor reports whether the pod has a gate for the quota that was not opened.
func (p *pass) waitsFor(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(ourGates(pod), func(gate string) bool {
		c, err := condition.Of(pod.Annotations, gate)
		known := p.records[pod.UID]
		return err == nil && c.Quota != nil && c.Quota.Name == name && (known == nil || !known.opened[gate])
	})
}
