package apply

import (
	"context"
	"errors"
	"fmt"
)

// StoppedError is a run or a wait that ended before its end. It says how to go
// on, and is complete in itself where the user ended it.
type StoppedError struct {
	text string
	err  error
}

func (e *StoppedError) Error() string {
	if errors.Is(e.err, context.Canceled) {
		return "interrupted: " + e.text
	}
	return fmt.Sprintf("%s: %v", e.text, e.err)
}

// Unwrap returns why it ended.
func (e *StoppedError) Unwrap() error { return e.err }

// stopped says how far a run has come that err ended.
func (r *run) stopped(revision int, err error) error {
	return &StoppedError{err: err, text: fmt.Sprintf("%s stopped after %d of %d writes, in revision %d; run the command again to finish it", r.cs.Cause, r.done, r.total, revision)}
}

// waitStopped says what goes on without the wait that err ended.
func waitStopped(err error) error {
	return &StoppedError{err: err, text: "the wait for rollouts has stopped, and they go on by themselves; run the command again to wait for them"}
}
