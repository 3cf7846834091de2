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

// digests remembers the digests of pods, by UID.
type digests struct {
	of   map[types.UID]digest
	make func(*corev1.Pod) (digest, error)
}

// get returns the digest of the pod.
func (d *digests) get(pod *corev1.Pod) (digest, error) {
	if known, ok := d.of[pod.UID]; ok {
		return known, nil
	}
	made, err := d.make(pod)
	if err == nil {
		d.of[pod.UID] = made
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

// kinds knows the kind of each pod on a node.
type kinds struct {
	digests digests
	known   map[digest]*kind
	seen    map[fwk.PodInfo]*kind // the same again, found faster
}

func newKinds() *kinds {
	return &kinds{digests: digests{of: map[types.UID]digest{}, make: sameToOthers}, known: map[digest]*kind{}, seen: map[fwk.PodInfo]*kind{}}
}

// of returns the kind of the pod; pods of a kind have the same pointer.
func (k *kinds) of(pod fwk.PodInfo) (*kind, error) {
	if found, ok := k.seen[pod]; ok {
		return found, nil
	}
	d, err := k.digests.get(pod.GetPod())
	if err != nil {
		return nil, err
	}
	found, ok := k.known[d]
	if !ok {
		found = &kind{pod}
		k.known[d] = found
	}
	k.seen[pod] = found
	return found, nil
}
