package podgroup

import (
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

const (
	// statusPeriod is how often the status of PodGroup objects is looked over. A
	// change is written when it has stood for one period, so that a gang that starts
	// or ends costs one write, not one a member.
	statusPeriod = time.Second
	// statusPatience is how long a status that keeps changing may be out of date.
	statusPatience = 10 * time.Second
	// statusBurst is how many are written in a period at most.
	statusBurst = 20
)

// statusWriter keeps the status of PodGroup objects. Another controller's is never
// fought: a status of which somebody else owns a field is left alone, and what we
// wrote there is taken back. It applies without force, so that of two who begin at
// once the later one is told.
type statusWriter struct {
	engine *Engine
	noted  map[types.UID]*notedStatus
	// withoutScheduled are the resources whose status has no number of scheduled
	// members.
	withoutScheduled map[schema.GroupVersionResource]bool
}

// notedStatus is what is known of the status of one object.
type notedStatus struct {
	wanted groupStatus // as of the last look
	since  time.Time   // when it was first other than written
	// written is what was applied last; nil: nothing by us.
	written *groupStatus
	// left says that the status is another's, and was left to them.
	left bool
}

func newStatusWriter(e *Engine) *statusWriter {
	return &statusWriter{engine: e, noted: map[types.UID]*notedStatus{}, withoutScheduled: map[schema.GroupVersionResource]bool{}}
}

// run keeps the status until ctx is over.
func (w *statusWriter) run(ctx context.Context) {
	ticker := w.engine.options.Clock.NewTicker(statusPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		w.lookOver(ctx)
	}
}

// lookOver writes what has changed, once.
func (w *statusWriter) lookOver(ctx context.Context) {
	now := w.engine.options.Clock.Now()
	writes := 0
	current := map[types.UID]bool{}
	for _, wanted := range w.engine.directory.statuses() {
		current[wanted.uid] = true
		if gvr, ok := resourceOf(wanted.of.family); ok && w.withoutScheduled[gvr] {
			wanted.says.scheduled = 0
		}
		noted := w.noted[wanted.uid]
		if noted == nil {
			noted = &notedStatus{}
			w.noted[wanted.uid] = noted
		}
		if writes < statusBurst && w.due(noted, wanted, now) {
			writes++
			w.write(ctx, noted, wanted)
		}
	}
	for uid := range w.noted {
		if !current[uid] {
			delete(w.noted, uid)
		}
	}
}

// due reports whether something has to be written for an object by now.
func (w *statusWriter) due(noted *notedStatus, wanted wantedStatus, now time.Time) bool {
	own := wanted.current.managers[w.engine.options.Reporter]
	if wanted.current.foreign(w.engine.options.Reporter) {
		return own && !noted.left
	}
	if noted.left { // they have gone
		*noted = notedStatus{}
	}
	if !wanted.members && !own || wanted.says == wanted.current.says || noted.written != nil && wanted.says == *noted.written {
		noted.since = time.Time{}
		return false
	}
	stable := noted.wanted == wanted.says && !noted.since.IsZero()
	noted.wanted = wanted.says
	if noted.since.IsZero() {
		noted.since = now
	}
	return stable || now.Sub(noted.since) >= statusPatience
}

// write applies the status, or takes back what we wrote where it is another's.
func (w *statusWriter) write(ctx context.Context, noted *notedStatus, wanted wantedStatus) {
	logger := klog.FromContext(ctx)
	gvr, ok := resourceOf(wanted.of.family)
	if !ok {
		return
	}
	var says *groupStatus
	if !wanted.current.foreign(w.engine.options.Reporter) {
		says = &wanted.says
	}
	err := w.apply(ctx, gvr, wanted, says)
	switch {
	case err == nil:
		noted.written, noted.left, noted.since = says, says == nil, time.Time{}
		if says == nil {
			logger.Info("The status of a PodGroup is another's, and is left to them", "podGroup", klog.KRef(wanted.of.namespace, wanted.of.name))
		}
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		// Somebody else was first, or it is gone: the informer will say which.
		noted.since = time.Time{}
	case ctx.Err() == nil:
		noted.since = w.engine.options.Clock.Now() // not again before statusPatience
		noted.wanted = groupStatus{}
		logger.Error(err, "Cannot write the status of a PodGroup", "podGroup", klog.KRef(wanted.of.namespace, wanted.of.name), "resource", gvr)
	}
}

// apply applies the status, none where says is nil.
func (w *statusWriter) apply(ctx context.Context, gvr schema.GroupVersionResource, wanted wantedStatus, says *groupStatus) error {
	client := w.engine.options.Dynamic.Resource(gvr).Namespace(wanted.of.namespace)
	options := metav1.ApplyOptions{FieldManager: w.engine.options.Reporter}
	for {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": gvr.GroupVersion().String(), "kind": "PodGroup",
			// The UID: a new object of that name has a status of its own.
			"metadata": map[string]any{"name": wanted.of.name, "namespace": wanted.of.namespace, "uid": string(wanted.uid)},
		}}
		scheduled := !w.withoutScheduled[gvr]
		if says != nil {
			o.Object["status"] = says.object(scheduled)
		}
		_, err := client.ApplyStatus(ctx, wanted.of.name, o, options)
		// What a schema does not declare cannot be applied, though it can be patched.
		if err == nil || says == nil || !scheduled || !strings.Contains(err.Error(), ".status.scheduled: field not declared in schema") {
			return err
		}
		w.withoutScheduled[gvr] = true
	}
}
