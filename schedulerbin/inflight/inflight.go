// Package inflight limits how many writes are on their way to the API server at a time.
//
// A scheduler that has placed many gangs at once would send all their Bindings at once:
// more than a connection takes, so that more of them are opened, and each Binding would
// wait for all the others and for what is said of the pods. In turn, the first gang is
// whole long before the last.
//
// It must not know what is written.
package inflight

import (
	"net/http"

	"golang.org/x/sync/semaphore"
)

// Limit returns what makes a transport send n writes at a time; others wait in the
// order in which they came, for as long as their contexts let them. Reads, which may
// be watches and last, are not counted.
func Limit(n int64) func(http.RoundTripper) http.RoundTripper {
	places := semaphore.NewWeighted(n)
	return func(next http.RoundTripper) http.RoundTripper { return &limited{next: next, places: places} }
}

type limited struct {
	next   http.RoundTripper
	places *semaphore.Weighted
}

// RoundTrip sends the request in its turn. Its place is free once there is a response:
// of a write that is all but read.
func (l *limited) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodGet || request.Method == http.MethodHead {
		return l.next.RoundTrip(request)
	}
	if err := l.places.Acquire(request.Context(), 1); err != nil {
		return nil, err
	}
	defer l.places.Release(1)
	return l.next.RoundTrip(request)
}

// WrappedRoundTripper returns the transport that is limited, for those who look for what
// is below.
func (l *limited) WrappedRoundTripper() http.RoundTripper { return l.next }
