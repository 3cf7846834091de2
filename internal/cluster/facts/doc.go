// Package facts gives the compiler what it needs of a snapshot: the same
// capabilities and workloads as package cluster reads from the live cluster that
// the snapshot was taken of.
//
// The package must not know what is compiled, nor where a snapshot came from.
package facts
