package gang

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

// waits has the gang wait for so much room, and its wake send its name to woken.
func waits(h *Holds, woken chan string, name string, priority int32, size, lacks float64, took time.Duration) {
	h.failed(groupName(name), pod(name, name, priority), time.Hour, func() bool {
		woken <- name
		return true
	})
	h.lacks(groupName(name), want{priority: priority, size: size, lacks: lacks, seats: func(gone *corev1.Pod) float64 {
		if gone.Spec.NodeName == "elsewhere" {
			return 0
		}
		return 1
	}}, took)
}

// leave has so many pods leave the node.
func leave(h *Holds, node string, n int) {
	for range n {
		p := pod("gone", "", 0)
		p.Spec.NodeName = node
		h.Left(p)
	}
}

// isWoken fails the test unless just the gangs are woken.
func isWoken(t *testing.T, woken chan string, names ...string) {
	t.Helper()
	for _, name := range names {
		select {
		case got := <-woken:
			if got != name {
				t.Fatalf("%s is tried; want %s", got, name)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s is not tried", name)
		}
	}
	select {
	case got := <-woken:
		t.Fatalf("%s is tried too", got)
	case <-time.After(20 * time.Millisecond):
	}
}

// TestTriedWhenRoomIsFree holds that a gang is tried as soon as other pods have left the
// room that it lacks, the more important and then the longest waiting first, and that
// room which others take is not counted.
func TestTriedWhenRoomIsFree(t *testing.T) {
	t.Parallel()
	c := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	h, woken := NewHolds(c), make(chan string, 10)
	waits(h, woken, "old", 0, 4, 2, 0)
	c.Step(time.Second)
	waits(h, woken, "new", 0, 4, 2, 0)
	waits(h, woken, "important", 5, 4, 2, 0)

	leave(h, "elsewhere", 10) // where no member could be
	leave(h, "node", 1)
	isWoken(t, woken)
	leave(h, "node", 1)
	isWoken(t, woken, "important")

	// It starts, and takes what was free for the others too.
	h.forget(groupName("important"))
	for range 4 {
		h.took(groupName("important"), pod("member", "important", 5), "node")
	}
	leave(h, "node", 3)
	isWoken(t, woken)
	leave(h, "node", 1)
	isWoken(t, woken, "old")

	// While it is tried, what becomes free is for the next.
	leave(h, "node", 4)
	isWoken(t, woken, "new")

	// Nobody is tried twice for the same room.
	leave(h, "node", 10)
	isWoken(t, woken)
}

// TestRestAfterFailedTrial holds that gangs which are tried early and do not fit take a
// tenth of the scheduler's time at most.
func TestRestAfterFailedTrial(t *testing.T) {
	t.Parallel()
	c := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	h, woken := NewHolds(c), make(chan string, 10)
	waits(h, woken, "large", 0, 1000, 1, 0)
	leave(h, "node", 1)
	isWoken(t, woken, "large")
	waits(h, woken, "large", 0, 1000, 1, 2*time.Second) // it did not fit after all
	leave(h, "node", 1)
	c.Step(17 * time.Second)
	leave(h, "node", 1)
	isWoken(t, woken)
	c.Step(time.Second)
	isWoken(t, woken, "large")
}
