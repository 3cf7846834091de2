// Package gates opens the scheduling gates of pods that are ours. It maps what a
// pod's annotations say of a gate (package condition), and what informers and a
// clock show, to one patch that removes the gate; the scheduler does the rest.
//
// All that it knows is in the API: a controller that starts, or takes over, judges
// every waiting pod anew. Of other people's gates it writes and reads nothing. A
// gate is opened once and for good: a condition that ceases to hold afterwards
// closes nothing, and two gates of one pod open one after the other, except that
// one for quota opens last.
//
// The unit of work is a namespace. All that can open a gate (another pod, a quota,
// an object, a moment) wakes the namespaces that wait for it; those that wake
// within a moment are judged together. One worker does all of it, so that the room
// in a quota is given out once.
//
// The package must not know the scheduler, nor who wrote the annotations. It lets
// a pod ask for objects in its own namespace and outside all namespaces only, and
// what our account may not read cannot be asked for.
package gates
