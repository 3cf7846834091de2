package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
)

// writerAnnotation, on the parent of a set, says which run is writing the set.
// The parent is written at its resourceVersion, so of two runs that begin at the
// same moment one is refused. A run says now and then that it goes on; one that
// has not for silence is no more, and the next one takes its place.
const writerAnnotation = "kubectl-sched.github.io/writer"

const (
	// silence is how long a run is waited for that says nothing. It is taken by
	// the clock of whoever waits, so that clocks need not agree.
	silence = 6 * time.Second
	// signsPerSilence is how often in that time a run says that it goes on.
	signsPerSilence = 4
	// longSilence is from when on a run is said to have been interrupted, judged
	// by clocks that may not agree.
	longSilence = 30 * time.Second
	// releaseTime is how long a run that was interrupted takes at most to say so.
	releaseTime = 5 * time.Second
)

// Writer is the run that is writing a set.
type Writer struct {
	// Run tells it from every other run.
	Run string `json:"run"`
	// Revision is the number that it writes, By the user as the cluster knows them.
	Revision int       `json:"revision"`
	By       string    `json:"by,omitempty"`
	Since    time.Time `json:"since"`
	// Seen is when it last said that it goes on, by its own clock.
	Seen time.Time `json:"seen"`
}

// Active reports whether the run, as far as clocks agree, goes on at the moment.
func (w *Writer) Active(now time.Time) bool { return w != nil && now.Sub(w.Seen) < longSilence }

// Writer returns the run that was writing the set when the state was read, nil
// for none. It may have been interrupted without being able to say so.
func (s *State) Writer() *Writer { return writerOf(s.parent) }

func writerOf(parent *corev1.ConfigMap) *Writer {
	if parent == nil || parent.Annotations[writerAnnotation] == "" {
		return nil
	}
	var w Writer
	if err := json.Unmarshal([]byte(parent.Annotations[writerAnnotation]), &w); err != nil {
		// Somebody has edited it; it is like a run of which nothing is heard.
		return &Writer{}
	}
	return &w
}

// BusyError says that another run is writing the set.
type BusyError struct {
	Set    Set
	Writer Writer
}

func (e *BusyError) Error() string {
	by := ""
	if e.Writer.By != "" {
		by = " by " + e.Writer.By
	}
	return fmt.Sprintf("set %q: revision %d is being written%s since %s; run the command again when that is done (\"kubectl sched history --set %s\" says when)",
		e.Set.Name, e.Writer.Revision, by, e.Writer.Since.UTC().Format("2006-01-02 15:04:05 MST"), e.Set.Name)
}

// hold is the right of a run to write its set.
type hold struct {
	store   *store
	writer  Writer
	silence time.Duration
	now     func() time.Time
	cancel  context.CancelCauseFunc
	stop    chan struct{}
	stopped sync.WaitGroup

	mu     sync.Mutex
	parent *corev1.ConfigMap
}

// take makes the run of the revision the one that writes the set, in the same
// write that records the scope and the kinds of objects. The context that it
// returns ends when another run takes over.
func (a *Applier) take(ctx context.Context, s *store, cs *ChangeSet, r *Revision, kinds []schema.GroupKind) (context.Context, *hold, error) {
	if other := cs.state.Writer(); other != nil {
		if err := a.outwait(ctx, s, cs.state, other); err != nil {
			return nil, nil, err
		}
	}
	h := &hold{
		store: s, silence: a.silence(), now: a.now, stop: make(chan struct{}),
		writer: Writer{Run: string(uuid.NewUUID()), Revision: r.Number, By: r.By, Since: r.Started, Seen: a.now().UTC()},
	}
	parent, err := s.saveParent(ctx, cs.state.parent, cs.Scope, kinds, &h.writer)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		// It has changed since it was read: by a run that goes on, or is done.
		if now, errNow := s.maps.Get(ctx, s.set.parentName(), metav1.GetOptions{}); errNow == nil && writerOf(now) != nil {
			return nil, nil, &BusyError{Set: s.set, Writer: *writerOf(now)}
		}
	}
	if err != nil {
		return nil, nil, err
	}
	h.parent = parent
	ctx, h.cancel = context.WithCancelCause(ctx)
	h.stopped.Go(func() { h.renew(ctx) })
	return ctx, h, nil
}

func (a *Applier) silence() time.Duration {
	if a.patience > 0 {
		return a.patience
	}
	return silence
}

// outwait returns nil once nothing has been heard of the other run for as long
// as makes it one that was interrupted, and an error as soon as it is heard of.
func (a *Applier) outwait(ctx context.Context, s *store, state *State, other *Writer) error {
	until := state.read.Add(a.silence())
	if time.Now().Before(until) {
		a.tell(Event{Kind: Outwaiting, Subject: "set " + s.set.Name, Message: fmt.Sprintf("the run of revision %d has not said that it is done; waiting for up to %s to hear of it", other.Revision, a.silence())})
	}
	return wait.PollUntilContextCancel(ctx, a.silence()/(2*signsPerSilence), true, func(ctx context.Context) (bool, error) {
		now, err := s.maps.Get(ctx, s.set.parentName(), metav1.GetOptions{})
		switch {
		case err != nil:
			return false, stateError("read", s.set, err)
		case now.ResourceVersion == state.parent.ResourceVersion:
			return !time.Now().Before(until), nil
		case writerOf(now) != nil:
			return false, &BusyError{Set: s.set, Writer: *writerOf(now)}
		}
		return false, fmt.Errorf("set %q: another run has just changed it; run the command again", s.set.Name)
	})
}

// renew says every now and then that the run goes on. Not being able to say so
// does not end it, but that another run has taken over does.
func (h *hold) renew(ctx context.Context) {
	ticker := time.NewTicker(h.silence / signsPerSilence)
	defer ticker.Stop()
	for {
		select {
		case <-h.stop:
			return
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := h.sign(ctx); err != nil {
				h.cancel(err)
				return
			}
		}
	}
}

// sign says that the run goes on. The error is that another has taken over.
func (h *hold) sign(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writer.Seen = h.now().UTC()
	changed := h.parent.DeepCopy()
	if err := setWriter(changed, &h.writer); err != nil {
		return err
	}
	saved, err := h.store.maps.Update(ctx, changed, metav1.UpdateOptions{FieldManager: h.store.manager})
	if err == nil {
		h.parent = saved
		return nil
	}
	if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return nil
	}
	now, err := h.store.maps.Get(ctx, h.parent.Name, metav1.GetOptions{})
	if err != nil {
		// A server that does not answer now has not said that somebody took over.
		return nil
	}
	return h.mine(now)
}

// mine takes the parent as it is now, unless another run is its writer.
func (h *hold) mine(now *corev1.ConfigMap) error {
	if w := writerOf(now); w == nil || w.Run != h.writer.Run {
		other := "another run"
		if w != nil && w.By != "" {
			other += " by " + w.By
		}
		return fmt.Errorf("%s has taken over set %q, because nothing was heard of this one", other, h.store.set.Name)
	}
	h.parent = now
	return nil
}

// current is the parent as the run last saw it.
func (h *hold) current() *corev1.ConfigMap {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.parent
}

// settled says what has become of the parent once the run is through: a parent
// without a writer, or nil for none.
func (h *hold) settled(parent *corev1.ConfigMap) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.parent = parent
}

// end stops saying that the run goes on, and returns the parent as it is.
func (h *hold) end() *corev1.ConfigMap {
	h.mu.Lock()
	select {
	case <-h.stop:
	default:
		close(h.stop)
	}
	h.mu.Unlock()
	h.stopped.Wait()
	return h.current()
}

// release gives the right to write back, if it is still there to give: also, and
// above all, after the run was interrupted. What it cannot say is found out by
// whoever comes next.
func (h *hold) release(ctx context.Context) {
	parent := h.end()
	defer h.cancel(nil)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	for range attempts {
		if w := writerOf(parent); w == nil || w.Run != h.writer.Run {
			return
		}
		changed := parent.DeepCopy()
		delete(changed.Annotations, writerAnnotation)
		_, err := h.store.maps.Update(ctx, changed, metav1.UpdateOptions{FieldManager: h.store.manager})
		if !apierrors.IsConflict(err) {
			return
		}
		if parent, err = h.store.maps.Get(ctx, parent.Name, metav1.GetOptions{}); err != nil {
			return
		}
	}
}

// setWriter notes the writer on the parent, or that there is none.
func setWriter(parent *corev1.ConfigMap, w *Writer) error {
	if w == nil {
		delete(parent.Annotations, writerAnnotation)
		return nil
	}
	text, err := json.Marshal(w)
	if err != nil {
		return fmt.Errorf("encode the writer of set %q: %w", parent.Name, err)
	}
	metav1.SetMetaDataAnnotation(&parent.ObjectMeta, writerAnnotation, string(text))
	return nil
}
