package adopt

import (
	"slices"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// Normal lists what placement says, so that lists which say the same are equal.
func Normal(p workload.PodFields) []string {
	var out []string
	for _, piece := range pieces(p) {
		out = append(out, piece.key)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
