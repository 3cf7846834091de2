package contain

import "time"

// point is a place at which the framework calls a plugin. Its string is the value
// of the metrics' label extension_point, with upstream's name where there is one
// (pkg/scheduler/metrics).
type point string

// The points.
const (
	atPreEnqueue              point = "PreEnqueue"
	atLess                    point = "QueueSort"
	atEventsToRegister        point = "EventsToRegister"
	atPreQueueingHint         point = "PreQueueingHint"
	atQueueingHint            point = "QueueingHint"
	atSign                    point = "Sign"
	atPreFilter               point = "PreFilter"
	atAddPod                  point = "PreFilterExtensionAddPod"
	atRemovePod               point = "PreFilterExtensionRemovePod"
	atFilter                  point = "Filter"
	atPostFilter              point = "PostFilter"
	atPodGroupPostFilter      point = "PodGroupPostFilter"
	atPreScore                point = "PreScore"
	atScore                   point = "Score"
	atNormalizeScore          point = "ScoreExtensionNormalize"
	atReserve                 point = "Reserve"
	atUnreserve               point = "Unreserve"
	atPermit                  point = "Permit"
	atPreBindPreFlight        point = "PreBindPreFlight"
	atPreBind                 point = "PreBind"
	atBind                    point = "Bind"
	atPostBind                point = "PostBind"
	atGeneratePlacements      point = "PlacementGenerate"
	atScorePlacement          point = "PlacementScore"
	atNormalizePlacementScore point = "PlacementScoreExtensionNormalize"
	atFactory                 point = "New"
	atHandler                 point = "EventHandler"
)

// Budgets are how long one call of a plugin may take before it is logged and
// counted. A zero duration means no limit.
type Budgets struct {
	// Often is for what is called for every node (Filter, Score), for every pod in
	// the queue (QueueSort, PreEnqueue, hints), or in the informers' handlers. All
	// of these hold a lock or are called thousands of times a pod.
	Often time.Duration
	// Cycle is for what is called once a pod in the scheduling cycle, while every
	// other pod waits.
	Cycle time.Duration
	// Binding is for what runs beside the scheduling cycle and may do I/O, and for
	// what runs once at start.
	Binding time.Duration
}

// DefaultBudgets are the budgets of the bundled scheduler: at 5,000 nodes and
// upstream's 16 workers, an Often call of 500µs alone costs a pod 160ms.
func DefaultBudgets() Budgets {
	return Budgets{Often: 500 * time.Microsecond, Cycle: 50 * time.Millisecond, Binding: 10 * time.Second}
}

// of returns the budget of a call at the point.
func (b Budgets) of(p point) time.Duration {
	switch p {
	case atPreEnqueue, atLess, atPreQueueingHint, atQueueingHint, atAddPod, atRemovePod, atFilter, atScore, atHandler:
		return b.Often
	case atPreBind, atBind, atPostBind, atUnreserve, atFactory, atEventsToRegister:
		return b.Binding
	default:
		return b.Cycle
	}
}
