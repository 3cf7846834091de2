package inflight_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/inflight"
)

// slow is a transport that answers when it is told to.
type slow struct {
	came   chan string
	answer chan struct{}
}

func (s slow) RoundTrip(request *http.Request) (*http.Response, error) {
	s.came <- request.URL.Path
	<-s.answer
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func send(ctx context.Context, transport http.RoundTripper, method, path string) error {
	request, err := http.NewRequestWithContext(ctx, method, "http://api"+path, nil)
	if err != nil {
		return err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// TestLimit holds that a write waits for its turn among those of all transports of one
// limit, that a read does not, and that a wait ends with the request's context.
func TestLimit(t *testing.T) {
	t.Parallel()
	s := slow{came: make(chan string, 10), answer: make(chan struct{})}
	limit := inflight.Limit(1)
	one, other := limit(s), limit(s)
	done := make(chan error, 10)
	go func() { done <- send(t.Context(), one, http.MethodPost, "/first") }()
	if got := <-s.came; got != "/first" {
		t.Fatalf("%s was sent", got)
	}

	over, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := send(over, other, http.MethodPatch, "/over"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a write beside another: %v; want that its time is over", err)
	}

	go func() { done <- send(t.Context(), other, http.MethodGet, "/watch") }()
	if got := <-s.came; got != "/watch" {
		t.Fatalf("%s was sent; want the read, which need not wait", got)
	}
	s.answer <- struct{}{}
	s.answer <- struct{}{}
	go func() { done <- send(t.Context(), other, http.MethodPost, "/second") }()
	if got := <-s.came; got != "/second" {
		t.Fatalf("%s was sent", got)
	}
	s.answer <- struct{}{}
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
