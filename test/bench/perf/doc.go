// Package perf runs upstream's standard benchmark of a scheduler, scheduler_perf, with
// kube-scheduler's default plugins or with ours beside them. It is a test binary of its
// own, so that what the benchmark links is linked nowhere else; "bench perf" builds it
// and says which of upstream's cases it runs.
//
// It must not know what a plugin decides.
package perf
