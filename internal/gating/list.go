package gating

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/condition"
)

// Wait is one scheduling gate of one pod.
type Wait struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	// Gate is its full name, and Name what users call it; for a gate that is not
	// ours they are the same.
	Gate string `json:"gate"`
	Name string `json:"name"`
	// Ours says that the bundled scheduler opens the gate.
	Ours bool `json:"ours"`
	// Since is when the wait began: gates come with the pod and never later.
	Since time.Time `json:"since"`
	// For is what a gate of ours waits for: "approval", "quota" …; empty where its
	// condition cannot be read.
	For condition.Kind `json:"for,omitempty"`
	// Why is what the bundled scheduler last said of a gate of ours, or what is
	// wrong with its condition; empty where nobody has looked at it yet.
	Why string `json:"why,omitempty"`
	// By is who put in a gate that is not ours: the field manager of whoever
	// created the pod.
	By string `json:"by,omitempty"`

	uid types.UID
}

// Query says which pods are meant: those of the namespace (all namespaces if it is
// empty) that the selector selects and, if there are names, have one of them.
type Query struct {
	Namespace string
	Selector  labels.Selector
	Names     []string
}

// waitingPods selects the pods that can have gates, so that the API server sends
// no others.
var waitingPods = fields.Set{"spec.nodeName": "", "status.phase": string(corev1.PodPending)}.String()

// List returns the gates that hold pods back, by namespace and pod, in the order in
// which each pod has them. What could not be read besides the pods is a Warning.
func List(ctx context.Context, client *cluster.Client, q Query) ([]Wait, diag.Findings, error) {
	pods, err := gatedPods(ctx, client, q)
	if err != nil {
		return nil, nil, err
	}
	said, findings, err := statements(ctx, client, q.Namespace, pods)
	if err != nil {
		return nil, nil, err
	}
	waits := []Wait{}
	for i := range pods {
		for _, gate := range pods[i].Spec.SchedulingGates {
			waits = append(waits, waitOf(&pods[i], gate.Name, said))
		}
	}
	return waits, findings, nil
}

// gatedPods returns the pods of the query that have gates, by namespace and name.
func gatedPods(ctx context.Context, client *cluster.Client, q Query) ([]corev1.Pod, error) {
	options := metav1.ListOptions{FieldSelector: waitingPods}
	if q.Selector != nil {
		options.LabelSelector = q.Selector.String()
	}
	list, err := client.Kube.CoreV1().Pods(q.Namespace).List(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	pods := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
		return len(p.Spec.SchedulingGates) == 0 || len(q.Names) > 0 && !slices.Contains(q.Names, p.Name)
	})
	slices.SortFunc(pods, func(a, b corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return pods, nil
}

func waitOf(pod *corev1.Pod, gate string, said map[statementKey]statement) Wait {
	w := Wait{Namespace: pod.Namespace, Pod: pod.Name, Gate: gate, Name: gate, Since: pod.CreationTimestamp.Time, uid: pod.UID}
	if !condition.Ours(gate) {
		w.By = gateManager(pod, gate)
		return w
	}
	w.Ours, w.Name = true, condition.Short(gate)
	c, err := condition.Of(pod.Annotations, gate)
	if err != nil {
		w.Why = err.Error()
		return w
	}
	w.For, w.Why = c.Kind(), said[statementKey{pod.UID, gate}].why
	return w
}

// gateManager returns the field manager that has the gate; "" if that is not known.
func gateManager(pod *corev1.Pod, gate string) string {
	for _, entry := range pod.ManagedFields {
		if entry.FieldsV1 == nil {
			continue
		}
		var set struct {
			Spec struct {
				Gates map[string]json.RawMessage `json:"f:schedulingGates"`
			} `json:"f:spec"`
		}
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &set) != nil {
			continue
		}
		for key := range set.Spec.Gates {
			var item struct {
				Name string `json:"name"`
			}
			if k, ok := strings.CutPrefix(key, "k:"); ok && json.Unmarshal([]byte(k), &item) == nil && item.Name == gate {
				return entry.Manager
			}
		}
	}
	return ""
}

type statementKey struct {
	pod  types.UID
	gate string
}

// statement is what the bundled scheduler said of a gate.
type statement struct {
	why string
	at  time.Time
}

// statements returns the last that was said of each gate of the pods, from the
// events about them.
func statements(ctx context.Context, client *cluster.Client, namespace string, pods []corev1.Pod) (map[statementKey]statement, diag.Findings, error) {
	said := map[statementKey]statement{}
	if !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return len(ours(&p)) > 0 }) {
		return said, nil, nil
	}
	list, err := client.Kube.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Pod,reportingComponent=" + condition.Reporter})
	if apierrors.IsForbidden(err) {
		return said, diag.Findings{{
			Rule: "gates/cannot-read", Severity: diag.Warning, Message: "you may not list events, so what the scheduler says of gates is not shown",
		}}, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list events: %w", err)
	}
	for _, e := range list.Items {
		gate, ok := e.Annotations[condition.EventGate]
		key := statementKey{e.InvolvedObject.UID, gate}
		if ok && !e.EventTime.Time.Before(said[key].at) {
			said[key] = statement{why: e.Annotations[condition.EventWhy], at: e.EventTime.Time}
		}
	}
	return said, nil, nil
}

// ours returns the pod's gates that are ours.
func ours(pod *corev1.Pod) []string {
	var names []string
	for _, g := range pod.Spec.SchedulingGates {
		if condition.Ours(g.Name) {
			names = append(names, g.Name)
		}
	}
	return names
}
