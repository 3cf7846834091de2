package podgroup

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxNote is the longest note that the API server takes, in bytes
// (pkg/apis/core/validation, NoteLengthLimit).
const maxNote = 1024

// writeEvent writes one warning about an object.
func (e *Engine) writeEvent(ctx context.Context, regarding corev1.ObjectReference, reason, note string) error {
	if len(note) > maxNote {
		note = note[:maxNote-3] + "..."
	}
	event := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: regarding.Namespace, GenerateName: regarding.Name + "-"},
		EventTime:           metav1.NewMicroTime(e.options.Clock.Now()),
		ReportingController: e.options.Reporter,
		ReportingInstance:   e.options.Instance,
		Action:              "Scheduling",
		Reason:              reason,
		Regarding:           regarding,
		Note:                note,
		Type:                corev1.EventTypeWarning,
	}
	_, err := e.options.Client.EventsV1().Events(regarding.Namespace).Create(ctx, event, metav1.CreateOptions{})
	return err
}
