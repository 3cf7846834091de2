package simulate

// Progress says how far a simulation is.
type Progress struct {
	// Step is the number of the step that is under way, from 1, of Steps in all.
	Step, Steps int
	// What is the step in words: "roll out Deployment shop/web".
	What string
	// Tried is how many scheduling cycles there were, and Waiting how many pods and
	// groups are to be tried at least.
	Tried, Waiting int
}

// Hear has each scheduling cycle told to hear, of a simulation with so many steps.
func (w *World) Hear(steps int, hear func(Progress)) {
	w.at.Steps, w.hear = steps, hear
}

// cycle notes the end of a scheduling cycle.
func (w *World) cycle(waiting int) {
	w.at.Tried, w.at.Waiting = w.at.Tried+1, waiting
	if w.hear != nil {
		w.hear(w.at)
	}
}

// begin notes the beginning of a step.
func (w *World) begin(what string) {
	w.at.Step, w.at.What = w.at.Step+1, what
	w.at.Steps = max(w.at.Steps, w.at.Step)
	if w.hear != nil {
		w.hear(w.at)
	}
}
