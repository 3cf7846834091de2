// Package podstatus keeps the scheduler's loop from waiting for what it says on the
// status of gangs' members. It maps the status patches that the scheduler makes to
// the same changes, written a little later by workers of its own.
//
// kube-scheduler writes in its loop, member by member, why a gang does not fit, and
// has each member that waits for its siblings written its node's name before its
// Binding. At the client's limit of requests both hold up gangs that do fit. Here
// the last word on a pod is written, once, with what the Bindings leave of the
// limit; a Binding takes back what was not written yet. Nothing is written on a pod
// out of order, and nothing on another pod of the same name.
//
// What is not written when the scheduler stops is lost: by then another may lead,
// and its first try of the gang says it again. Pods in no gang are not touched.
//
// The package must not know gangs, plugins or why something is written.
package podstatus
