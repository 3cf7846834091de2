package simulate

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/simulate/engine"
)

// Offer returns what is in the way of the pod on a node like the template, were there
// one, with the pods that DaemonSets would run on it; none where the node would take it.
func (w *World) Offer(ctx context.Context, pod *corev1.Pod, template *corev1.Node) ([]engine.Blocker, error) {
	last, evicted := w.last, w.evicted
	defer func() { w.last, w.evicted = last, evicted }()
	name, err := w.addNode(template)
	if err != nil {
		return nil, err
	}
	trial, err := w.engine.Try(ctx, pod)
	if err != nil {
		return nil, err
	}
	if _, err := w.takeBack(name); err != nil {
		return nil, err
	}
	if len(trial.Blockers) == 0 && trial.Feasible == 0 {
		return []engine.Blocker{{Reasons: []string{trial.Message}}}, nil
	}
	return trial.Blockers[name], nil
}
