package gates

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/cache"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// podEvents wakes a pod's namespace when something happened that can open a gate
// there, or when there is a new gate.
func (c *Controller) podEvents() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { c.wakeFor(o) },
		UpdateFunc: func(old, now any) {
			before, ok := old.(*corev1.Pod)
			after, ok2 := now.(*corev1.Pod)
			if !ok || !ok2 || podChanged(before, after) {
				c.wakeFor(now)
			}
		},
		DeleteFunc: func(o any) { c.wakeFor(o) },
	}
}

// quotaEvents wakes a quota's namespace when its bounds change. What is used of
// them is counted from the pods.
func (c *Controller) quotaEvents() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { c.wakeFor(o) },
		UpdateFunc: func(old, now any) {
			before, ok := old.(*corev1.ResourceQuota)
			after, ok2 := now.(*corev1.ResourceQuota)
			if !ok || !ok2 || !equality.Semantic.DeepEqual(before.Spec, after.Spec) {
				c.wakeFor(now)
			}
		},
		DeleteFunc: func(o any) { c.wakeFor(o) },
	}
}

// wakeFor wakes the namespace of the object, if any pod waits there, or did.
func (c *Controller) wakeFor(o any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o)
	if err != nil {
		return
	}
	namespace, _, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return
	}
	waiting, err := c.pods.GetIndexer().IndexKeys(waitingIndex, namespace)
	c.mu.Lock()
	_, known := c.known[namespace]
	c.mu.Unlock()
	if err != nil || known || len(waiting) > 0 {
		c.wake(namespace)
	}
}

// podChanged reports whether a condition can be met by the change of a pod: its
// own, or that of a pod that waits for it or for its room. Most updates are of a
// pod's status, and are not.
func podChanged(before, after *corev1.Pod) bool {
	return before.UID != after.UID ||
		before.Generation != after.Generation ||
		len(before.Spec.SchedulingGates) != len(after.Spec.SchedulingGates) ||
		before.Status.Phase != after.Status.Phase ||
		(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
		podutil.IsPodReady(before) != podutil.IsPodReady(after) ||
		!maps.Equal(before.Labels, after.Labels) ||
		!maps.Equal(before.Annotations, after.Annotations)
}
