package scheduler_test

import (
	"fmt"
	"testing"
)

// TestTriedWhenRoomIsFree holds that a gang which did not fit is placed once other pods
// have left enough room, and does not wait for its backoff, which is longer here than
// any test.
func TestTriedWhenRoomIsFree(t *testing.T) {
	t.Parallel()
	eachPlane(t, func(t *testing.T, p *plane) {
		l := newLab(t, p, 4)
		f := l.newFleet()
		f.args = "timeout: 10m"
		f.more = "podInitialBackoffSeconds: 600\npodMaxBackoffSeconds: 600"
		f.start()
		for i := range 3 {
			pod := l.pod(fmt.Sprintf("single-%d", i), nil)
			pod.Spec.SchedulerName = f.profile
			l.create(pod)
		}
		l.untilBound("single", 3)
		l.podGroup("late", 4)
		for i := range 4 {
			pod := l.member("late", i)
			pod.Spec.SchedulerName = f.profile
			l.create(pod)
		}
		l.untilUnschedulable("late", 4)
		l.delete("single-0", "single-1", "single-2")
		l.untilBound("late", 4)
	})
}
