// Package podgroup gives the scheduler its pod groups. It maps what names gangs in
// a cluster (the API's own PodGroups where they are served, PodGroup objects of
// scheduling.x-k8s.io and scheduling.sigs.k8s.io, and labels of pods) to one
// stream of scheduling.k8s.io/v1beta1 PodGroups, from which the in-tree pod-group
// cycle (KEP-4671) places gangs whole.
//
// A gang that the API does not know gets a virtual PodGroup, which exists in this
// process alone: its name has a colon, which no API object's name can have, its
// priority is that of its members, and it can be disrupted only as a whole. The
// members' spec.schedulingGroup is set on their way into the scheduler's informer
// and nowhere else; the scheduler writes pods only as status patches, Bindings and
// deletions, so it never reaches the API server. What group a pod is in is decided
// once for its UID: labels can change, the scheduler's caches cannot follow. The
// scheduler sees a pod in it, of whichever kind, once it is behind no scheduling gate.
//
// The package must not place pods, and must not import pkg/scheduler: it is seen
// through informers, a client and events only.
package podgroup
