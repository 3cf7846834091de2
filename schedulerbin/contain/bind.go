package contain

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// ReservePlugin contains a ReservePlugin. An Unreserve that panicked cannot fail the
// pod, which has failed already: what it held is then lost to the plugin until
// the pod is gone or the scheduler starts again, and the log says so.
type ReservePlugin struct {
	reserve, unreserve *meter
	inner              fwk.ReservePlugin
}

func (a *ReservePlugin) attach(g *Guard, plugin fwk.Plugin) (err error) {
	a.reserve, a.unreserve = g.meter(atReserve), g.meter(atUnreserve)
	a.inner, err = part[fwk.ReservePlugin](plugin)
	return err
}

// Reserve forwards.
func (a *ReservePlugin) Reserve(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) (status *fwk.Status) {
	defer a.reserve.status(ctx, a.reserve.now(), pod, &status)
	return a.inner.Reserve(ctx, state, pod, node)
}

// Unreserve forwards.
func (a *ReservePlugin) Unreserve(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) {
	defer a.unreserve.nothing(ctx, a.unreserve.now(), pod)
	a.inner.Unreserve(ctx, state, pod, node)
}

// PermitPlugin contains a PermitPlugin.
type PermitPlugin struct {
	meter *meter
	inner fwk.PermitPlugin
}

func (a *PermitPlugin) attach(g *Guard, plugin fwk.Plugin) (err error) {
	a.meter = g.meter(atPermit)
	a.inner, err = part[fwk.PermitPlugin](plugin)
	return err
}

// Permit forwards.
func (a *PermitPlugin) Permit(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) (status *fwk.Status, timeout time.Duration) {
	defer a.meter.status(ctx, a.meter.now(), pod, &status)
	return a.inner.Permit(ctx, state, pod, node)
}

// PreBindPlugin contains a PreBindPlugin.
type PreBindPlugin struct {
	preFlight, meter *meter
	inner            fwk.PreBindPlugin
}

func (a *PreBindPlugin) attach(g *Guard, plugin fwk.Plugin) (err error) {
	a.preFlight, a.meter = g.meter(atPreBindPreFlight), g.meter(atPreBind)
	a.inner, err = part[fwk.PreBindPlugin](plugin)
	return err
}

// PreBindPreFlight forwards.
func (a *PreBindPlugin) PreBindPreFlight(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) (result *fwk.PreBindPreFlightResult, status *fwk.Status) {
	defer a.preFlight.status(ctx, a.preFlight.now(), pod, &status)
	return a.inner.PreBindPreFlight(ctx, state, pod, node)
}

// PreBind forwards.
func (a *PreBindPlugin) PreBind(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) (status *fwk.Status) {
	defer a.meter.status(ctx, a.meter.now(), pod, &status)
	return a.inner.PreBind(ctx, state, pod, node)
}

// BindPlugin contains a BindPlugin.
type BindPlugin struct {
	meter *meter
	inner fwk.BindPlugin
}

func (a *BindPlugin) attach(g *Guard, plugin fwk.Plugin) (err error) {
	a.meter = g.meter(atBind)
	a.inner, err = part[fwk.BindPlugin](plugin)
	return err
}

// Bind forwards.
func (a *BindPlugin) Bind(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) (status *fwk.Status) {
	defer a.meter.status(ctx, a.meter.now(), pod, &status)
	return a.inner.Bind(ctx, state, pod, node)
}

// PostBindPlugin contains a PostBindPlugin. The pod is bound, so that a panic fails
// nothing.
type PostBindPlugin struct {
	meter *meter
	inner fwk.PostBindPlugin
}

func (a *PostBindPlugin) attach(g *Guard, plugin fwk.Plugin) (err error) {
	a.meter = g.meter(atPostBind)
	a.inner, err = part[fwk.PostBindPlugin](plugin)
	return err
}

// PostBind forwards.
func (a *PostBindPlugin) PostBind(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) {
	defer a.meter.nothing(ctx, a.meter.now(), pod)
	a.inner.PostBind(ctx, state, pod, node)
}
