// Package engine runs the scheduler of this Kubernetes minor, with the plugins of
// this project, in process and step by step over a cluster that is held in memory.
// The scheduling and the binding cycle, pod groups, preemption, the queue and the
// event handlers are upstream's code as it is. What the engine puts in their place
// is only what makes a result depend on chance or on the clock:
//
//   - objects reach the scheduler through package store, in a fixed order;
//   - SchedulePod looks at every node and breaks ties by a seed (choose.go), while
//     upstream takes what its goroutines find first;
//   - preemption considers every candidate, from the first node on, and breaks ties
//     by the seed (preemption.go);
//   - writes to the API are collected, and take effect between two cycles
//     (client.go); Bind records, and no PreBind or PostBind plugin of a user runs;
//   - pods are tried again when something happened that could help them, without
//     waiting for their back-off.
//
// Feature gates belong to the process, not to an engine; see Gates.
//
// The package must not know policies, scenarios, or how a result is shown.
package engine
