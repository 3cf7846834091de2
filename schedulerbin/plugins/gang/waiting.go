package gang

import (
	"slices"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// waitsForGang reports whether it is its gang that a pod waits for at Permit: one
// that waits for another plugin alone has a complete gang.
func waitsForGang(pod fwk.WaitingPod) bool {
	return slices.Contains(pod.GetPendingPlugins(), names.GangScheduling)
}
