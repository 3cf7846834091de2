package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-sched/kubectl-sched/compiler/emit"
	"github.com/kubectl-sched/kubectl-sched/compiler/profile"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster"
	"github.com/kubectl-sched/kubectl-sched/internal/install"
	"github.com/kubectl-sched/kubectl-sched/internal/report"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/deploy"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/imagename"
)

func newSchedulerCommand(a *app) *cobra.Command {
	return newGroupCommand(&cobra.Command{
		Use:     "scheduler",
		Short:   "Install the bundled scheduler, look at it, upgrade it, take it out",
		GroupID: groupApply,
		Long: "The bundled scheduler is a whole kube-scheduler with the plugins of kubectl sched, for\n" +
			"what built-in fields cannot say: gangs, caches, GPU memory, gates. It runs beside the\n" +
			"default scheduler, with profiles of its own. A profile is served before any workload\n" +
			"points to it, and none goes that a workload or a waiting pod still names.",
		Example: "  kubectl sched scheduler install -p placement\n" +
			"  kubectl sched scheduler status",
	}, newSchedulerInstallCommand(a), newSchedulerStatusCommand(a), newSchedulerUpgradeCommand(a), newSchedulerUninstallCommand(a))
}

// installFlags are the flags of install and upgrade.
type installFlags struct {
	policyFlags
	manifestFlags
	cluster string
	config  *genericclioptions.ConfigFlags
	file    string
	image   string
	overlay string
	dryRun  string
	output  string
	// replicas is 0 for the usual number.
	replicas  int
	allowSkew bool
	force     bool
	timeout   time.Duration
}

func (f *installFlags) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.policyFlags.addTo(flags)
	f.manifestFlags.addTo(flags)
	f.config.AddFlags(flags)
	flags.StringVar(&f.cluster, "cluster", "", "Cluster of the policies' clusters block to install for")
	flags.Lookup("namespace").Usage = "Namespace that the scheduler runs in (default " + deploy.DefaultNamespace + ")"
	flags.StringVar(&f.file, "config", "", "File with a KubeSchedulerConfiguration, in place of policies")
	flags.StringVar(&f.image, "image", "", "Image of the scheduler (default that of the plugin's own release; for upgrade, the one that runs)")
	flags.IntVar(&f.replicas, "replicas", deploy.DefaultReplicas, "How many replicas; one of them schedules")
	flags.StringVar(&f.overlay, "overlay", "", "Folder with a kustomize Component that changes what is installed")
	flags.StringVar(&f.dryRun, "dry-run", dryRunNone, "\"client\" writes the objects out (-o yaml, for GitOps), \"server\" has the cluster check them; nothing is installed")
	flags.Lookup("dry-run").NoOptDefVal = dryRunClient
	flags.StringVarP(&f.output, "output", "o", "", "Format of the objects on --dry-run=client: yaml or json")
	flags.BoolVar(&f.allowSkew, "allow-skew", false, "Try it on an API server of a version that the scheduler does not support")
	flags.BoolVar(&f.force, "force-conflicts", false, "Take over fields that somebody else owns")
	flags.DurationVar(&f.timeout, "timeout", 5*time.Minute, "How long the replicas may take to run it")
	completeDryRun(cmd)
	completeValues(cmd, "output", []string{"yaml", "json"})
}

func newSchedulerInstallCommand(a *app) *cobra.Command {
	f := &installFlags{config: a.newConfigFlags()}
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install the bundled scheduler",
		Long: "Install the bundled scheduler: account and roles, the configuration, replicas of which one\n" +
			"leads, a disruption budget, a service for metrics, and the admission policies that keep\n" +
			"its account and approvals of gates to what they are for. It has the profiles that the\n" +
			"policies need for the workloads of the cluster, or of manifests that are given; or a\n" +
			"configuration of your own. A released plugin installs the image of its own version. It\n" +
			"returns when all replicas run. A mistake is refused before anything is written.",
		Example: "  kubectl sched scheduler install -p placement\n" +
			"  kubectl sched scheduler install -p placement --image registry.example.com/mirror/placement-scheduler:v1.0.0\n" +
			"  kubectl sched scheduler install --config scheduler.yaml --dry-run=client -o yaml > scheduler/all.yaml",
		Args: cobra.NoArgs,
		RunE: runE(func([]string) (*installOptions, error) { return f.toOptions(a, false) }),
	}
	f.addTo(cmd)
	return cmd
}

func newSchedulerUpgradeCommand(a *app) *cobra.Command {
	f := &installFlags{config: a.newConfigFlags()}
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Give the bundled scheduler another configuration or image",
		Long: "Replace configuration, image and everything else of the bundled scheduler. Replicas are\n" +
			"replaced one by one: where a new one does not come up, the old ones go on with what they\n" +
			"had. A profile that a workload, an admission policy or a waiting pod names cannot go.\n" +
			"Without --image the one that runs is kept.",
		Example: "  kubectl sched scheduler upgrade -p placement",
		Args:    cobra.NoArgs,
		RunE:    runE(func([]string) (*installOptions, error) { return f.toOptions(a, true) }),
	}
	f.addTo(cmd)
	return cmd
}

type installOptions struct {
	app    *app
	config *genericclioptions.ConfigFlags
	// file has the configuration; empty for what policies need.
	file      string
	pipeline  *pipeline
	render    deploy.Options
	upgrade   bool
	dryRun    string
	format    report.Format
	allowSkew bool
	force     bool
	timeout   time.Duration
}

func (f *installFlags) toOptions(a *app, upgrade bool) (*installOptions, error) {
	if f.file != "" && len(f.paths) > 0 {
		return nil, errors.New("give policies (-p) or a configuration (--config), not both")
	}
	p, err := f.toPipeline(a)
	if err != nil {
		return nil, err
	}
	o := &installOptions{
		app: a, config: f.config, file: f.file, pipeline: p, upgrade: upgrade, dryRun: f.dryRun, format: report.YAML,
		allowSkew: f.allowSkew, force: f.force, timeout: f.timeout,
		render: deploy.Options{Image: f.image, Replicas: f.replicas, Overlay: f.overlay},
	}
	if image, released := imagename.Released(a.ownVersion()); released && !upgrade && o.render.Image == "" {
		o.render.Image = image
	}
	if f.config.Namespace != nil {
		o.render.Namespace = *f.config.Namespace
	}
	if f.output != "" {
		if f.dryRun != dryRunClient {
			return nil, errors.New("-o is for --dry-run=client, which writes the objects out")
		}
		if o.format, err = report.ParseFormat(f.output, report.YAML, report.JSON); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// Validate implements options.
func (o *installOptions) Validate() error {
	switch {
	case o.dryRun != dryRunNone && o.dryRun != dryRunClient && o.dryRun != dryRunServer:
		return fmt.Errorf("--dry-run must be \"none\", \"client\" or \"server\", not %q", o.dryRun)
	case o.render.Image == "" && !o.upgrade:
		return errors.New("give the scheduler's image with --image: this plugin is no release, which would have an image of its own")
	case o.render.Image == "" && o.dryRun == dryRunClient:
		return errors.New("give the scheduler's image with --image: a client dry run does not ask the cluster which one runs")
	case o.render.Replicas < 1:
		return errors.New("--replicas must be at least 1")
	case o.timeout <= 0:
		return errors.New("--timeout must be above 0")
	}
	return nil
}

// Run implements options.
func (o *installOptions) Run(ctx context.Context) error {
	if err := o.configure(ctx); err != nil {
		return err
	}
	if o.dryRun == dryRunClient {
		objects, err := deploy.Render(o.render)
		if err != nil {
			return err
		}
		return report.Objects(o.app.Out, o.format, objects)
	}
	client, err := connectTo(o.config)
	if err != nil {
		return err
	}
	running, err := install.Find(ctx, client)
	if err != nil {
		return err
	}
	if err := o.place(ctx, running); err != nil {
		return err
	}
	if err := o.check(ctx, client, running); err != nil {
		return err
	}
	objects, err := deploy.Render(o.render)
	if err != nil {
		return err
	}
	return o.write(ctx, client, objects)
}

// configure makes or reads the configuration, and checks it.
func (o *installOptions) configure(ctx context.Context) error {
	name, data, err := o.configuration(ctx)
	if err != nil {
		return err
	}
	deployed, profiles, wrong := deploy.Configured(data, o.render.Namespace)
	if wrong == nil {
		data = deployed // with the lease, which a user need not name
	}
	if err := o.app.failOn(profile.Check(name, data)); err != nil {
		return err
	}
	if wrong != nil {
		return fmt.Errorf("%s: %w", name, wrong)
	}
	o.render.Config, o.render.Profiles = deployed, profiles
	return nil
}

// configuration returns the configuration and what it is called in messages.
func (o *installOptions) configuration(ctx context.Context) (string, []byte, error) {
	if o.file != "" {
		data, err := readConfiguration(o.file)
		o.app.texts[o.file] = data
		return o.file, data, err
	}
	plans, findings, err := o.pipeline.compilePlans(ctx)
	if err != nil {
		return "", nil, err
	}
	if err := o.app.failOn(findings); err != nil {
		return "", nil, err
	}
	if len(plans) != 1 {
		return "", nil, usageError{errors.New("the policies are for several clusters, which come out differently; name one with --cluster")}
	}
	files, err := emit.Profiles(plans[0].Plan)
	if err != nil {
		return "", nil, err
	}
	if len(files) == 0 {
		return "", nil, errors.New("no policy needs the bundled scheduler: built-in fields say it all; give a configuration with --config to install it all the same")
	}
	return files[0].Name, files[0].After, nil
}

// toPipeline returns what compiles the policies: for the manifests that are given,
// else for the workloads of the cluster, in all namespaces.
func (f *installFlags) toPipeline(a *app) (*pipeline, error) {
	policies, err := f.policyFlags.toOptions(a)
	if err != nil {
		return nil, err
	}
	manifests, err := f.manifestFlags.toOptions(a)
	if err != nil {
		return nil, err
	}
	// --namespace is the scheduler's.
	config := withContext(f.config, *f.config.Context)
	config.Namespace = nil
	live := !manifests.given()
	return &pipeline{app: a, policies: policies, manifests: manifests, cluster: f.cluster, live: live, withCluster: live, config: config, installing: true}, nil
}

// place says where it goes, which must fit what runs.
func (o *installOptions) place(ctx context.Context, running *install.Scheduler) error {
	switch {
	case running == nil && o.upgrade:
		return errors.New("there is no bundled scheduler in this cluster; install it first (kubectl sched scheduler install)")
	case running == nil:
		return nil
	case !o.upgrade:
		return fmt.Errorf("the bundled scheduler is installed already, in namespace %q; change it with \"kubectl sched scheduler upgrade\"", running.Deployment.Namespace)
	}
	if o.render.Namespace != "" && o.render.Namespace != running.Deployment.Namespace {
		return fmt.Errorf("the bundled scheduler runs in namespace %q, not %q; take it out there first", running.Deployment.Namespace, o.render.Namespace)
	}
	if o.render.Namespace == "" && running.Deployment.Namespace != deploy.DefaultNamespace {
		o.render.Namespace = running.Deployment.Namespace
		if err := o.configure(ctx); err != nil {
			return err
		}
	}
	if o.render.Image == "" {
		o.render.Image = running.Image()
	}
	return nil
}

// check prints what speaks against it, and returns an error if that must be mended
// first.
func (o *installOptions) check(ctx context.Context, client *cluster.Client, running *install.Scheduler) error {
	findings, err := install.Skew(ctx, client, o.allowSkew)
	if err != nil {
		return err
	}
	if running != nil {
		fs, err := install.Removed(ctx, client, running, o.render.Profiles)
		if err != nil {
			return err
		}
		findings = append(findings, fs...)
	}
	fs, err := install.Guarded(ctx, client, cmp.Or(o.render.Namespace, deploy.DefaultNamespace))
	if err != nil {
		return err
	}
	findings = append(append(findings, fs...), install.Beside(o.render.Profiles)...)
	return o.app.failOn(findings.Sort())
}

// write writes the objects, waits for the replicas and removes what is left over.
func (o *installOptions) write(ctx context.Context, client *cluster.Client, objects []*unstructured.Unstructured) error {
	writer := &install.Writer{Client: client, DryRun: o.dryRun == dryRunServer, Force: o.force, Hear: o.hear}
	if err := writer.Write(ctx, objects); err != nil {
		return interrupted(ctx, err)
	}
	if writer.DryRun {
		return nil
	}
	o.app.say(o.app.ErrOut, "waiting for the replicas to run it (up to %s)", o.timeout)
	scheduler, err := writer.Wait(ctx, o.timeout)
	if err != nil {
		return interrupted(ctx, err)
	}
	if err := writer.Prune(ctx, objects); err != nil {
		return interrupted(ctx, err)
	}
	o.app.say(o.app.Out, "the scheduler runs in namespace %s and serves %s", scheduler.Deployment.Namespace, profileList(scheduler.Profiles))
	return nil
}

func (o *installOptions) hear(w install.Written) { o.app.sayWritten(w, o.dryRun == dryRunServer) }

// sayWritten says what became of an object.
func (a *app) sayWritten(w install.Written, dryRun bool) {
	suffix := ""
	if dryRun {
		suffix = " (server dry run)"
	}
	a.say(a.Out, "%s %s%s", w.Object, w.Action, suffix)
}

func profileList(names []string) string {
	switch len(names) {
	case 0:
		return "no profile"
	case 1:
		return "profile " + names[0]
	default:
		return fmt.Sprintf("%d profiles: %s", len(names), strings.Join(names, ", "))
	}
}
