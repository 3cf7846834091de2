package recording

import (
	"bytes"
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Client returns client for the scheduler to use: the recorder hears of the pods
// that it deletes, which are those that preemption evicts.
func (r *Recorder) Client(client kubernetes.Interface) kubernetes.Interface {
	return &listenedClient{Interface: client, deleted: r.evicted}
}

type listenedClient struct {
	kubernetes.Interface
	deleted func(Pod)
}

// CoreV1 returns the client of the group that pods are in.
func (c *listenedClient) CoreV1() corev1client.CoreV1Interface {
	return &listenedGroup{CoreV1Interface: c.Interface.CoreV1(), deleted: c.deleted}
}

type listenedGroup struct {
	corev1client.CoreV1Interface
	deleted func(Pod)
}

// Pods returns the client of the pods of namespace.
func (g *listenedGroup) Pods(namespace string) corev1client.PodInterface {
	return &listenedPods{PodInterface: g.CoreV1Interface.Pods(namespace), namespace: namespace, deleted: g.deleted}
}

type listenedPods struct {
	corev1client.PodInterface
	namespace string
	deleted   func(Pod)
}

// Delete deletes a pod. One that is gone already was to be deleted all the same.
func (p *listenedPods) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	err := p.PodInterface.Delete(ctx, name, options)
	if err == nil || apierrors.IsNotFound(err) {
		p.deleted(Pod{Namespace: p.namespace, Name: name})
	}
	return err
}

// Patch patches a pod. Preemption says on a pod why it goes before it deletes it, and
// does not come to that where the pod is gone already.
func (p *listenedPods) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (*corev1.Pod, error) {
	pod, err := p.PodInterface.Patch(ctx, name, kind, data, options, subresources...)
	if apierrors.IsNotFound(err) && bytes.Contains(data, []byte(corev1.DisruptionTarget)) {
		p.deleted(Pod{Namespace: p.namespace, Name: name})
	}
	return pod, err
}
