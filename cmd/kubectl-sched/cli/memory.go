package cli

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/capture"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
)

// What a command may use that holds a whole cluster: 5,000 nodes with 30,000 pods are
// about half a gibibyte. The process's usual limit (see package main) would have the
// garbage collector run without end.
const (
	clusterMemory  = 3 << 29 // bytes, soft
	clusterGarbage = 200     // percent of what is in use, as GOGC
)

// makeRoomForCluster raises the process's limit, for what holds a snapshot while it
// works on it.
func makeRoomForCluster() {
	debug.SetMemoryLimit(clusterMemory)
	debug.SetGCPercent(clusterGarbage)
}

// readSnapshot reads the file, and makes room for what is in it.
func readSnapshot(file string) (*snapshot.Snapshot, error) {
	return readSnapshotOf(file, snapshot.Limits{})
}

// readSnapshotOf reads the file, which may be of a stranger. As it lies there it may
// have no more bytes than unpacked.
func readSnapshotOf(file string, limits snapshot.Limits) (*snapshot.Snapshot, error) {
	makeRoomForCluster()
	if limits.Bytes > 0 {
		switch info, err := os.Stat(file); {
		case err != nil:
			return nil, err
		case !info.Mode().IsRegular():
			return nil, fmt.Errorf("read snapshot %s: it is no file", file)
		case info.Size() > limits.Bytes:
			return nil, fmt.Errorf("read snapshot %s: it has %d bytes, and may have %d; allow more with --max-snapshot-size", file, info.Size(), limits.Bytes)
		}
	}
	return snapshot.ReadFile(file, snapshot.ReadOptions{Limits: limits})
}

// takeSnapshot takes one of the cluster of that name, with a bar on a terminal, and
// prints what is missing in it.
func (a *app) takeSnapshot(ctx context.Context, client *cluster.Client, name string) (*snapshot.Snapshot, error) {
	progress := a.newCaptureProgress()
	s, findings, err := capture.Capture(ctx, client, capture.Options{Name: name, Now: a.now, Progress: progress.hear})
	progress.end()
	if err != nil {
		return nil, err
	}
	a.printFindings(findings)
	return s, nil
}
