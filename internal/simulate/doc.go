// Package simulate says what would become of a cluster: which pods would be where,
// which would wait and why. It takes a snapshot, lets the built-in controllers do
// what a scenario asks of them by upstream's own arithmetic (a rollout, a drained
// node, a lost zone), and has the real scheduler place the pods (package engine).
//
// A pod that is placed counts as ready, and one that is removed is gone at once.
// Whatever else is assumed stands in the outcome.
//
// The package must not know policies, files or how an outcome is shown, and must
// never repeat a rule of the scheduler's or a controller's where that can be called.
package simulate
