package room

import (
	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Seats returns what says how many seats for such a member, or what part of one, another
// pod takes: that of the resource of which it has the smallest share.
func Seats(member *corev1.Pod) func(*corev1.Pod) float64 {
	needs := resourcehelper.PodRequests(member, resourcehelper.PodResourcesOptions{})
	return func(pod *corev1.Pod) float64 {
		has := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
		seats, asked := 0.0, false
		for name, need := range needs {
			if need.IsZero() {
				continue
			}
			quantity := has[name]
			share := quantity.AsApproximateFloat64() / need.AsApproximateFloat64()
			if !asked || share < seats {
				seats, asked = share, true
			}
		}
		if !asked {
			return 1 // it asks for a place alone
		}
		return seats
	}
}
