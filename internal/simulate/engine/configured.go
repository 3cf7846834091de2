package engine

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Extender is an extender of a scheduler's configuration.
type Extender struct {
	config.Extender
	// Schedulers are the names of the profiles in that configuration.
	Schedulers []string
}

// upstream reports whether upstream chooses the nodes.
func (o Options) upstream() bool { return o.AsConfigured || o.CallExtenders && len(o.Extenders) > 0 }

// extenders returns the extenders as the engine has them. They bind nothing, and say
// nothing unless they are to be called. Resources that they manage are theirs all the
// same.
func (o Options) extenders() []config.Extender {
	var list []config.Extender
	for _, e := range o.Extenders {
		c := *e.Extender.DeepCopy()
		c.BindVerb = ""
		if !o.CallExtenders {
			c.FilterVerb, c.PrioritizeVerb, c.PreemptVerb, c.TLSConfig = "", "", "", nil
		}
		list = append(list, c)
	}
	return list
}

// interested is an extender that is asked about pods of its own scheduler alone.
type interested struct {
	fwk.Extender
	schedulers []string
}

// IsInterested reports whether the extender is asked about the pod.
func (i interested) IsInterested(pod *corev1.Pod) bool {
	return slices.Contains(i.schedulers, pod.Spec.SchedulerName) && i.Extender.IsInterested(pod)
}

// asConfigured has upstream's own SchedulePod choose, which samples the nodes and asks
// extenders, and only writes down what it says.
func (e *Engine) asConfigured(o Options) {
	if !o.CallExtenders {
		e.sched.Extenders = nil
	}
	for i, extender := range e.sched.Extenders {
		// Upstream puts those that may be ignored last, and keeps their order otherwise.
		e.sched.Extenders[i] = interested{extender, schedulersOf(o.Extenders, extender.Name())}
	}
	upstream := e.sched.SchedulePod
	e.sched.SchedulePod = func(ctx context.Context, f framework.Framework, state fwk.CycleState, info *framework.QueuedPodInfo) (scheduler.ScheduleResult, error) {
		result, err := upstream(ctx, f, state, info)
		attempt := Attempt{Pod: info.Pod, Node: result.SuggestedHost, Evaluated: result.EvaluatedNodes, Feasible: result.FeasibleNodes}
		var unfit *framework.FitError
		if errors.As(err, &unfit) {
			attempt.Evaluated = unfit.NumAllNodes
			attempt.Rejections = e.chooser.rejections(nil, unfit.Diagnosis)
		}
		e.chooser.last[info.Pod.UID] = attempt
		return result, err
	}
}

// schedulersOf are the schedulers that have an extender of the URL.
func schedulersOf(list []Extender, url string) []string {
	var names []string
	for _, e := range list {
		if e.URLPrefix == url {
			names = append(names, e.Schedulers...)
		}
	}
	return names
}
