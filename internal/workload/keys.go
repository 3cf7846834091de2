package workload

import (
	"slices"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/condition"
)

// PlacementLabel reports whether the label of a pod template says something to a
// scheduler: which gang the pods belong to.
func PlacementLabel(key string) bool {
	return key == gangkey.LabelMinAvailable || slices.Contains(gangkey.Labels(), key)
}

// PlacementAnnotation reports whether the annotation of a pod template says
// something to a scheduler, or to what opens scheduling gates.
func PlacementAnnotation(key string) bool {
	switch key {
	case args.PodDatasets, args.PodGPUMemory, args.PodGPUDevices, gangkey.PerAnnotation:
		return true
	}
	return condition.Ours(key)
}

// PlacementVariable reports whether the environment variable tells a container
// what the scheduler chose.
func PlacementVariable(name string) bool { return name == args.VisibleDevices }

// only returns the entries whose keys are placement, nil if there are none.
func only(m map[string]string, placement func(string) bool) map[string]string {
	var out map[string]string
	for k, v := range m {
		if !placement(k) {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[k] = v
	}
	return out
}
