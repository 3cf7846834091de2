package snapshot

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// owners finds what made a pod: its controller, that one's controller, and so on.
type owners map[types.UID]*metav1.OwnerReference

func ownersOf(s *Snapshot) owners {
	o := owners{}
	for _, rs := range s.ReplicaSets {
		o[rs.UID] = metav1.GetControllerOf(rs)
	}
	for _, job := range s.Jobs {
		o[job.UID] = metav1.GetControllerOf(job)
	}
	return o
}

// maxOwners ends the walk up owners that own each other.
const maxOwners = 8

// top names the topmost owner that is known, or the pod itself.
func (o owners) top(p *corev1.Pod) string {
	owner := metav1.GetControllerOfNoCopy(p)
	if owner == nil {
		return "Pod " + nameOf(p)
	}
	for range maxOwners {
		above := o[owner.UID]
		if above == nil {
			break
		}
		owner = above
	}
	return owner.Kind + " " + p.Namespace + "/" + owner.Name
}
