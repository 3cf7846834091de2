package cli

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

// TestFileWatch holds that files that come, change and go are seen, and that the end
// of the context ends the waiting.
func TestFileWatch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("a.cue", "a")
	changes := map[string]func(){
		"comes":   func() { write("b.cue", "b") },
		"changes": func() { write("a.cue", "longer") },
		"goes": func() {
			if err := os.Remove(filepath.Join(dir, "b.cue")); err != nil {
				t.Fatal(err)
			}
		},
	}
	for _, what := range []string{"comes", "changes", "goes"} {
		clock := testingclock.NewFakeClock(time.Time{})
		w := &fileWatch{clock: clock, roots: []string{dir, filepath.Join(dir, "not-there")}}
		seen := make(chan bool, 1)
		before := w.state()
		go func() { seen <- w.changed(t.Context(), before) }()
		waiting := func() {
			for !clock.HasWaiters() {
				select {
				case <-seen:
					t.Fatalf("%s: a change was seen where there is none", what)
				case <-time.After(time.Millisecond):
				}
			}
		}
		waiting()
		clock.Step(watchInterval)
		waiting()
		changes[what]()
		clock.Step(watchInterval)
		if !<-seen {
			t.Errorf("%s: not seen", what)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := &fileWatch{clock: testingclock.NewFakeClock(time.Time{}), roots: []string{dir}}
	if w.changed(ctx, w.state()) {
		t.Error("the end was taken for a change")
	}
}
