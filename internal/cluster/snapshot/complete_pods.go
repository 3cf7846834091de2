package snapshot

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// completeNodes fills in what a kubelet says of its node.
func completeNodes(s *Snapshot) {
	for _, n := range s.Nodes {
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		if n.Labels[corev1.LabelHostname] == "" {
			n.Labels[corev1.LabelHostname] = n.Name
		}
		if n.Status.Allocatable == nil && n.Status.Capacity != nil {
			n.Status.Allocatable = maps.Clone(n.Status.Capacity)
		}
		for _, list := range []*corev1.ResourceList{&n.Status.Capacity, &n.Status.Allocatable} {
			if *list == nil {
				*list = corev1.ResourceList{}
			}
			if _, ok := (*list)[corev1.ResourcePods]; !ok {
				(*list)[corev1.ResourcePods] = resource.MustParse(kubeletMaxPods)
			}
		}
	}
}

// kubeletMaxPods is how many pods a kubelet takes if nothing else is said
// (pkg/kubelet/apis/config/v1beta1/defaults.go).
const kubeletMaxPods = "110"

// The classes that every cluster has (pkg/apis/scheduling/types.go).
var systemClasses = map[string]int32{"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}

// completeClasses adds the classes that the API server makes by itself.
func (t *textReader) completeClasses() {
	lower := corev1.PreemptLowerPriority
	for _, name := range slices.Sorted(maps.Keys(systemClasses)) {
		if !slices.ContainsFunc(t.s.PriorityClasses, func(c *schedulingv1.PriorityClass) bool { return c.Name == name }) {
			class := &schedulingv1.PriorityClass{Value: systemClasses[name]}
			class.Name = name
			t.s.PriorityClasses = append(t.s.PriorityClasses, class)
		}
	}
	for _, c := range t.s.PriorityClasses {
		if c.PreemptionPolicy == nil {
			c.PreemptionPolicy = &lower
		}
	}
}

func (t *textReader) completePods() {
	classes := map[string]*schedulingv1.PriorityClass{}
	for _, c := range t.s.PriorityClasses {
		classes[c.Name] = c
	}
	byDefault := DefaultPriorityClass(t.s.PriorityClasses)
	for _, p := range t.s.Pods {
		completePodSpec(&p.Spec)
		RequestLimits(&p.Spec)
		t.prioritise(p, classes, byDefault)
		TolerateForAWhile(&p.Spec)
		if p.Status.Phase == "" {
			p.Status.Phase = corev1.PodPending
			if p.Spec.NodeName != "" {
				p.Status.Phase = corev1.PodRunning
			}
		}
	}
}

// completePodSpec fills in what pods and pod templates have in common.
func completePodSpec(s *corev1.PodSpec) {
	if s.RestartPolicy == "" {
		s.RestartPolicy = corev1.RestartPolicyAlways
	}
	if s.SchedulerName == "" {
		s.SchedulerName = corev1.DefaultSchedulerName
	}
	if s.TerminationGracePeriodSeconds == nil {
		s.TerminationGracePeriodSeconds = new(int64(corev1.DefaultTerminationGracePeriodSeconds))
	}
	for _, containers := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range containers {
			for j := range containers[i].Ports {
				port := &containers[i].Ports[j]
				if port.Protocol == "" {
					port.Protocol = corev1.ProtocolTCP
				}
				if s.HostNetwork && port.HostPort == 0 {
					port.HostPort = port.ContainerPort
				}
			}
		}
	}
	for i := range s.Volumes {
		if e := s.Volumes[i].Ephemeral; e != nil && e.VolumeClaimTemplate != nil && e.VolumeClaimTemplate.Spec.VolumeMode == nil {
			e.VolumeClaimTemplate.Spec.VolumeMode = new(corev1.PersistentVolumeFilesystem)
		}
	}
	if g := s.SchedulingGroup; g != nil && g.PodGroupName != nil && *g.PodGroupName == "" {
		s.SchedulingGroup = nil
	}
}

// RequestLimits makes the requests of containers, and of the pod itself, of limits
// where there are none. The API server does so for pods, and not for templates.
func RequestLimits(s *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range containers {
			r := &containers[i].Resources
			for name, limit := range r.Limits {
				if _, ok := r.Requests[name]; !ok {
					if r.Requests == nil {
						r.Requests = corev1.ResourceList{}
					}
					r.Requests[name] = limit.DeepCopy()
				}
			}
		}
	}
	if s.Resources == nil || len(s.Resources.Limits) == 0 {
		return
	}
	// What the pod as a whole asks for is what its containers do, where they say, and
	// else its limit (defaultPodRequests).
	asked := resourcehelper.AggregateContainerRequests(&corev1.Pod{Spec: *s}, resourcehelper.PodResourcesOptions{})
	requests := corev1.ResourceList{}
	maps.Copy(requests, s.Resources.Requests)
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if quantity, ok := asked[name]; ok {
			if _, ok := requests[name]; !ok {
				requests[name] = quantity.DeepCopy()
			}
		}
	}
	for name, limit := range s.Resources.Limits {
		if _, ok := requests[name]; !ok && resourcehelper.IsSupportedPodLevelResource(name) {
			requests[name] = limit.DeepCopy()
		}
	}
	s.Resources.Requests = requests
}

// prioritise sets the pod's priority as admission does: from its class, or from the
// default one. A class that is not there is a mistake only where the pod's priority
// hangs on it: those of a cluster keep theirs when it is removed or cannot be read.
func (t *textReader) prioritise(p *corev1.Pod, classes map[string]*schedulingv1.PriorityClass, byDefault *schedulingv1.PriorityClass) {
	class := classes[p.Spec.PriorityClassName]
	switch {
	case p.Spec.PriorityClassName == "" && byDefault != nil && p.Spec.Priority == nil:
		class, p.Spec.PriorityClassName = byDefault, byDefault.Name
	case p.Spec.PriorityClassName != "" && class == nil && p.Spec.Priority == nil:
		hint := "write the class down, or take the name out"
		if near, ok := diag.Nearest(p.Spec.PriorityClassName, slices.Collect(maps.Keys(classes))); ok {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		t.fail(t.places[p], "Pod "+nameOf(p), fmt.Sprintf("there is no priority class %q; %s", p.Spec.PriorityClassName, hint), "spec", "priorityClassName")
		return
	}
	Prioritise(&p.Spec, class)
}
