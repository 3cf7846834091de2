// Package args holds what the bundled plugins are told: their names, their
// arguments as typed structs with defaults and bounds, and the labels and
// annotations of pods and nodes that they read and write.
//
// The plugins' factories, the compiler that writes the arguments and the linter
// that reads a stranger's all decode through Decode, so that what one of them
// accepts the others accept too. Upstream hands arguments of out-of-tree plugins
// over unread, and its decoder is lenient (pkg/scheduler/framework/runtime,
// DecodeInto): a typo there would be silently ignored.
//
// The package is a leaf. It must not know the scheduler (k8s.io/kubernetes), a
// cluster, or how the arguments are used.
package args
