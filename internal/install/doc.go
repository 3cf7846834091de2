// Package install brings the bundled scheduler into a cluster and takes it out
// again: it checks that it can run there and that nobody is left waiting for a
// profile that goes, writes the rendered objects in order, waits until all replicas
// run them, and removes what is no longer among them.
//
// A profile is served before any workload can point to it, and none that is pointed
// to is taken away. The package must not know policies, nor how the objects are
// rendered (schedulerbin/deploy).
package install
