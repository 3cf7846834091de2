package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/apply"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// setFlags name the set that a verb works on.
type setFlags struct {
	name, namespace string
}

func (f *setFlags) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.name, "set", "", "Name of the set (required): what is applied, pruned and undone together")
	flags.StringVar(&f.namespace, "set-namespace", apply.DefaultNamespace, "Namespace that the state of the set is kept in; who may write only one namespace names that")
}

func (f *setFlags) toOptions() (apply.Set, error) {
	set := apply.Set{Name: f.name, Namespace: f.namespace}
	return set, set.Validate()
}

// connectTo returns the client for the cluster that kubectl's flags name.
func connectTo(config *genericclioptions.ConfigFlags) (*cluster.Client, error) {
	rest, err := config.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	return cluster.Connect(rest)
}

// applier returns an Applier of this program's version for a set, under the
// field manager that the user asks for or, for none, the set's own.
func (a *app) applier(client *cluster.Client, kinds *workload.Kinds, state *apply.State, manager managerFlag) (*apply.Applier, error) {
	name, err := state.ManagerFor(manager.name)
	if err != nil {
		return nil, err
	}
	return &apply.Applier{Client: client, Kinds: kinds, Tool: buildVersion(), Now: a.now, Manager: name}, nil
}

// buildVersion is the version of the module that this program was built from.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

// livePlan is what policies come to in one live cluster.
type livePlan struct {
	cluster   *policy.Cluster
	placement *policy.Placement
	step      apply.Step
	// everywhere says that the user asked for all namespaces in so many words.
	everywhere bool
	client     *cluster.Client
	kinds      *workload.Kinds
	state      *apply.State
	scope      apply.Scope
	plan       *compiler.Plan
	workloads  []*workload.Workload
	// pools maps the nodes to the names of their pools, joined.
	pools map[string]string
}

// compileLive reads the workloads of the cluster, nil for the current one, and
// compiles the policies for them. With an Error among the findings nothing may be
// written.
func (p *pipeline) compileLive(ctx context.Context, placement *policy.Placement, target *policy.Cluster, set apply.Set) (*livePlan, diag.Findings, error) {
	scope, err := p.liveScope()
	if err != nil {
		return nil, nil, err
	}
	client, err := p.connect(target)
	if err != nil {
		return nil, nil, err
	}
	kinds, findings := kindTable(placement)
	if findings.HasErrors() {
		return nil, findings, nil
	}
	caps, fs := p.capabilities(ctx, target)
	findings = append(findings, fs...)
	if fs.HasErrors() {
		return nil, findings, nil
	}
	state, err := apply.LoadState(ctx, client, set)
	if err != nil {
		return nil, findings, err
	}
	step := apply.Step{Surface: p.surfaceOf(target, policy.SurfaceLive), Observe: p.observe}
	if p.observe && !step.Admission() {
		return nil, findings, errors.New("--observe is for surface admission; give --surface admission, or see with \"kubectl sched diff\" what surface live would change")
	}
	reading := scope.Namespaces
	if step.Admission() {
		// What is compiled must not depend on how far it is rolled out.
		reading = nil
	}
	workloads, fs := client.Workloads(ctx, cluster.Scope{Namespaces: reading, Kinds: kinds, Records: state.Records()})
	findings = append(findings, fs...)
	p.app.objects = append(p.app.objects, ignorable(workloads, nil)...)
	if findings.HasErrors() {
		return nil, findings, nil
	}
	plan, fs := compiler.CompileContext(ctx, compiler.Request{
		Placement: placement, Workloads: workloads, Capabilities: caps, Surface: step.Surface, Set: set.Label(), Now: p.app.now(),
	})
	findings = append(findings, fs...)
	if !step.Admission() {
		// Admission is for what comes tomorrow as well.
		findings = append(findings, unmatched(placement, []clusterPlan{{Plan: plan, Workloads: workloads}}, p.extentOf())...)
	}
	return &livePlan{
		cluster: target, placement: placement, step: step, everywhere: p.everywhere, client: client, kinds: kinds, state: state, scope: scope, plan: plan,
		workloads: workloads, pools: poolNames(placement, caps),
	}, findings, ctx.Err()
}

// name is the cluster's name, empty where the policies speak of none.
func (l *livePlan) name() string {
	if l.cluster == nil {
		return ""
	}
	return l.cluster.Name
}

// request is what an Applier needs to prepare the run.
func (l *livePlan) request() apply.Request {
	r := apply.Request{
		State: l.state, Scope: l.scope, Plan: l.plan, Workloads: l.workloads, Step: l.step, Everywhere: l.everywhere,
	}
	if l.step.Admission() {
		r.Source = apply.Source{Placement: l.placement, Cluster: l.name()}
	}
	return r
}

// liveScope returns the scope of the run: the policy folders, and the namespaces
// of --namespace (the context's own namespace does not narrow a set).
func (p *pipeline) liveScope() (apply.Scope, error) {
	var scope apply.Scope
	for _, path := range p.policies.paths {
		folder, err := p.app.folderName(path)
		if err != nil {
			return scope, err
		}
		scope.Folders = append(scope.Folders, folder)
	}
	if p.config.Namespace != nil && *p.config.Namespace != "" {
		scope.Namespaces = strings.Split(*p.config.Namespace, ",")
	}
	slices.Sort(scope.Folders)
	slices.Sort(scope.Namespaces)
	scope.Folders, scope.Namespaces = slices.Compact(scope.Folders), slices.Compact(scope.Namespaces)
	return scope, nil
}

// folderName names a policy folder in the same way on every machine: relative to
// the repository that it is in, or else as the user named it.
func (a *app) folderName(path string) (string, error) {
	dir, err := a.getwd()
	if err != nil {
		return "", err
	}
	full := path
	if !filepath.IsAbs(full) {
		full = filepath.Join(dir, full)
	}
	root := repositoryOf(full)
	if root == "" {
		return filepath.ToSlash(filepath.Clean(path)), nil
	}
	relative, err := filepath.Rel(root, full)
	if err != nil {
		return "", fmt.Errorf("policy folder %q: %w", path, err)
	}
	return filepath.ToSlash(relative), nil
}

// repositoryOf returns the folder at or above an absolute path that is the root of a
// git repository; empty where there is none.
func repositoryOf(path string) string {
	if path == "" {
		return ""
	}
	for root := path; ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, ".git")); err == nil {
			return root
		}
		if root == filepath.Dir(root) {
			return ""
		}
	}
}

// poolNames maps nodes to the names of their pools.
func poolNames(placement *policy.Placement, caps capability.Capabilities) map[string]string {
	members := compiler.PoolMembers(placement, caps)
	names := map[string]string{}
	for _, pool := range placement.Pools {
		for _, node := range members[pool.Name] {
			if names[node] != "" {
				names[node] += ","
			}
			names[node] += pool.Name
		}
	}
	return names
}

// openSet connects to the cluster and returns the state of a set that must exist.
func openSet(ctx context.Context, config *genericclioptions.ConfigFlags, set apply.Set) (*cluster.Client, *apply.State, error) {
	client, err := connectTo(config)
	if err != nil {
		return nil, nil, err
	}
	state, err := apply.LoadState(ctx, client, set)
	if err != nil {
		return nil, nil, err
	}
	if !state.Exists() {
		return nil, nil, diag.Findings{{
			Rule: "apply/no-set", Severity: diag.Error, Message: fmt.Sprintf("there is no set %q in namespace %q", set.Name, set.Namespace),
			Fix: &diag.Fix{Message: "if its state is kept in another namespace, name that with --set-namespace"},
		}}
	}
	return client, state, nil
}

// stop prints the findings and returns the error that ends the command: err, or,
// without one, that of the findings.
func (a *app) stop(findings diag.Findings, err error) error {
	failed := a.failOn(findings.Sort())
	if err != nil {
		return err
	}
	return failed
}
