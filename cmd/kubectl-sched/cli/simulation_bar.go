package cli

import (
	"time"

	"github.com/kubectl-sched/kubectl-sched/internal/report"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate"
)

// simulationBar says on a terminal how far a simulation is.
type simulationBar struct {
	screen *report.Screen // nil: not a terminal
	now    func() time.Time
	// shown is when it was last drawn: a terminal is slower than a scheduling cycle.
	shown time.Time
}

// redraw is how often the bar is drawn at most.
const redraw = 100 * time.Millisecond

func (a *app) newSimulationBar() *simulationBar {
	return &simulationBar{screen: report.NewScreen(a.ErrOut, a.getenv), now: a.now}
}

func (b *simulationBar) hear(p simulate.Progress) {
	if b.screen == nil {
		return
	}
	if now := b.now(); now.Sub(b.shown) >= redraw {
		b.shown = now
		b.screen.Show([]string{report.PlacementProgress(p)})
	}
}

// end takes the bar off the terminal.
func (b *simulationBar) end() {
	if b.screen != nil {
		b.screen.Show(nil)
	}
}
