package engine

import (
	"fmt"
	"sync"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/features"
)

// gates are the feature gates that a simulation needs, for all engines of the
// process. Preemption, API calls and equal pods are handled in the background
// where theirs are on, at times that differ from run to run. Pod groups are read
// where there are any; without them the gate changes nothing.
var gates = map[string]bool{
	string(features.SchedulerAsyncPreemption):        false,
	string(features.SchedulerAsyncAPICalls):          false,
	string(features.OpportunisticBatching):           false,
	string(features.NominatedNodeNameForExpectation): false,
	string(features.GenericWorkload):                 true,
}

var setGates = sync.OnceValue(func() error {
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(gates); err != nil {
		return fmt.Errorf("set the feature gates of the simulation: %w", err)
	}
	return nil
})

// Gates sets the feature gates that every engine of this process needs. New calls
// it; whoever decodes a KubeSchedulerConfiguration for an engine must have called
// it before, because the default plugins depend on them.
func Gates() error { return setGates() }
