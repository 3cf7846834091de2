package contain

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// PreEnqueuePlugin contains a PreEnqueuePlugin. A pod whose call panicked stays gated
// until an event that the plugin registered, or the queue's flush.
type PreEnqueuePlugin struct {
	meter *meter
	inner fwk.PreEnqueuePlugin
}

func (a *PreEnqueuePlugin) attach(g *Guard, plugin fwk.Plugin) (err error) {
	a.meter = g.meter(atPreEnqueue)
	a.inner, err = part[fwk.PreEnqueuePlugin](plugin)
	return err
}

// PreEnqueue forwards.
func (a *PreEnqueuePlugin) PreEnqueue(ctx context.Context, pod *v1.Pod) (status *fwk.Status) {
	defer a.meter.status(ctx, a.meter.now(), pod, &status)
	return a.inner.PreEnqueue(ctx, pod)
}

// QueueSortPlugin contains a QueueSortPlugin. A comparison that panicked is decided as
// upstream's PrioritySort does, so that the queue keeps a strict order.
type QueueSortPlugin struct {
	meter *meter
	inner fwk.QueueSortPlugin
}

func (a *QueueSortPlugin) attach(g *Guard, plugin fwk.Plugin) (err error) {
	a.meter = g.meter(atLess)
	a.inner, err = part[fwk.QueueSortPlugin](plugin)
	return err
}

// Less forwards.
func (a *QueueSortPlugin) Less(one, other fwk.QueuedEntityInfo) (less bool) {
	logger := a.meter.guard.logger
	start := a.meter.now()
	defer func() {
		if what := recover(); what != nil {
			_ = a.meter.panicked(logger, nil, what)
			p, q := one.GetPriority(), other.GetPriority()
			less = p > q || p == q && one.GetTimestamp().Before(other.GetTimestamp())
		}
		if took, over := a.meter.observe(start); over {
			a.meter.overran(logger, start, took, nil)
		}
	}()
	return a.inner.Less(one, other)
}

// EnqueueExtensions contains the events that a plugin registers, and their hint
// functions. A hint that panicked wakes the pod: too often is safe, and upstream
// does so for a hint that fails.
type EnqueueExtensions struct {
	events, hint, preHint *meter
	inner                 fwk.EnqueueExtensions
}

func (a *EnqueueExtensions) attach(g *Guard, plugin fwk.Plugin) (err error) {
	a.events, a.hint, a.preHint = g.meter(atEventsToRegister), g.meter(atQueueingHint), g.meter(atPreQueueingHint)
	a.inner, err = part[fwk.EnqueueExtensions](plugin)
	return err
}

// EventsToRegister forwards, with each hint function contained.
func (a *EnqueueExtensions) EventsToRegister(ctx context.Context) (registered []fwk.ClusterEventWithHint, err error) {
	defer a.events.error(ctx, a.events.now(), nil, &err)
	inner, err := a.inner.EventsToRegister(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range inner {
		if hint := e.QueueingHintFn; hint != nil {
			e.QueueingHintFn = a.contained(hint)
		}
		if hint := e.PreQueueingHintFn; hint != nil {
			e.PreQueueingHintFn = a.containedPre(hint)
		}
		registered = append(registered, e)
	}
	return registered, nil
}

func (a *EnqueueExtensions) contained(hint fwk.QueueingHintFn) fwk.QueueingHintFn {
	return func(logger klog.Logger, pod *v1.Pod, before, after any) (said fwk.QueueingHint, err error) {
		start := a.hint.now()
		defer func() {
			if what := recover(); what != nil {
				said, err = fwk.Queue, a.hint.panicked(logger, pod, what)
			}
			if took, over := a.hint.observe(start); over {
				a.hint.overran(logger, start, took, pod)
			}
		}()
		return hint(logger, pod, before, after)
	}
}

func (a *EnqueueExtensions) containedPre(hint fwk.PreQueueingHintFn) fwk.PreQueueingHintFn {
	return func(logger klog.Logger, before, after any) (said fwk.PreQueueingHintResult, err error) {
		start := a.preHint.now()
		defer func() {
			if what := recover(); what != nil {
				said, err = fwk.PreQueueingHintResult{AllPods: true}, a.preHint.panicked(logger, nil, what)
			}
			if took, over := a.preHint.observe(start); over {
				a.preHint.overran(logger, start, took, nil)
			}
		}()
		return hint(logger, before, after)
	}
}

// SignPlugin contains a SignPlugin. A pod whose call panicked has no signature, so that
// it is scheduled by itself.
type SignPlugin struct {
	meter *meter
	inner fwk.SignPlugin
}

func (a *SignPlugin) attach(g *Guard, plugin fwk.Plugin) (err error) {
	a.meter = g.meter(atSign)
	a.inner, err = part[fwk.SignPlugin](plugin)
	return err
}

// SignPod forwards.
func (a *SignPlugin) SignPod(ctx context.Context, pod *v1.Pod) (fragments []fwk.SignFragment, status *fwk.Status) {
	defer a.meter.status(ctx, a.meter.now(), pod, &status)
	return a.inner.SignPod(ctx, pod)
}
