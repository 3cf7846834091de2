package podstatus

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Client returns client for the scheduler to use: what it says on the status of
// gangs' members goes through the queue, everything else to the API server.
func (q *Queue) Client(client kubernetes.Interface) kubernetes.Interface {
	return &queuedClient{Interface: client, queue: q}
}

type queuedClient struct {
	kubernetes.Interface
	queue *Queue
}

// CoreV1 returns the client of the group that pods are in.
func (c *queuedClient) CoreV1() clientcorev1.CoreV1Interface {
	return &queuedCore{CoreV1Interface: c.Interface.CoreV1(), queue: c.queue}
}

type queuedCore struct {
	clientcorev1.CoreV1Interface
	queue *Queue
}

// Pods returns the client of the pods of namespace.
func (c *queuedCore) Pods(namespace string) clientcorev1.PodInterface {
	return &queuedPods{PodInterface: c.CoreV1Interface.Pods(namespace), namespace: namespace, queue: c.queue}
}

type queuedPods struct {
	clientcorev1.PodInterface
	namespace string
	queue     *Queue
}

// Patch patches a pod. Of a change that the queue takes, the answer is the pod as it
// will be, as far as that is known.
func (p *queuedPods) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (*corev1.Pod, error) {
	if len(subresources) != 1 || subresources[0] != "status" {
		return p.PodInterface.Patch(ctx, name, kind, data, options, subresources...)
	}
	pod, err := p.queue.pods.Pods(p.namespace).Get(name)
	if err == nil && kind == types.StrategicMergePatchType && isWaitingMember(pod) {
		if c, ok := parseChange(data, pod); ok {
			p.queue.put(pod, c)
			return c.on(pod), nil
		}
	}
	if err := p.queue.settle(ctx, types.NamespacedName{Namespace: p.namespace, Name: name}); err != nil {
		return nil, err
	}
	return p.PodInterface.Patch(ctx, name, kind, data, options, subresources...)
}

// Bind binds a pod. What was to be written on it while it waited is dropped.
func (p *queuedPods) Bind(ctx context.Context, binding *corev1.Binding, options metav1.CreateOptions) error {
	if err := p.queue.settle(ctx, types.NamespacedName{Namespace: p.namespace, Name: binding.Name}); err != nil {
		return err
	}
	return p.PodInterface.Bind(ctx, binding, options)
}

// isWaitingMember reports whether pod is a member of a group that has no node.
func isWaitingMember(pod *corev1.Pod) bool {
	return pod.Spec.SchedulingGroup != nil && pod.Spec.NodeName == ""
}
