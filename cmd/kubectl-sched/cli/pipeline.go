package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster"
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
	// setName is the set that objects are named after; empty for the usual one.
	setName string
	// live reads the workloads from the cluster, withCluster its facts.
	live, withCluster bool
	// config reaches the cluster; nil for verbs that never do.
	config *genericclioptions.ConfigFlags

	// judge looks at each compilation and what came of it; may be nil.
	judge func(compiler.Request, *compiler.Plan) diag.Findings

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

// loadPlacement evaluates the policies. The placement is nil if they have
// errors.
func (p *pipeline) loadPlacement(ctx context.Context) (*policy.Placement, diag.Findings) {
	placement, findings := p.app.load(ctx, p.policies)
	if findings.HasErrors() {
		return nil, findings
	}
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
			spec.Templates[name] = workload.TemplateSpec{Path: t.Path, Fields: fields, Labels: t.Labels}
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
	return set, append(findings, fs...)
}

// namespace is that of manifests that name none. As with kubectl it is
// --namespace, else that of the context, but only where a cluster is asked
// anyway: what compiles from files alone must not depend on whose machine it is.
func (p *pipeline) namespace() string {
	if p.config == nil {
		return ""
	}
	if p.config.Namespace != nil && *p.config.Namespace != "" {
		return *p.config.Namespace
	}
	if !p.withCluster {
		return ""
	}
	namespace, _, err := p.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return ""
	}
	return namespace
}

// targets returns the clusters to compile for: none for a document without a
// clusters block (which is one compilation all the same).
func (p *pipeline) targets(placement *policy.Placement) ([]policy.Cluster, error) {
	names := make([]string, len(placement.Clusters))
	for i, c := range placement.Clusters {
		names[i] = c.Name
	}
	switch {
	case p.cluster == "" || p.cluster == allClusters:
		return placement.Clusters, nil
	case len(names) == 0:
		return nil, usageError{fmt.Errorf("--cluster %q: the policies have no clusters block", p.cluster)}
	}
	c := placement.Cluster(p.cluster)
	if c == nil {
		return nil, usageError{fmt.Errorf("--cluster %q: there is no such cluster; %s", p.cluster, didYouMean(p.cluster, append(names, allClusters)))}
	}
	return []policy.Cluster{*c}, nil
}

// liveWorkloads reads the workloads from the cluster, nil for the current one:
// those in --namespace, else all.
func (p *pipeline) liveWorkloads(ctx context.Context, placement *policy.Placement, c *policy.Cluster) ([]*workload.Workload, diag.Findings) {
	kinds, findings := kindTable(placement)
	if findings.HasErrors() {
		return nil, findings
	}
	client, err := p.connect(c)
	if err != nil {
		return nil, unreachable(err)
	}
	scope := cluster.Scope{Kinds: kinds}
	if p.config.Namespace != nil && *p.config.Namespace != "" {
		scope.Namespaces = []string{*p.config.Namespace}
	}
	return client.Workloads(ctx, scope)
}

func unreachable(err error) diag.Findings {
	return diag.Findings{{Rule: "input/cluster", Severity: diag.Error, Message: err.Error()}}
}

// capabilities returns what is known of a cluster: what the document and the
// manifests say and, with withCluster, what the cluster itself does. The cluster
// may be nil.
func (p *pipeline) capabilities(ctx context.Context, c *policy.Cluster) (capability.Capabilities, diag.Findings) {
	var caps capability.Capabilities
	var findings diag.Findings
	if p.withCluster {
		client, err := p.connect(c)
		if err != nil {
			return caps, unreachable(err)
		}
		caps, findings = client.Capabilities(ctx)
	}
	if p.set != nil {
		var fs diag.Findings
		caps, fs = addManifestFacts(caps, p.set.Others)
		findings = append(findings, fs...)
	}
	if c != nil {
		caps.Cluster = c.Name
		if caps.Minor == 0 {
			caps.Minor = minorOf(c.Version)
		}
	}
	return caps, findings
}

// minorOf returns the 37 of "1.37", 0 for an empty version (the schema allows
// no others).
func minorOf(version string) int {
	_, minor, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(minor)
	if err != nil {
		return 0
	}
	return n
}

// connect returns the client for the cluster: the kubeconfig context that the
// user chose with --context, else the one of the clusters block, else the
// current one.
func (p *pipeline) connect(c *policy.Cluster) (*cluster.Client, error) {
	config, name := p.config, ""
	if c != nil && c.Context != "" && (config.Context == nil || *config.Context == "") {
		name = c.Context
		config = withContext(config, name)
	}
	if client := p.clients[name]; client != nil {
		return client, nil
	}
	rest, err := config.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := cluster.Connect(rest)
	if err != nil {
		return nil, err
	}
	if p.clients == nil {
		p.clients = map[string]*cluster.Client{}
	}
	p.clients[name] = client
	return client, nil
}

// withContext returns a copy of the flags for another context.
func withContext(config *genericclioptions.ConfigFlags, context string) *genericclioptions.ConfigFlags {
	other := genericclioptions.NewConfigFlags(true)
	other.CacheDir, other.KubeConfig, other.Namespace = config.CacheDir, config.KubeConfig, config.Namespace
	other.ClusterName, other.AuthInfoName, other.APIServer = config.ClusterName, config.AuthInfoName, config.APIServer
	other.TLSServerName, other.Insecure = config.TLSServerName, config.Insecure
	other.CertFile, other.KeyFile, other.CAFile, other.BearerToken = config.CertFile, config.KeyFile, config.CAFile, config.BearerToken
	other.Impersonate, other.ImpersonateUID = config.Impersonate, config.ImpersonateUID
	other.ImpersonateGroup, other.ImpersonateUserExtra = config.ImpersonateGroup, config.ImpersonateUserExtra
	other.Username, other.Password, other.Timeout = config.Username, config.Password, config.Timeout
	other.DisableCompression, other.ProxyURL = config.DisableCompression, config.ProxyURL
	other.WrapConfigFn = config.WrapConfigFn
	other.Context = &context
	return other
}

// compilePlans loads, reads and compiles for every targeted cluster. Clusters
// that come out the same share one entry. With an Error among the findings the
// plans are incomplete and nothing may be written.
//
// A policy that matches no workload in any of the clusters is a Warning.
func (p *pipeline) compilePlans(ctx context.Context) ([]clusterPlan, diag.Findings, error) {
	placement, findings := p.loadPlacement(ctx)
	if placement == nil {
		return nil, findings, nil
	}
	targets, err := p.targets(placement)
	if err != nil {
		return nil, nil, err
	}
	set, fs := p.readWorkloads(ctx, placement)
	findings = append(findings, fs...)
	if fs.HasErrors() {
		return nil, findings.Sort(), nil
	}
	p.workloads = set.Workloads
	var plans []clusterPlan
	for _, target := range orNone(targets) {
		workloads := set.Workloads
		if p.live {
			workloads, fs = p.liveWorkloads(ctx, placement, target)
			findings = append(findings, fs...)
			if fs.HasErrors() {
				continue
			}
			p.workloads = append(p.workloads, workloads...)
		}
		plan, fs := p.compileFor(ctx, placement, target, workloads)
		findings = append(findings, fs...)
		if plan != nil {
			plans = append(plans, clusterPlan{Clusters: nameOf(target), Plan: plan, Surface: p.surfaceOf(target, policy.SurfaceRender), Workloads: workloads})
		}
	}
	if p.live || p.manifests.given() {
		findings = append(findings, unmatched(placement, plans)...)
	}
	return collapse(plans), findings.Sort(), ctx.Err()
}

// compileFor compiles the workloads for one cluster, nil for the only, nameless
// one. The plan is nil if the cluster's facts cannot be read.
func (p *pipeline) compileFor(ctx context.Context, placement *policy.Placement, target *policy.Cluster, workloads []*workload.Workload) (*compiler.Plan, diag.Findings) {
	caps, findings := p.capabilities(ctx, target)
	if findings.HasErrors() {
		return nil, findings
	}
	request := compiler.Request{
		Placement:    placement,
		Workloads:    workloads,
		Capabilities: caps,
		Surface:      p.surfaceOf(target, policy.SurfaceRender),
		Set:          p.setName,
		Now:          p.app.now(),
	}
	plan, fs := compiler.Compile(request)
	if p.judge != nil {
		fs = append(fs, p.judge(request, plan)...)
	}
	return plan, append(findings, fs...)
}

// orNone returns pointers to the clusters, or one nil for no clusters.
func orNone(clusters []policy.Cluster) []*policy.Cluster {
	if len(clusters) == 0 {
		return []*policy.Cluster{nil}
	}
	pointers := make([]*policy.Cluster, len(clusters))
	for i := range clusters {
		pointers[i] = &clusters[i]
	}
	return pointers
}

func nameOf(c *policy.Cluster) []string {
	if c == nil {
		return nil
	}
	return []string{c.Name}
}

// unmatched warns of the policies that match no workload in any cluster. It says
// nothing if the plans are not for all clusters of the placement: what selects
// nothing here may be for another one.
func unmatched(placement *policy.Placement, plans []clusterPlan) diag.Findings {
	for _, c := range placement.Clusters {
		planned := func(p clusterPlan) bool { return p.Plan.Cluster == c.Name || slices.Contains(p.Clusters, c.Name) }
		if !slices.ContainsFunc(plans, planned) {
			return nil
		}
	}
	var findings diag.Findings
	for _, pol := range placement.Policies {
		holds := func(c clusterPlan) bool { return slices.Contains(c.Plan.Policies, pol.Name) }
		matched := func(c clusterPlan) bool { return holds(c) && !slices.Contains(c.Plan.Unmatched, pol.Name) }
		// One that holds nowhere is the loader's to report.
		if !slices.ContainsFunc(plans, holds) || slices.ContainsFunc(plans, matched) {
			continue
		}
		findings = append(findings, diag.Finding{
			Rule:     "policy/unmatched",
			Severity: diag.Warning,
			Policy:   pol.Name,
			Range:    pol.Positions.At("workloads"),
			Message:  "selects no workload; mend the selector, or remove the policy if it is no longer needed",
		})
	}
	return findings
}
