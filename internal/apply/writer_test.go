package apply

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// gate holds the first write of a workload back until it is opened.
type gate struct {
	reached, open chan struct{}
	once          sync.Once
	// silent says that nothing is heard of the run: its writes of the set's own
	// state do not get through.
	silent atomic.Bool
}

func newGate() *gate { return &gate{reached: make(chan struct{}), open: make(chan struct{})} }

func (g *gate) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		switch {
		case r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/configmaps/") && g.silent.Load():
			return nil, errCut
		case r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/deployments/") && r.URL.Query().Get("dryRun") == "":
			g.once.Do(func() {
				close(g.reached)
				<-g.open
			})
		}
		return next.RoundTrip(r)
	})
}

// Of two runs at a time the second is told who is writing, and may begin when
// the first is done.
func TestSecondRunIsRefused(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.create(deployment("web"))
	g := newGate()
	first := l.applier(g.wrap)
	done := make(chan error, 1)
	go func() { done <- l.try(first, matching(tolerate("gpu"), "web")) }()
	<-g.reached

	state := l.state()
	if w := state.Writer(); w == nil || w.Revision != 1 || w.By == "" || !w.Active(time.Now()) {
		t.Errorf("the writer is %+v", w)
	}
	began := time.Now()
	err := l.try(l.applier(nil), matching(tolerate("other"), "web"))
	var busy *BusyError
	if !errors.As(err, &busy) {
		t.Fatalf("the second run: %v", err)
	}
	if !strings.Contains(err.Error(), "revision 1 is being written by "+busy.Writer.By+" since ") {
		t.Errorf("it is told %q", err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it was told after %s", took)
	}
	close(g.open)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if w := l.state().Writer(); w != nil {
		t.Errorf("after the run its writer is %+v", w)
	}
	if err := l.try(l.applier(nil), matching(tolerate("other"), "web")); err != nil {
		t.Errorf("after the first run: %v", err)
	}
}

// Two runs that were prepared from the same state: one of them writes.
func TestTwoRunsAtTheSameMoment(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.create(deployment("web"))
	if err := l.try(l.applier(nil), matching(tolerate("before"), "web")); err != nil {
		t.Fatal(err)
	}
	results := make(chan error, 2)
	var prepared sync.WaitGroup
	prepared.Add(2)
	for _, key := range []string{"one", "two"} {
		a := l.applier(nil)
		changes, findings := l.prepare(a, matching(tolerate(key), "web"))
		if findings.HasErrors() {
			t.Fatal(findings)
		}
		go func() {
			prepared.Done()
			prepared.Wait()
			_, findings, err := a.Run(t.Context(), changes, RunOptions{})
			if err == nil && findings.HasErrors() {
				err = findings
			}
			results <- err
		}()
	}
	one, two := <-results, <-results
	if (one == nil) == (two == nil) {
		t.Errorf("the runs ended with %v and %v, want one of them to be refused", one, two)
	}
	state := l.state()
	if len(state.Revisions) != 2 || state.Latest().State != Complete || state.Writer() != nil {
		t.Errorf("there are %d revisions, the last %s, and the writer is %+v", len(state.Revisions), state.Latest().State, state.Writer())
	}
}

// A run of which nothing is heard any more is one that was killed. The next one
// waits for a sign of it, and then takes its place; should it go on after all,
// it ends.
func TestRunThatFellSilent(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		l.create(deployment(name))
	}
	g := newGate()
	silent := l.applier(g.wrap)
	done := make(chan error, 1)
	every := matching(tolerate("gpu"), "a", "b", "c", "d", "e", "f", "g", "h", "i", "j")
	changes, findings := l.prepare(silent, every)
	if findings.HasErrors() {
		t.Fatal(findings)
	}
	go func() {
		_, _, err := silent.Run(t.Context(), changes, RunOptions{MaxUnavailable: 1, RolloutTimeout: time.Minute})
		done <- err
	}()
	<-g.reached
	g.silent.Store(true)

	next := l.applier(nil)
	var waited atomic.Bool
	next.Progress = func(e Event) {
		if e.Kind == Outwaiting && strings.Contains(e.Message, "revision 1") {
			waited.Store(true)
		}
	}
	// A sign may have been on its way still.
	l.eventually("nothing is heard of the first", func(context.Context) bool {
		waited.Store(false)
		state := l.state()
		return next.outwait(t.Context(), next.store(l.set), state, state.Writer()) == nil
	})
	if !waited.Load() {
		t.Error("it did not say that it waits for a sign of the first")
	}
	if err := l.try(next, every); err != nil {
		t.Errorf("the next run does not take over: %v", err)
	}
	g.silent.Store(false)
	close(g.open)
	if err := <-done; err == nil || !strings.Contains(err.Error(), "has taken over") {
		t.Errorf("the run that had fallen silent ended with %v", err)
	}
	if w := l.state().Writer(); w != nil {
		t.Errorf("after all runs the writer is %+v", w)
	}
}

// Somebody's edit of what says who is writing must not lock a set for good.
func TestWriterThatCannotBeRead(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.create(deployment("web"))
	if err := l.try(l.applier(nil), matching(tolerate("gpu"), "web")); err != nil {
		t.Fatal(err)
	}
	_, err := l.client.Kube.CoreV1().ConfigMaps(l.set.Namespace).Patch(t.Context(), l.set.parentName(), types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"`+writerAnnotation+`":"nonsense"}}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.try(l.applier(nil), matching(tolerate("other"), "web")); err != nil {
		t.Error(err)
	}
}
