package contain

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// PreScorePlugin contains a PreScorePlugin.
type PreScorePlugin struct {
	meter *meter
	inner fwk.PreScorePlugin
}

func (a *PreScorePlugin) attach(g *Guard, plugin fwk.Plugin) (err error) {
	a.meter = g.meter(atPreScore)
	a.inner, err = part[fwk.PreScorePlugin](plugin)
	return err
}

// PreScore forwards.
func (a *PreScorePlugin) PreScore(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) (status *fwk.Status) {
	defer a.meter.status(ctx, a.meter.now(), pod, &status)
	return a.inner.PreScore(ctx, state, pod, nodes)
}

// ScorePlugin contains a ScorePlugin and its extensions.
type ScorePlugin struct {
	meter, normalize *meter
	inner            fwk.ScorePlugin
}

func (a *ScorePlugin) attach(g *Guard, plugin fwk.Plugin) (err error) {
	a.meter, a.normalize = g.meter(atScore), g.meter(atNormalizeScore)
	a.inner, err = part[fwk.ScorePlugin](plugin)
	return err
}

// Score forwards.
func (a *ScorePlugin) Score(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) (score int64, status *fwk.Status) {
	defer a.meter.status(ctx, a.meter.now(), pod, &status)
	return a.inner.Score(ctx, state, pod, node)
}

// ScoreExtensions returns the plugin's extensions contained, nil if it has none.
// If the plugin panics instead, what is returned fails.
func (a *ScorePlugin) ScoreExtensions() (contained fwk.ScoreExtensions) {
	defer extensions(a.meter, &contained)
	inner := a.inner.ScoreExtensions()
	if inner == nil {
		return nil
	}
	return scoreExtensions{a.normalize, inner}
}

// scoreExtensions contains a plugin's ScoreExtensions.
type scoreExtensions struct {
	meter *meter
	inner fwk.ScoreExtensions
}

// NormalizeScore forwards.
func (e scoreExtensions) NormalizeScore(ctx context.Context, state fwk.CycleState, pod *v1.Pod, scores fwk.NodeScoreList) (status *fwk.Status) {
	defer e.meter.status(ctx, e.meter.now(), pod, &status)
	return e.inner.NormalizeScore(ctx, state, pod, scores)
}
