package report

import (
	"fmt"

	"github.com/kubectl-sched/kubectl-sched/internal/simulate"
)

// PlacementProgress says in a line how far a simulation is.
func PlacementProgress(p simulate.Progress) string {
	line := fmt.Sprintf("%s step %d of %d: %s", bar(int64(p.Step-1), int64(p.Steps)), p.Step, p.Steps, p.What)
	if p.Tried > 0 {
		line += fmt.Sprintf(", %s tried", amount(p.Tried, "pod or group", "pods and groups"))
	}
	if p.Waiting > 0 {
		line += fmt.Sprintf(", %d to go", p.Waiting)
	}
	return line
}
