package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/internal/lint"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// allClusters is the value of --cluster that stands for every cluster.
const allClusters = "all"

// pipelineFlags are the flags of every verb that compiles.
type pipelineFlags struct {
	policyFlags
	manifestFlags
	clusterFlags
	surfaceFlag
}

func newPipelineFlags(a *app) pipelineFlags { return pipelineFlags{clusterFlags: newClusterFlags(a)} }

// addTo adds all of the flags: policies, manifests, cluster.
func (f *pipelineFlags) addTo(flags *pflag.FlagSet) {
	f.policyFlags.addTo(flags)
	f.manifestFlags.addTo(flags)
	f.clusterFlags.addTo(flags)
	f.clusterFlags.addReading(flags)
	f.surfaceFlag.addTo(flags, "How the policies reach the workloads, whatever the cluster's surface is in the policies: render, live or admission",
		policy.SurfaceRender, policy.SurfaceLive, policy.SurfaceAdmission)
}

// toOptions resolves the flags to a pipeline.
func (f *pipelineFlags) toOptions(a *app) (*pipeline, error) {
	policies, err := f.policyFlags.toOptions(a)
	if err != nil {
		return nil, err
	}
	manifests, err := f.manifestFlags.toOptions(a)
	if err != nil {
		return nil, err
	}
	if f.live && manifests.given() {
		return nil, errors.New("give --live or manifests (-f, -k), not both")
	}
	surface, err := f.surfaceFlag.toOptions()
	if err != nil {
		return nil, err
	}
	return &pipeline{
		app:         a,
		policies:    policies,
		surface:     surface,
		manifests:   manifests,
		cluster:     f.clusterFlags.name,
		live:        f.live,
		withCluster: f.withCluster || f.live,
		config:      f.config,
	}, nil
}

// pipeline goes from what the user named to plans: load, read, ask, compile.
type pipeline struct {
	app       *app
	policies  policyOptions
	manifests manifestOptions
	// cluster is a name of the clusters block, allClusters, or empty.
	cluster string
	// surface stands over the clusters' own; empty for theirs.
	surface policy.Surface
	// observe and everywhere are how far admission policies are rolled out.
	observe, everywhere bool
	// installing says that the profiles which the plans need are about to be served.
	installing bool
	// setName is the set that objects are named after; empty for the usual one.
	setName string
	// live reads the workloads from the cluster, withCluster its facts.
	live, withCluster bool
	// snapshot stands in the place of the cluster; nil for the cluster itself.
	snapshot *snapshot.Snapshot
	// explained is the namespace of the one live workload that is asked for; empty
	// for all workloads.
	explained string
	// config reaches the cluster; nil for verbs that never do.
	config *genericclioptions.ConfigFlags

	// judge looks at each compilation and what came of it; may be nil.
	judge func(lint.Input) diag.Findings

	// incomplete says that policies or workloads have errors and are missing.
	incomplete bool
	// complete says that everything was looked at, for all clusters of the policies.
	complete bool

	// set is what readWorkloads read, for those who write manifests back.
	set *workload.Set
	// clients are the connections made so far, by kubeconfig context.
	clients map[string]*cluster.Client
	// workloads are all that plans were compiled from, by cluster.
	workloads []*workload.Workload
	// placement is what loadPlacement loaded.
	placement *policy.Placement
}

// clusterPlan is the outcome for one cluster, or for several that come out the
// same.
type clusterPlan struct {
	// Clusters are the names in the clusters block, sorted; empty if the
	// document speaks of none.
	Clusters []string
	Plan     *compiler.Plan
	// Surface is how the plan reaches the workloads.
	Surface policy.Surface
	// Workloads are what the plan was compiled from.
	Workloads []*workload.Workload
}

// Name returns the names of the clusters as a heading, empty for none.
func (c clusterPlan) Name() string { return strings.Join(c.Clusters, ", ") }

// loadPlacement evaluates the policies. If they have errors, the placement is
// what can be judged all the same, and may be nil; see load.Evaluate.
func (p *pipeline) loadPlacement(ctx context.Context) (*policy.Placement, diag.Findings) {
	placement, findings := p.app.load(ctx, p.policies)
	p.placement = placement
	return placement, findings
}

// kindTable returns the table of kinds, those of the placement included.
func kindTable(placement *policy.Placement) (*workload.Kinds, diag.Findings) {
	specs := make([]workload.KindSpec, 0, len(placement.Kinds))
	for _, k := range placement.Kinds {
		spec := workload.KindSpec{
			Name:      k.Name,
			Templates: make(map[string]workload.TemplateSpec, len(k.Templates)),
			PodLabels: k.PodLabels,
			Range:     k.Positions.At(),
		}
		for name, t := range k.Templates {
			fields := make(map[workload.Field]string, len(t.Fields))
			for field, path := range t.Fields {
				fields[workload.Field(field)] = path
			}
			spec.Templates[name] = workload.TemplateSpec{Path: t.Path, Fields: fields, Labels: t.Labels, Annotations: t.Annotations}
		}
		specs = append(specs, spec)
	}
	return workload.NewKinds(specs)
}

// readWorkloads reads the manifests. Without any it returns an empty set.
func (p *pipeline) readWorkloads(ctx context.Context, placement *policy.Placement) (*workload.Set, diag.Findings) {
	kinds, findings := kindTable(placement)
	if findings.HasErrors() || !p.manifests.given() {
		return &workload.Set{}, findings
	}
	set, fs := workload.Read(ctx, p.manifests.input, workload.Options{
		Namespace:   p.namespace(),
		Kinds:       kinds,
		MaxFileSize: p.manifests.maxFileSize,
	})
	p.set = set
	p.app.texts.add(set)
	p.app.objects = append(p.app.objects, ignorable(set.Workloads, set.Others)...)
	return set, append(findings, fs...)
}
