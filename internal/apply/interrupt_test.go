package apply

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// requestLog is a transport that counts requests, and from the limit on fails
// them: after the server has answered, so that the write may have happened, or
// before it is asked.
type requestLog struct {
	mu       sync.Mutex
	requests []string
	// all counts the requests of every kind.
	all int
	// limit is how many writes come through; negative for all.
	limit int
	armed bool
	// lost says that the write which meets the limit reaches the server and only
	// its answer is lost.
	lost bool
}

var errCut = errors.New("the connection was cut")

func (r *requestLog) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(req *http.Request) (*http.Response, error) {
		write := req.Method != http.MethodGet && req.URL.Query().Get("dryRun") == "" && !reviews(req.URL.Path)
		r.mu.Lock()
		r.all++
		if write {
			r.requests = append(r.requests, req.Method+" "+req.URL.Path)
		}
		n, cut, lost := len(r.requests), r.armed, r.lost
		r.mu.Unlock()
		switch {
		case !cut || n <= r.limit:
			return next.RoundTrip(req)
		case lost && write && n == r.limit+1:
			response, err := next.RoundTrip(req)
			if err != nil {
				return nil, err
			}
			return nil, errors.Join(errCut, response.Body.Close())
		}
		return nil, errCut
	})
}

func reviews(path string) bool {
	return path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" || path == "/apis/authentication.k8s.io/v1/selfsubjectreviews"
}

func (r *requestLog) writes() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests
}

func (r *requestLog) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = nil
}

func (r *requestLog) total() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestInterruptedAnywhere cuts a run after each of its writes, before the server
// sees the next or before its answer is seen, and runs it again: the end must
// be the same.
func TestInterruptedAnywhere(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("lost-answer-%v", lost), func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			free := l.create(deployment("free"))
			forced := l.create(deployment("forced", "tolerations: [{key: theirs, operator: Exists}]"))
			partly := l.create(deployment("partly", "tolerations: [{key: theirs, operator: Exists}]"))
			objects := []*unstructured.Unstructured{free, forced, partly}
			first := matching(all(tolerate("gpu"), require("class", "gpu")), "free", "forced", "partly")
			second := []edit{matching(tolerate("other"), "free"), matching(require("class", "gpu"), "partly")}

			steps := []struct {
				name string
				do   func(*Applier) error
				ok   func() bool
			}{
				{"apply", func(a *Applier) error { return l.try(a, first) }, func() bool {
					return tolerationKeys(l.get(free)) == "gpu" && tolerationKeys(l.get(forced)) == "theirs,gpu" && tolerationKeys(l.get(partly)) == "theirs,gpu"
				}},
				{"change", func(a *Applier) error { return l.try(a, second...) }, func() bool {
					return tolerationKeys(l.get(free)) == "other" && tolerationKeys(l.get(partly)) == "theirs" && !ownedByUs(l.get(partly), "tolerations")
				}},
				{"delete", func(a *Applier) error { return l.tryDelete(a) }, func() bool { return !l.state().Exists() }},
			}
			for limit := 0; ; limit++ {
				cut := false
				for _, step := range steps {
					log := &requestLog{limit: limit, armed: true, lost: lost}
					a := l.applier(log.wrap)
					a.ForceConflicts = true
					if err := step.do(a); err != nil {
						cut = true
						again := l.applier(nil)
						again.ForceConflicts = true
						if err := step.do(again); err != nil {
							t.Fatalf("%s, cut after %d writes, and run again: %v", step.name, limit, err)
						}
					}
					if !step.ok() {
						t.Fatalf("%s, cut after %d writes, did not come to its end", step.name, limit)
					}
				}
				for _, u := range objects {
					l.sameObject(u)
				}
				if t.Failed() || !cut {
					t.Logf("the longest step has %d writes", limit)
					return
				}
			}
		})
	}
}

// try applies and returns what went wrong.
func (l *lab) try(a *Applier, edits ...edit) error {
	l.Helper()
	changes, findings, err := a.Prepare(l.Context(), l.request(a, edits...))
	if err != nil {
		return err
	}
	if findings.HasErrors() {
		return findings
	}
	_, findings, err = a.Run(l.Context(), changes, RunOptions{})
	if err == nil && findings.HasErrors() {
		return findings
	}
	return err
}

func (l *lab) tryDelete(a *Applier) error {
	state := l.state()
	if !state.Exists() {
		return nil
	}
	changes, findings, err := a.PrepareDelete(l.Context(), state)
	if err != nil {
		return err
	}
	if findings.HasErrors() {
		return findings
	}
	_, findings, err = a.Run(l.Context(), changes, RunOptions{Forget: true})
	if err == nil && findings.HasErrors() {
		return findings
	}
	return err
}
