package preview

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/trim"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/condition"
)

// quotas says which ResourceQuotas of the namespace have no room for so many pods
// like this one, whatever else is in it.
func (x *explainer) quotas(pod *corev1.Pod, n int) []string {
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	limits := resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{})
	var lines []string
	for _, quota := range x.request.Snapshot.ResourceQuotas {
		if quota.Namespace != pod.Namespace {
			continue
		}
		for _, name := range sortedResources(quota.Spec.Hard) {
			each, ok := charged(name, requests, limits)
			if !ok || each.IsZero() {
				continue
			}
			all, hard := resource.NewMilliQuantity(each.MilliValue()*int64(n), each.Format), quota.Spec.Hard[name]
			if all.Cmp(hard) > 0 {
				lines = append(lines, fmt.Sprintf("ResourceQuota %s allows %s of %s, and %d members need %s", quota.Name, hard.String(), name, n, all.String()))
			}
		}
	}
	return lines
}

// charged is what a pod counts for in a quota of the resource, and false for
// resources that pods are not charged by their requests for.
func charged(name corev1.ResourceName, requests, limits corev1.ResourceList) (resource.Quantity, bool) {
	if name == corev1.ResourcePods || name == "count/pods" {
		return *resource.NewQuantity(1, resource.DecimalSI), true
	}
	if of, ok := strings.CutPrefix(string(name), "limits."); ok {
		q, has := limits[corev1.ResourceName(of)]
		return q, has
	}
	q, has := requests[corev1.ResourceName(strings.TrimPrefix(string(name), "requests."))]
	return q, has
}

func sortedResources(list corev1.ResourceList) []corev1.ResourceName {
	names := make([]corev1.ResourceName, 0, len(list))
	for name := range list {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// room says what is in the way of the pod in a ResourceQuota. What others take is what
// the pods of the namespace ask for that do not wait for it as well.
func (x *explainer) room(pod *corev1.Pod, name string) string {
	for _, quota := range x.request.Snapshot.ResourceQuotas {
		if quota.Namespace != pod.Namespace || quota.Name != name {
			continue
		}
		var short []string
		for _, resourceName := range sortedResources(quota.Spec.Hard) {
			needs, ok := takes(pod, resourceName)
			if !ok || needs.IsZero() {
				continue
			}
			used := x.used(resourceName, func(other *corev1.Pod) bool {
				return other.Namespace == pod.Namespace && other.Name != pod.Name && !waitsForQuota(other, name)
			})
			total, hard := used.DeepCopy(), quota.Spec.Hard[resourceName]
			if total.Add(needs); total.Cmp(hard) > 0 {
				short = append(short, fmt.Sprintf("%s (needs %s, %s of %s are taken)", resourceName, needs.String(), used.String(), hard.String()))
			}
		}
		if len(short) == 0 {
			return fmt.Sprintf("waits for room in ResourceQuota %s, which there is", name)
		}
		return fmt.Sprintf("waits for room in ResourceQuota %s: %s", name, strings.Join(short, ", "))
	}
	return fmt.Sprintf("waits for ResourceQuota %s, which does not exist", name)
}

// used is what the pods take together that count and have not ended.
func (x *explainer) used(name corev1.ResourceName, counts func(*corev1.Pod) bool) resource.Quantity {
	sum := resource.Quantity{}
	for _, pod := range x.request.Snapshot.Pods {
		if counts(pod) && !trim.Ended(pod) {
			q, _ := takes(pod, name)
			sum.Add(q)
		}
	}
	return sum
}

// takes is what the pod counts for in a quota of the resource.
func takes(pod *corev1.Pod, name corev1.ResourceName) (resource.Quantity, bool) {
	return charged(name, resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}), resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{}))
}

// waitsForQuota reports whether the pod has a gate for the quota.
func waitsForQuota(pod *corev1.Pod, quota string) bool {
	for _, g := range pod.Spec.SchedulingGates {
		if c, err := condition.Of(pod.Annotations, g.Name); condition.Ours(g.Name) && err == nil && c.Quota != nil && c.Quota.Name == quota {
			return true
		}
	}
	return false
}

// elasticQuotas says which limits of ElasticQuotas the pod would exceed. It is a plugin
// that none of the known schedulers may have that applies them: CapacityScheduling
// (scheduler-plugins, pkg/capacityscheduling) turns a pod away where its namespace
// would use more than max, or all quotas together more than the sum of their mins.
func (x *explainer) elasticQuotas(pod *corev1.Pod) []string {
	own := slices.IndexFunc(x.request.Snapshot.ElasticQuotas, func(q *unstructured.Unstructured) bool { return q.GetNamespace() == pod.Namespace })
	if own < 0 {
		return nil
	}
	quota := x.request.Snapshot.ElasticQuotas[own]
	most := quantities(quota, "spec", "max")
	namespaces, least := map[string]bool{}, corev1.ResourceList{}
	for _, q := range x.request.Snapshot.ElasticQuotas {
		namespaces[q.GetNamespace()] = true
		for name, guaranteed := range quantities(q, "spec", "min") {
			sum := least[name]
			sum.Add(guaranteed)
			least[name] = sum
		}
	}
	const who = "a scheduler with the plugin CapacityScheduling does not place it"
	var lines []string
	for _, name := range sortedResources(most) {
		if over := x.over(pod, name, most[name], func(namespace string) bool { return namespace == pod.Namespace }); over != "" {
			lines = append(lines, fmt.Sprintf("ElasticQuota %s has a max for %s that the pod would exceed (%s): %s", quota.GetName(), name, over, who))
		}
	}
	for _, name := range sortedResources(least) {
		if over := x.over(pod, name, least[name], func(namespace string) bool { return namespaces[namespace] }); over != "" {
			lines = append(lines, fmt.Sprintf("the ElasticQuotas of the cluster have mins for %s whose sum the pod would exceed (%s), so nothing is left to borrow: %s", name, over, who))
		}
	}
	return lines
}

// over says by what the pod would exceed the limit, with the pods that have a node in
// the namespaces; empty where it would not.
func (x *explainer) over(pod *corev1.Pod, name corev1.ResourceName, limit resource.Quantity, in func(namespace string) bool) string {
	needs, ok := takes(pod, name)
	if !ok || needs.IsZero() {
		return ""
	}
	used := x.used(name, func(other *corev1.Pod) bool { return in(other.Namespace) && other.Spec.NodeName != "" })
	total := used.DeepCopy()
	if total.Add(needs); total.Cmp(limit) <= 0 {
		return ""
	}
	return fmt.Sprintf("needs %s, %s of %s are taken", needs.String(), used.String(), limit.String())
}
