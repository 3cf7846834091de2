// Package gating says which scheduling gates hold back pods of a cluster, and
// writes what a person decides about them. It maps pods and the events about them
// to Waits, and a Decision to patches.
//
// It must not know policies, nor how the bundled scheduler opens gates: it reads
// what that has said, and writes what that waits for.
package gating
