package engine

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-sched/kubectl-sched/internal/simulate/store"
)

// Put adds an object to the cluster, or puts it in the place of the one of its
// name. The engine keeps it. A pod without a node is one that waits. A custom
// object must be a PodGroup; it matters to profiles that place gangs. Groups that
// come before their members are tried in the order of the first members. The error
// says that a cluster cannot hold such an object, or what of it cannot be read.
func (e *Engine) Put(object store.Object) error {
	// The queue is ordered by time where priorities are equal.
	e.clock.Step(time.Microsecond)
	switch o := object.(type) {
	case *corev1.Pod:
		return e.putPod(o)
	case *unstructured.Unstructured:
		if e.groups == nil {
			return nil
		}
		e.happened++
		return errors.Join(e.groups.Object(o), e.refreshGroups())
	case *corev1.PersistentVolume:
		e.volumes.tell(o)
	}
	e.happened++
	e.chooser.forget()
	return e.store.Put(object)
}

// Remove takes an object away. One that is not there is no error.
func (e *Engine) Remove(object store.Object) error {
	e.clock.Step(time.Microsecond)
	e.known = 0
	if pod, ok := object.(*corev1.Pod); ok {
		return e.removePod(pod)
	}
	e.happened++
	e.chooser.forget()
	return e.store.Remove(object)
}

// putPod adds or changes a pod. The group that it belongs to comes first.
func (e *Engine) putPod(pod *corev1.Pod) error {
	e.happened++
	if pod.Spec.NodeName == "" {
		e.chooser.nominate(pod.UID, pod.Status.NominatedNodeName)
	}
	if e.groups != nil && e.ganged(pod.Spec.SchedulerName) {
		pod = e.groups.Pod(pod)
		if err := e.refreshGroups(); err != nil {
			return err
		}
	}
	return e.store.Put(pod)
}

func (e *Engine) removePod(pod *corev1.Pod) error {
	e.happened++
	e.chooser.nominate(pod.UID, "")
	// Upstream forgets this of the pods alone that it is responsible for, and a pod can be
	// here of which a recording has no more than the name.
	e.sched.SchedulingQueue.DeleteNominatedPodIfExists(pod)
	delete(e.failedAt, pod.UID)
	if err := e.store.Remove(pod); err != nil || e.groups == nil {
		return err
	}
	e.groups.Remove(pod)
	return e.refreshGroups()
}

// refreshGroups brings the scheduler's pod groups to what the pods say.
func (e *Engine) refreshGroups() error {
	put, removed, err := e.groups.Changes()
	if err != nil {
		return err
	}
	for _, group := range removed {
		if err := e.store.Remove(group); err != nil {
			return err
		}
	}
	for _, group := range put {
		if err := e.store.Put(group); err != nil {
			return err
		}
	}
	return nil
}
