package gates

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/condition"
)

const (
	// FieldManager is the manager of what the controller writes.
	FieldManager = "kubectl-sched-gates"
	// repeatPeriod is how long a note stands at least before the next, if its
	// reason is the same and only its numbers have changed.
	repeatPeriod = 10 * time.Second
	// renewPeriod is when what was said is said again: the API server forgets
	// events, by default after an hour.
	renewPeriod = 30 * time.Minute
	// conflictPeriod is when a patch that met a conflict is tried again.
	conflictPeriod = time.Second
	// maxNote is the longest note that the API server takes, in bytes
	// (pkg/apis/core/validation, NoteLengthLimit).
	maxNote = 1024
)

// record is what was done and said of one pod. It is lost with the process, whose
// successor says it again, and finds the gates that were opened gone.
type record struct {
	opened map[string]bool
	said   map[string]statement
}

// statement is what was last said of a gate.
type statement struct {
	reason, note string
	at           time.Time
}

// recordsOf returns the records of the pods that wait in the namespace, and drops
// those of others.
func (c *Controller) recordsOf(namespace string, waiting []*corev1.Pod) map[types.UID]*record {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[types.UID]*record{}
	for _, pod := range waiting {
		r, ok := c.known[namespace][pod.UID]
		if !ok {
			r = &record{opened: map[string]bool{}, said: map[string]statement{}}
		}
		out[pod.UID] = r
	}
	if c.known[namespace] = out; len(out) == 0 {
		delete(c.known, namespace)
	}
	return out
}

// open removes gates from the pod, and reports whether that is done. It is not,
// although nothing failed, if the pod is another one by now, or others keep
// changing it; then it is to be tried again, unless the informer says otherwise.
func (p *pass) open(ctx context.Context, pod *corev1.Pod, gates []string, verdicts map[string]verdict) (bool, error) {
	patch, err := removal(pod, gates)
	if err != nil {
		return false, err
	}
	_, err = p.options.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
	if apierrors.IsConflict(err) {
		return false, nil
	}
	gone := apierrors.IsNotFound(err)
	if err != nil && !gone {
		err = fmt.Errorf("remove %s from pod %s/%s: %w", strings.Join(gates, ", "), pod.Namespace, pod.Name, err)
		for _, gate := range gates {
			p.say(ctx, pod, gate, verdict{reason: reasonPatchFailed, note: err.Error()})
		}
		return false, err
	}
	for _, gate := range gates {
		// Until the informer shows it, the gate counts as open.
		p.records[pod.UID].opened[gate] = true
		if gone {
			continue
		}
		p.metrics.opened.WithLabelValues(string(verdicts[gate].kind)).Inc()
		after := p.now.Sub(pod.CreationTimestamp.Time).Round(time.Second)
		p.event(ctx, pod, gate, corev1.EventTypeNormal, "opened after "+after.String(), verdict{reason: ReasonOpened, note: verdicts[gate].note})
	}
	return true, nil
}

// removal returns the patch that takes the gates from this very pod, those that it
// still has. The lists of gates are merged by name, so others stay, whatever else
// happens to them meanwhile.
func removal(pod *corev1.Pod, gates []string) ([]byte, error) {
	deletions := make([]map[string]string, len(gates))
	for i, gate := range gates {
		deletions[i] = map[string]string{"$patch": "delete", "name": gate}
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"spec":     map[string]any{"schedulingGates": deletions},
	})
}

// say writes why a gate stays, if that is not what was last said of it or was said
// long ago. It returns when to say it again at the latest.
func (p *pass) say(ctx context.Context, pod *corev1.Pod, gate string, v verdict) time.Time {
	known := p.records[pod.UID]
	last, ok := known.said[gate]
	if ok && last.reason == v.reason {
		period := repeatPeriod
		if last.note == v.note {
			period = renewPeriod
		}
		if again := last.at.Add(period); p.now.Before(again) {
			return again
		}
	}
	known.said[gate] = statement{v.reason, v.note, p.now}
	kind := corev1.EventTypeNormal
	if v.reason == ReasonUnreadable || v.reason == ReasonCannotRead || v.reason == reasonPatchFailed {
		kind = corev1.EventTypeWarning
	}
	p.event(ctx, pod, gate, kind, "waits since "+pod.CreationTimestamp.UTC().Format(time.RFC3339), v)
	return p.now.Add(renewPeriod)
}

// event writes one event about the gate of the pod: that it does what is said, and
// the verdict's note as the reason. Each is an event of its own, not one of a
// series, for which the API server would keep the first note alone. One that
// cannot be written is only logged: no pod waits for it.
func (c *Controller) event(ctx context.Context, pod *corev1.Pod, gate, kind, does string, v verdict) {
	note := fmt.Sprintf("gate %q %s: %s", condition.Short(gate), does, v.note)
	if len(note) > maxNote {
		note = strings.ToValidUTF8(note[:maxNote-3], "") + "..."
	}
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, GenerateName: pod.Name + "-",
			Annotations: map[string]string{condition.EventGate: gate, condition.EventWhy: v.note},
		},
		EventTime:           metav1.NewMicroTime(c.clock.Now()),
		ReportingController: condition.Reporter,
		ReportingInstance:   c.options.Instance,
		Action:              "Scheduling",
		Reason:              v.reason,
		Regarding: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		},
		Note: note,
		Type: kind,
	}
	if _, err := c.options.Client.EventsV1().Events(pod.Namespace).Create(ctx, event, metav1.CreateOptions{}); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Cannot write an event", "pod", klog.KObj(pod), "reason", v.reason, "note", note)
	}
}
