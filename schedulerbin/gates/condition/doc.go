// Package condition says when a scheduling gate of ours opens. It maps the name of
// a gate and one annotation of a pod, a small JSON object with the gate's name as
// its key, to a checked Condition, and back.
//
// What writes the conditions (the compiler), what checks them (the linter) and
// what waits for them (the gate controller) all decode here, so that what one of
// them accepts the others accept too. The package is a leaf: it must not know a
// cluster or a client, and whether a condition holds, a clock's apart.
package condition
