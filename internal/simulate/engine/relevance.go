package engine

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/helper"
)

// relevance says which pods on nodes the plugins that look across nodes could
// count for a pod that waits, so that the others can be left out of what they look
// at. It may say yes too often, never too seldom: the plugins themselves decide.
type relevance struct {
	pod       *corev1.Pod
	info      fwk.PodInfo
	labels    labels.Set // of the pod's namespace
	selectors []labels.Selector
	factory   informers.SharedInformerFactory
	known     map[*kind]bool
}

func newRelevance(pod *corev1.Pod, factory informers.SharedInformerFactory) (*relevance, error) {
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return nil, err
	}
	r := &relevance{pod: pod, info: info, factory: factory, known: map[*kind]bool{}}
	r.labels = r.namespace(pod.Namespace)
	for _, constraint := range pod.Spec.TopologySpreadConstraints {
		selector, err := metav1.LabelSelectorAsSelector(constraint.LabelSelector)
		if err != nil {
			return nil, err
		}
		r.selectors = append(r.selectors, selector)
	}
	if len(r.selectors) == 0 {
		core, apps := factory.Core().V1(), factory.Apps().V1()
		r.selectors = append(r.selectors, helper.DefaultSelector(pod, core.Services().Lister(), core.ReplicationControllers().Lister(), apps.ReplicaSets().Lister(), apps.StatefulSets().Lister()))
	}
	return r, nil
}

// namespace returns the labels of a namespace, nil if it is not known.
func (r *relevance) namespace(name string) labels.Set {
	namespace, err := r.factory.Core().V1().Namespaces().Lister().Get(name)
	if err != nil {
		return nil
	}
	return namespace.Labels
}

// of reports whether pods of the kind could count.
func (r *relevance) of(k *kind) bool {
	known, ok := r.known[k]
	if !ok {
		known = r.selects(k.GetPod()) || r.matches(k)
		r.known[k] = known
	}
	return known
}

// selects reports whether a spread constraint of the pod's could count the other.
func (r *relevance) selects(other *corev1.Pod) bool {
	if other.Namespace != r.pod.Namespace {
		return false
	}
	for _, selector := range r.selectors {
		if !selector.Empty() && selector.Matches(labels.Set(other.Labels)) {
			return true
		}
	}
	return false
}

// matches reports whether a term of either pod's affinity is about the other.
func (r *relevance) matches(k *kind) bool {
	return anyTerm(r.info, k.GetPod(), r.namespace(k.GetPod().Namespace)) || anyTerm(k.PodInfo, r.pod, r.labels)
}

// anyTerm reports whether any term of the affinity of from is about to.
func anyTerm(from fwk.PodInfo, to *corev1.Pod, namespace labels.Set) bool {
	for _, terms := range [][]fwk.AffinityTerm{from.GetRequiredAffinityTerms(), from.GetRequiredAntiAffinityTerms()} {
		for i := range terms {
			if terms[i].Matches(to, namespace) {
				return true
			}
		}
	}
	for _, terms := range [][]fwk.WeightedAffinityTerm{from.GetPreferredAffinityTerms(), from.GetPreferredAntiAffinityTerms()} {
		for i := range terms {
			if terms[i].Matches(to, namespace) {
				return true
			}
		}
	}
	return false
}
