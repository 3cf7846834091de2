// Package recording writes down what a scheduler does, cycle by cycle, so that
// something else can do it again: what was tried, what the scheduler saw then, and
// what came of it. A recording stands for itself. It holds the objects that the
// scheduler saw, so that no cluster is needed to read it.
//
// A Recorder hangs on the fields of scheduler.Scheduler that are made for it, on its
// snapshot and on its client. It changes nothing of what is decided, and nothing of
// it is there unless it is attached.
//
// What a scheduler decides follows from what is recorded only if it looks at every
// node, and does nothing in the background that the next cycle depends on; whoever
// attaches a Recorder sees to that (see Gates). Objects that no scheduler's snapshot
// has, such as volumes and budgets, are read from the informers when a cycle begins,
// and can be newer than what a plugin saw.
//
// The package must not know who reads a recording.
package recording

import "k8s.io/component-base/featuregate"

// Gates are the feature gates of kube-scheduler that must be off while a scheduler
// is recorded: with them on, a cycle depends on what goroutines of earlier ones have
// come to.
func Gates() []featuregate.Feature {
	return []featuregate.Feature{
		"SchedulerAsyncPreemption", "SchedulerAsyncAPICalls", "OpportunisticBatching", "NominatedNodeNameForExpectation",
	}
}
