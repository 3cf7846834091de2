package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/apply"
	"github.com/kubectl-sched/kubectl-sched/internal/report"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// liveVerb is what is done in each live cluster.
type liveVerb struct {
	// do does it, with what compiling has found.
	do func(context.Context, *livePlan, diag.Findings) error
	// goOn says that what goes wrong in one cluster is no reason to leave the
	// others out. A verb that writes ends there instead.
	goOn   bool
	format report.Format
}

// inEach compiles the policies for each cluster that the run is for, one after
// the other, and does the verb's work there.
func (p *pipeline) inEach(ctx context.Context, set apply.Set, verb liveVerb) error {
	placement, findings := p.loadPlacement(ctx)
	if findings.HasErrors() {
		return p.app.stop(findings, nil)
	}
	targets, err := p.liveTargets(placement)
	if err != nil {
		return p.app.stop(findings, err)
	}
	code := exitOK
	for i, target := range targets {
		if len(targets) > 1 {
			p.heading(verb.format, target.Name)
		}
		err := p.inOne(ctx, placement, target, set, verb, findings)
		// What the policies alone are warned of is said once.
		findings = nil
		var exit exitError
		switch {
		case err == nil:
			continue
		case len(targets) == 1 || ctx.Err() != nil:
			return err
		case errors.As(err, &exit) && exit.code == exitFindings:
			code = max(code, exitFindings)
			continue
		}
		code = exitFailure
		if !errors.As(err, &exit) || exit.err != nil {
			p.app.complain("error: cluster %s: %v", target.Name, err)
		}
		if rest := targets[i+1:]; !verb.goOn && len(rest) > 0 {
			return fmt.Errorf("stopped in cluster %s; nothing was done in %s", target.Name, strings.Join(clusterNamesOf(rest), ", "))
		}
	}
	if code == exitOK {
		return nil
	}
	return exitError{code: code}
}

func (p *pipeline) inOne(ctx context.Context, placement *policy.Placement, target *policy.Cluster, set apply.Set, verb liveVerb, findings diag.Findings) error {
	live, fs, err := p.compileLive(ctx, placement, target, set)
	findings = append(findings, fs...)
	if err != nil || findings.HasErrors() {
		return p.app.stop(findings, err)
	}
	return verb.do(ctx, live, findings)
}

// heading says which cluster comes next: on the stream that does not hold a
// document, and between two of them in YAML.
func (p *pipeline) heading(format report.Format, cluster string) {
	switch format {
	case report.JSON:
	case report.YAML:
		fmt.Fprintln(p.app.Out, "---")
	default:
		fmt.Fprintf(p.app.Out, "# cluster %s\n", cluster)
	}
}

// liveTargets returns the clusters to write to: the named one, the only one that
// policies are written into, or, for "all", every such one; one nil for a
// document that speaks of none.
func (p *pipeline) liveTargets(placement *policy.Placement) ([]*policy.Cluster, error) {
	targets, err := p.targets(placement)
	if err != nil || len(targets) == 0 {
		return []*policy.Cluster{nil}, err
	}
	var live []*policy.Cluster
	for i := range targets {
		if p.surfaceOf(&targets[i], "") != policy.SurfaceRender {
			live = append(live, &targets[i])
		}
	}
	switch {
	case len(live) == 0 && p.cluster != "" && p.cluster != allClusters:
		return nil, fmt.Errorf("cluster %q has surface \"render\": its manifests are what policies are compiled into (kubectl sched compile); set its surface to \"live\" or \"admission\" in %s, or give --surface, to write into the cluster itself",
			p.cluster, targets[0].Positions.At("surface").Start)
	case len(live) == 0:
		return nil, errors.New("all of the clusters have surface \"render\"; the manifests are what policies are compiled into (kubectl sched compile), unless --surface says otherwise")
	case len(live) == 1:
		return live, nil
	case p.cluster != allClusters:
		return nil, usageError{fmt.Errorf("name the cluster with --cluster, or give --cluster all; policies are written into %s", strings.Join(clusterNamesOf(live), ", "))}
	}
	return live, p.reachable(live)
}

// reachable says of a fleet whether each cluster has a kubeconfig context of its
// own: one cluster must not get what is meant for another.
func (p *pipeline) reachable(clusters []*policy.Cluster) error {
	if p.config.Context != nil && *p.config.Context != "" {
		return usageError{errors.New("--cluster all reaches each cluster by the context that the policies name, so --context must not be given")}
	}
	byContext := map[string]string{}
	for _, c := range clusters {
		if c.Context == "" {
			return usageError{fmt.Errorf("--cluster all: cluster %q has no context in the policies; add the name of its kubeconfig context (clusters.%q.context), or name one cluster", c.Name, c.Name)}
		}
		if other, ok := byContext[c.Context]; ok {
			return usageError{fmt.Errorf("--cluster all: clusters %q and %q have the same context %q; each needs its own", other, c.Name, c.Context)}
		}
		byContext[c.Context] = c.Name
	}
	return nil
}

func clusterNamesOf(clusters []*policy.Cluster) []string {
	names := make([]string, len(clusters))
	for i, c := range clusters {
		names[i] = c.Name
	}
	slices.Sort(names)
	return names
}
