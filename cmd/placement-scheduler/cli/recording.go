package cli

import (
	"fmt"
	"os"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/recording"
)

// everyNode is the percentage of nodes that a recorded scheduler scores.
const everyNode = 100

// newRecorder makes the recorder that writes to the file, and returns nil if it has
// no name. The feature gates are those of recording.Gates from then on; somebody who
// has set one of them otherwise gets an error.
func newRecorder(file string) (*recording.Recorder, error) {
	if file == "" {
		return nil, nil
	}
	gates := utilfeature.DefaultMutableFeatureGate
	for _, gate := range recording.Gates() {
		if !gates.Enabled(gate) {
			continue
		}
		if gates.ExplicitlySet(gate) {
			return nil, fmt.Errorf("--record-attempts needs the feature gate %s to be off, and --feature-gates switches it on; take away one of the two", gate)
		}
		if err := gates.SetFromMap(map[string]bool{string(gate): false}); err != nil {
			return nil, fmt.Errorf("switch off the feature gate %s to record attempts: %w", gate, err)
		}
	}
	out, err := os.Create(file)
	if err != nil {
		return nil, fmt.Errorf("record attempts: %w", err)
	}
	return recording.New(out, clock.RealClock{}), nil
}

// scoreEveryNode sets the percentage of nodes that are scored. The error is for a
// configuration that says another one.
func scoreEveryNode(c *config.KubeSchedulerConfiguration) error {
	said := func(p *int32) bool { return p != nil && *p != 0 && *p != everyNode }
	if said(c.PercentageOfNodesToScore) {
		return fmt.Errorf("percentageOfNodesToScore is %d, and --record-attempts needs %d; take away one of the two", *c.PercentageOfNodesToScore, everyNode)
	}
	c.PercentageOfNodesToScore = ptr.To[int32](everyNode)
	for i := range c.Profiles {
		p := &c.Profiles[i]
		if said(p.PercentageOfNodesToScore) {
			return fmt.Errorf("profile %q: percentageOfNodesToScore is %d, and --record-attempts needs %d; take away one of the two", p.SchedulerName, *p.PercentageOfNodesToScore, everyNode)
		}
		p.PercentageOfNodesToScore = nil
	}
	return nil
}
