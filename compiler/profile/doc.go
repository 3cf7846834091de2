// Package profile says what workloads need of a scheduler's profile, and writes
// and checks the KubeSchedulerConfiguration that has the profiles.
//
// A Need is what one workload asks for, each part with the policy's line that
// asks for it. Needs merge in any order, and workloads with equal needs share one
// profile. Configuration writes profiles out, with no more in them than what
// differs from upstream's defaults; Check finds what is wrong with any such file,
// also with a stranger's, and also what kube-scheduler itself would silently
// accept.
//
// Defaults, decoding and validation are upstream's own
// (k8s.io/kubernetes/pkg/scheduler/apis/config). The package must not know the
// framework that runs the plugins, workloads, or policies other than by name.
package profile
