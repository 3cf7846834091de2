package fidelity_test

import (
	"flag"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/kubectl-sched/kubectl-sched/internal/simulate/engine"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate/replay"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/recording"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/registry"
)

var (
	cases = flag.Int("cases", 100, "how many cases are generated")
	seed  = flag.Uint64("seed", 1, "what the cases are generated from")
	from  = flag.Int("from", 0, "the number of the first case")
	kept  = flag.String("kept", "", "a recording to follow, for TestKeptRecording")
	least = flag.Float64("agree", 0.999, "the share of the attempts that must agree; the others are printed")
	keep  = flag.String("keep", "", "the file that the recording is kept in")
)

// lanes is how many cases run side by side: they wait for the most part. The nodes of
// each are tainted for its own pods, which count those of the others all the same.
const lanes = 4

// TestSimulatorFollowsScheduler holds that the simulator comes to what the bundled
// scheduler came to, in every cycle of the generated cases.
func TestSimulatorFollowsScheduler(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startScheduler(t)
	next := make(chan int)
	var running sync.WaitGroup
	for range lanes {
		running.Go(func() {
			for n := range next {
				if err := l.run(t.Context(), generate("case", *seed, n)); err != nil {
					t.Errorf("seed %d: %v", *seed, err)
				}
			}
		})
	}
	for n := *from; n < *from+*cases && !t.Failed(); n++ {
		next <- n
	}
	close(next)
	running.Wait()
	judge(t, l.recording)
}

// judge has the simulator follow the recording twice, once remembering equal pods
// and once looking at each pod by itself.
func judge(t *testing.T, path string) {
	t.Helper()
	for name, exhaustive := range map[string]bool{"remembering equal pods": false, "each pod by itself": true} {
		// Not side by side: tests that wait for the control plane hold the places of
		// those that run, and this one keeps it until its parts are over.
		t.Run(name, func(t *testing.T) {
			f := follow(t, path, exhaustive)
			t.Logf("seed %d, cases %d to %d\n%s", *seed, *from, *from+*cases-1, f)
			if share := 1 - float64(f.all.disagree)/float64(max(f.all.cycles, 1)); share < *least {
				t.Errorf("%d of %d attempts disagree: the share that agrees is %.4f, want %.4f", f.all.disagree, f.all.cycles, share, *least)
			}
			if len(f.broken) > 0 {
				t.Errorf("for %d pods there was an error after a node had been found, first\n%s", len(f.broken), strings.Join(f.broken[:min(len(f.broken), 5)], "\n"))
			}
			if f.all.invalid*100 >= f.all.cycles {
				t.Errorf("%d of %d attempts are invalid, want under 1%%", f.all.invalid, f.all.cycles)
			}
		})
	}
}

// TestKeptRecording has the simulator follow a recording that was kept, without a
// cluster.
func TestKeptRecording(t *testing.T) {
	t.Parallel()
	if *kept == "" {
		return // what it is for: to look for the cause of a difference
	}
	judge(t, *kept)
}

// follow has the simulator follow the recording.
func follow(t *testing.T, path string, exhaustive bool) *figures {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := replay.New(t.Context(), engine.Options{Profiles: profiles(t), Plugins: registry.Bundled(), Exhaustive: exhaustive})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f := newFigures()
	err = recording.Read(file, func(c recording.Cycle) error {
		result, err := r.Step(t.Context(), c)
		if err == nil {
			f.add(c, result)
		}
		return err
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, f)
	}
	return f
}
