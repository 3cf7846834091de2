package engine

import (
	"crypto/sha256"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
)

// digest stands for the fields of a pod that count in some respect: pods with the
// same digest are equal in it.
type digest [sha256.Size]byte

// digests remembers the digests of pods that wait, as long as they stay what they are.
type digests map[types.UID]digested

type digested struct {
	pod    *corev1.Pod
	digest digest
}

// of returns the digest of what the scheduler reads of the pod.
func (d digests) of(pod *corev1.Pod) (digest, error) {
	if known, ok := d[pod.UID]; ok && known.pod == pod {
		return known.digest, nil
	}
	made, err := sameToScheduler(pod)
	if err == nil {
		d[pod.UID] = digested{pod, made}
	}
	return made, err
}

// sameToScheduler digests all that a plugin may read of a pod that waits: what
// tells the pods of one template apart is left out.
func sameToScheduler(pod *corev1.Pod) (digest, error) {
	return digestOf(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Labels: pod.Labels, Annotations: pod.Annotations, OwnerReferences: pod.OwnerReferences},
		Spec:       pod.Spec,
	})
}

// sameToOthers digests what the plugins of other pods read of a pod that is on a
// node: what selectors can match, and its own selectors.
func sameToOthers(pod *corev1.Pod) (digest, error) {
	return digestOf(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Labels: pod.Labels},
		Spec:       corev1.PodSpec{Affinity: pod.Spec.Affinity},
	})
}

func digestOf(pod *corev1.Pod) (digest, error) {
	bytes, err := pod.Marshal() // writes maps in the order of their keys
	return sha256.Sum256(bytes), err
}

// kind is a set of pods on nodes that are the same to others; one stands for all.
type kind struct{ fwk.PodInfo }

// kindKey tells kinds apart. A pod that is going away does not count everywhere.
type kindKey struct {
	digest digest
	leaves bool
}

// kinds knows the kind of each pod on a node.
type kinds struct {
	known map[kindKey]*kind
	seen  map[fwk.PodInfo]*kind // the same again, found faster
}

func newKinds() *kinds {
	return &kinds{known: map[kindKey]*kind{}, seen: map[fwk.PodInfo]*kind{}}
}

// of returns the kind of the pod; pods of a kind have the same pointer.
func (k *kinds) of(pod fwk.PodInfo) (*kind, error) {
	if found, ok := k.seen[pod]; ok {
		return found, nil
	}
	d, err := sameToOthers(pod.GetPod())
	if err != nil {
		return nil, err
	}
	key := kindKey{d, pod.GetPod().DeletionTimestamp != nil}
	found, ok := k.known[key]
	if !ok {
		found = &kind{pod}
		k.known[key] = found
	}
	k.seen[pod] = found
	return found, nil
}
