package contain

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// PreFilterPlugin contains a PreFilterPlugin and its extensions.
type PreFilterPlugin struct {
	meter, addPod, removePod *meter
	inner                    fwk.PreFilterPlugin
}

func (a *PreFilterPlugin) attach(g *Guard, plugin fwk.Plugin) (err error) {
	a.meter, a.addPod, a.removePod = g.meter(atPreFilter), g.meter(atAddPod), g.meter(atRemovePod)
	a.inner, err = part[fwk.PreFilterPlugin](plugin)
	return err
}

// PreFilter forwards.
func (a *PreFilterPlugin) PreFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) (result *fwk.PreFilterResult, status *fwk.Status) {
	defer a.meter.status(ctx, a.meter.now(), pod, &status)
	return a.inner.PreFilter(ctx, state, pod, nodes)
}

// PreFilterExtensions returns the plugin's extensions contained, nil if it has
// none. If the plugin panics instead, both calls of what is returned fail: nil
// would mean that other pods make no difference.
func (a *PreFilterPlugin) PreFilterExtensions() (contained fwk.PreFilterExtensions) {
	defer extensions(a.meter, &contained)
	inner := a.inner.PreFilterExtensions()
	if inner == nil {
		return nil
	}
	return preFilterExtensions{a, inner}
}

// preFilterExtensions contains a plugin's PreFilterExtensions.
type preFilterExtensions struct {
	*PreFilterPlugin
	extensions fwk.PreFilterExtensions
}

// AddPod forwards.
func (e preFilterExtensions) AddPod(ctx context.Context, state fwk.CycleState, pod *v1.Pod, added fwk.PodInfo, node fwk.NodeInfo) (status *fwk.Status) {
	defer e.addPod.status(ctx, e.addPod.now(), pod, &status)
	return e.extensions.AddPod(ctx, state, pod, added, node)
}

// RemovePod forwards.
func (e preFilterExtensions) RemovePod(ctx context.Context, state fwk.CycleState, pod *v1.Pod, removed fwk.PodInfo, node fwk.NodeInfo) (status *fwk.Status) {
	defer e.removePod.status(ctx, e.removePod.now(), pod, &status)
	return e.extensions.RemovePod(ctx, state, pod, removed, node)
}

// failing stands for extensions that could not be had.
type failing struct{ status *fwk.Status }

// AddPod fails.
func (f failing) AddPod(context.Context, fwk.CycleState, *v1.Pod, fwk.PodInfo, fwk.NodeInfo) *fwk.Status {
	return f.status
}

// RemovePod fails.
func (f failing) RemovePod(context.Context, fwk.CycleState, *v1.Pod, fwk.PodInfo, fwk.NodeInfo) *fwk.Status {
	return f.status
}

// NormalizeScore fails.
func (f failing) NormalizeScore(context.Context, fwk.CycleState, *v1.Pod, fwk.NodeScoreList) *fwk.Status {
	return f.status
}

// NormalizePlacementScore fails.
func (f failing) NormalizePlacementScore(context.Context, fwk.PodGroupCycleState, fwk.PodGroupInfo, []fwk.PlacementScore) *fwk.Status {
	return f.status
}

// FilterPlugin contains a FilterPlugin.
type FilterPlugin struct {
	meter *meter
	inner fwk.FilterPlugin
}

func (a *FilterPlugin) attach(g *Guard, plugin fwk.Plugin) (err error) {
	a.meter = g.meter(atFilter)
	a.inner, err = part[fwk.FilterPlugin](plugin)
	return err
}

// Filter forwards.
func (a *FilterPlugin) Filter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) (status *fwk.Status) {
	defer a.meter.status(ctx, a.meter.now(), pod, &status)
	return a.inner.Filter(ctx, state, pod, node)
}

// PostFilterPlugin contains a PostFilterPlugin.
type PostFilterPlugin struct {
	meter *meter
	inner fwk.PostFilterPlugin
}

func (a *PostFilterPlugin) attach(g *Guard, plugin fwk.Plugin) (err error) {
	a.meter = g.meter(atPostFilter)
	a.inner, err = part[fwk.PostFilterPlugin](plugin)
	return err
}

// PostFilter forwards.
func (a *PostFilterPlugin) PostFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, statuses fwk.NodeToStatusReader) (result *fwk.PostFilterResult, status *fwk.Status) {
	defer a.meter.status(ctx, a.meter.now(), pod, &status)
	return a.inner.PostFilter(ctx, state, pod, statuses)
}
