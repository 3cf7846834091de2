package snapshot

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// Age is how long ago the snapshot was taken; false for one that a person wrote.
func (s *Snapshot) Age(now time.Time) (time.Duration, bool) {
	if s.Taken.IsZero() {
		return 0, false
	}
	return max(0, now.Sub(s.Taken)), true
}

// CheckAge returns an error that names both where the snapshot is older than most;
// 0 is no limit, and a snapshot without an age is never too old.
func (s *Snapshot) CheckAge(now time.Time, most time.Duration) error {
	age, ok := s.Age(now)
	if !ok || most <= 0 || age <= most {
		return nil
	}
	return fmt.Errorf("the snapshot is %s old (taken at %s), and may be %s old at most; take a new one, or allow more",
		duration.HumanDuration(age), s.Taken.UTC().Format(time.RFC3339), duration.HumanDuration(most))
}
