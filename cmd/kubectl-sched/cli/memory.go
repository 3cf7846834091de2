package cli

import "runtime/debug"

// What a command may use that holds a whole cluster: 5,000 nodes with 30,000 pods are
// about half a gibibyte. The process's usual limit (see package main) would have the
// garbage collector run without end.
const (
	clusterMemory  = 3 << 29 // bytes, soft
	clusterGarbage = 200     // percent of what is in use, as GOGC
)

// makeRoomForCluster raises the process's limit. Commands call it before they read or
// take a snapshot.
func makeRoomForCluster() {
	debug.SetMemoryLimit(clusterMemory)
	debug.SetGCPercent(clusterGarbage)
}
