package contain

import (
	"context"

	fwk "k8s.io/kube-scheduler/framework"
)

// PodGroupPostFilterPlugin contains a PodGroupPostFilterPlugin.
type PodGroupPostFilterPlugin struct {
	meter *meter
	inner fwk.PodGroupPostFilterPlugin
}

func (a *PodGroupPostFilterPlugin) attach(g *Guard, plugin fwk.Plugin) (err error) {
	a.meter = g.meter(atPodGroupPostFilter)
	a.inner, err = part[fwk.PodGroupPostFilterPlugin](plugin)
	return err
}

// PodGroupPostFilter forwards.
func (a *PodGroupPostFilterPlugin) PodGroupPostFilter(ctx context.Context, state fwk.PodGroupCycleState, group fwk.PodGroupInfo, try fwk.PodGroupSchedulingFunc) (result *fwk.PodGroupPostFilterResult, status *fwk.Status) {
	defer a.meter.status(ctx, a.meter.now(), nil, &status)
	return a.inner.PodGroupPostFilter(ctx, state, group, try)
}

// PlacementGeneratePlugin contains a PlacementGeneratePlugin.
type PlacementGeneratePlugin struct {
	meter *meter
	inner fwk.PlacementGeneratePlugin
}

func (a *PlacementGeneratePlugin) attach(g *Guard, plugin fwk.Plugin) (err error) {
	a.meter = g.meter(atGeneratePlacements)
	a.inner, err = part[fwk.PlacementGeneratePlugin](plugin)
	return err
}

// GeneratePlacements forwards.
func (a *PlacementGeneratePlugin) GeneratePlacements(ctx context.Context, state fwk.PodGroupCycleState, group fwk.PodGroupInfo, parent *fwk.Placement) (result *fwk.GeneratePlacementsResult, status *fwk.Status) {
	defer a.meter.status(ctx, a.meter.now(), nil, &status)
	return a.inner.GeneratePlacements(ctx, state, group, parent)
}

// PlacementScorePlugin contains a PlacementScorePlugin and its extensions.
type PlacementScorePlugin struct {
	meter, normalize *meter
	inner            fwk.PlacementScorePlugin
}

func (a *PlacementScorePlugin) attach(g *Guard, plugin fwk.Plugin) (err error) {
	a.meter, a.normalize = g.meter(atScorePlacement), g.meter(atNormalizePlacementScore)
	a.inner, err = part[fwk.PlacementScorePlugin](plugin)
	return err
}

// ScorePlacement forwards.
func (a *PlacementScorePlugin) ScorePlacement(ctx context.Context, state fwk.PlacementCycleState, group fwk.PodGroupInfo, placed *fwk.PodGroupAssignments) (score int64, status *fwk.Status) {
	defer a.meter.status(ctx, a.meter.now(), nil, &status)
	return a.inner.ScorePlacement(ctx, state, group, placed)
}

// PlacementScoreExtensions returns the plugin's extensions contained, nil if it
// has none. If the plugin panics instead, what is returned fails.
func (a *PlacementScorePlugin) PlacementScoreExtensions() (contained fwk.PlacementScoreExtensions) {
	defer extensions(a.meter, &contained)
	inner := a.inner.PlacementScoreExtensions()
	if inner == nil {
		return nil
	}
	return placementScoreExtensions{a.normalize, inner}
}

// placementScoreExtensions contains a plugin's PlacementScoreExtensions.
type placementScoreExtensions struct {
	meter *meter
	inner fwk.PlacementScoreExtensions
}

// NormalizePlacementScore forwards.
func (e placementScoreExtensions) NormalizePlacementScore(ctx context.Context, state fwk.PodGroupCycleState, group fwk.PodGroupInfo, scores []fwk.PlacementScore) (status *fwk.Status) {
	defer e.meter.status(ctx, e.meter.now(), nil, &status)
	return e.inner.NormalizePlacementScore(ctx, state, group, scores)
}
