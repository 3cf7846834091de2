// Package replay has the simulator follow a recording of a running scheduler, cycle
// by cycle, and says where the two differ. Each cycle starts from what the scheduler
// saw, so that one difference does not lead to others; whether the simulator sees the
// same is asserted by a hash (schedulerbin/recording/state), and a cycle in which it
// does not says nothing of either.
//
// What must agree: a message as text, the node with one of the best that the
// simulator found, the node that preemption makes room on with one that is equal to
// the simulator's in everything, and the victims there.
//
// The package must not know what the cycles were recorded for.
package replay
