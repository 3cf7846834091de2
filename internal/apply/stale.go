package apply

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

// attempts is how often a write is tried that fails because somebody else's write
// of other fields (a status, a scale) came first. While pods are replaced their
// controller writes the object many times a second, so the waits between the tries
// grow: all of them together take about 25 seconds.
const attempts = 20

// betweenAttempts are those waits.
func (a *Applier) betweenAttempts() wait.Backoff {
	if a.retries != nil {
		return *a.retries
	}
	return wait.Backoff{Duration: 10 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: attempts, Cap: 2 * time.Second}
}

// whileStale calls once until it no longer fails because the object is not the one
// any more that it was computed from, and renew before each call but the first. It
// gives up with an overtakenError.
func (a *Applier) whileStale(ctx context.Context, subject string, once, renew func() error) error {
	waits := a.betweenAttempts()
	tries := waits.Steps
	for attempt := 1; ; attempt++ {
		err := once()
		switch {
		case !isStale(err):
			return err
		case attempt == tries:
			return &overtakenError{subject: subject, err: err, message: fmt.Sprintf(
				"somebody else changed it each time before our write came, %d times; see in its managedFields who does, and run the command again when that has ended", tries)}
		}
		timer := time.NewTimer(waits.Step())
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
		if err := renew(); err != nil {
			return err
		}
	}
}

// overtakenError is an object to which somebody else has done something between our
// reading and our writing it that the write cannot be moved past.
type overtakenError struct {
	subject, message string
	// err is what the API server answered last; may be nil.
	err error
}

func (e *overtakenError) Error() string { return e.subject + ": " + e.message }

// Unwrap returns what the API server answered.
func (e *overtakenError) Unwrap() error { return e.err }

// isStale reports whether a write failed because the object is no longer the one
// that it was computed from. A failed test of a JSON patch is answered with
// "unprocessable" and nothing else: no field is named, as it is for an object
// that is invalid.
func isStale(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	s := status.Status()
	switch s.Code {
	case http.StatusConflict:
		return len(conflictsIn(err, "", nil)) == 0
	case http.StatusUnprocessableEntity:
		return s.Details == nil || s.Details.Kind == "" && len(s.Details.Causes) == 0
	}
	return false
}
