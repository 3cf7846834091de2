package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-sched/kubectl-sched/compiler/emit"
	"github.com/kubectl-sched/kubectl-sched/internal/apply"
	"github.com/kubectl-sched/kubectl-sched/internal/report"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// The formats of compile.
const (
	formatManifests = "manifests"
	formatComponent = "component"
	formatObjects   = "objects"
	formatNodes     = "nodes"
	formatProfiles  = "profiles"
	formatEffects   = "effects"
	formatJSON      = "json"
	formatYAML      = "yaml"
)

var compileFormats = []string{formatManifests, formatComponent, formatObjects, formatNodes, formatProfiles, formatEffects, formatJSON, formatYAML}

type compileFlags struct {
	pipelineFlags
	output      string
	set         string
	inPlace     bool
	outputDir   string
	objectsFile string
	check       bool
	diff        bool
}

func newCompileCommand(a *app) *cobra.Command {
	f := &compileFlags{pipelineFlags: newPipelineFlags(a)}
	cmd := &cobra.Command{
		Use:     "compile [-p POLICIES] (-f MANIFESTS | -k FOLDER | --live) [-o FORMAT]",
		Short:   "Write the placement into manifests",
		GroupID: groupApply,
		Long: "Compile the policies and write what they come to.\n\n" +
			"Formats (-o):\n" +
			"  manifests  the manifests that were read, whole, with the placement in them; every byte\n" +
			"             that no policy changes stays (the default)\n" +
			"  component  a kustomize Component that patches the placement in\n" +
			"  nodes      what those who make nodes have to be told: patches of Karpenter's NodePools,\n" +
			"             values for node groups, configuration of kubelets; it needs no manifests\n" +
			"  objects    only the objects that policies make: priority classes, and for surface\n" +
			"             admission (where this is the default) the API server's admission policies\n" +
			"  profiles   the configuration of the bundled scheduler (KubeSchedulerConfiguration) with the\n" +
			"             profiles that the policies need; it is no object of the cluster, so no manifest\n" +
			"  effects    what changes in which workload, by which line of which policy\n" +
			"  json|yaml  the plan, with the origin of and the reason for every effect\n\n" +
			"Each changed object says in an annotation what is ours in it: compiling again changes\n" +
			"nothing, and a policy that is removed takes its fields with it. With an error among the\n" +
			"findings nothing is written. --check and --diff exit with 1 where something would change.\n\n" +
			"For surface admission no placement goes into manifests: they are read only so that policies\n" +
			"which count pods know the selectors of the workloads.",
		Example: "  # Write the placement into the manifests in git\n" +
			"  kubectl sched compile -f manifests/ -R --in-place\n\n" +
			"  # In CI: fail if somebody forgot to\n" +
			"  kubectl sched compile -f manifests/ -R --in-place --check --diff\n\n" +
			"  # Between helm and the cluster (also as a Helm post-renderer)\n" +
			"  helm template shop ./chart -n shop | kubectl sched compile -f - -n shop\n\n" +
			"  # The admission policies that place whatever is created in the cluster\n" +
			"  kubectl sched compile --surface admission -f manifests/\n\n" +
			"  # What the NodePools and node groups have to say, given those that there are\n" +
			"  kubectl sched compile --with-cluster -o nodes\n\n" +
			"  # The configuration of the scheduler that the policies need\n" +
			"  kubectl sched compile -f manifests/ -o profiles > scheduler-config.yaml\n\n" +
			"  # One folder for each cluster of the policies\n" +
			"  kubectl sched compile -f manifests/ --cluster all --output-dir rendered/",
		Args: cobra.NoArgs,
		RunE: runE(func([]string) (*compileOptions, error) { return f.toOptions(a) }),
	}
	f.addTo(cmd.Flags())
	flags := cmd.Flags()
	flags.StringVarP(&f.output, "output", "o", "", "Format: "+strings.Join(compileFormats, ", "))
	flags.StringVar(&f.set, "set", "", "For surface admission: name of the set that the objects are for")
	flags.BoolVarP(&f.inPlace, "in-place", "i", false, "Write the manifests back to the files that they were read from")
	flags.StringVar(&f.outputDir, "output-dir", "", "Write the manifests, the Component, the files for nodes or the scheduler's configuration below this folder; with --cluster all below one folder for each cluster")
	flags.StringVar(&f.objectsFile, "objects-file", emit.ObjectsFile, "File for the objects that policies make (PriorityClasses, admission policies): below the output folder, or in place beside the manifests")
	flags.BoolVar(&f.check, "check", false, "Write nothing; name the files that would change, and exit with 1 if there are any")
	flags.BoolVar(&f.diff, "diff", false, "Write nothing; show what would change as a unified diff, and exit with 1 if anything would")
	completeValues(cmd, "output", compileFormats)
	return cmd
}

type compileOptions struct {
	app         *app
	pipeline    *pipeline
	disk        emit.FileSystem
	format      string
	inPlace     bool
	outputDir   string
	objectsFile string
	check, diff bool
}

func (f *compileFlags) toOptions(a *app) (*compileOptions, error) {
	p, err := f.pipelineFlags.toOptions(a)
	if err != nil {
		return nil, err
	}
	if f.set != "" {
		if err := (apply.Set{Name: f.set, Namespace: apply.DefaultNamespace}).Validate(); err != nil {
			return nil, err
		}
	}
	p.setName = f.set
	p.installing = f.output == formatProfiles
	o := &compileOptions{
		app: a, pipeline: p, disk: emit.OS{}, format: f.output, inPlace: f.inPlace, outputDir: f.outputDir,
		objectsFile: f.objectsFile, check: f.check, diff: f.diff,
	}
	if (o.check || o.diff) && o.outputDir == "" {
		o.inPlace = true
	}
	return o, nil
}

// Validate implements options.
func (o *compileOptions) Validate() error {
	input := o.pipeline.manifests.input
	switch {
	case !o.pipeline.manifests.given() && !o.pipeline.live && !o.alone():
		return errors.New("nothing to compile for; give manifests with -f or -k, or --live")
	case o.format != "" && !isFormat(o.format):
		return fmt.Errorf("unknown format %q for -o; %s", o.format, didYouMean(o.format, compileFormats))
	case o.inPlace && o.outputDir != "":
		return errors.New("give --in-place or --output-dir, not both")
	case o.outputDir != "" && !o.writesFiles():
		return fmt.Errorf("--output-dir is for manifests, components, nodes and profiles; -o %s goes to standard output", o.format)
	case o.inPlace && !o.pipeline.manifests.given():
		return errors.New("--in-place, --check and --diff need manifests (-f)")
	case o.inPlace && o.format != "" && o.format != formatManifests:
		return fmt.Errorf("--in-place, --check and --diff are for manifests; for -o %s give --output-dir", o.format)
	case o.inPlace && o.pipeline.live:
		return errors.New("--in-place needs manifests in files; what is in the cluster changes with \"kubectl sched apply\"")
	case o.inPlace && input.Kustomize != "":
		return errors.New("--in-place cannot write back what a kustomization builds; give -f for its files, or -o component")
	case o.inPlace && readsStdin(input.Files):
		return errors.New("--in-place cannot write back to standard input; leave it out and the manifests go to standard output")
	case o.pipeline.live && o.format == formatComponent:
		return errors.New("-o component needs manifests (-f, -k): a Component patches what a kustomization builds")
	}
	return nil
}

// alone reports whether compiling without any workload has a result: objects,
// and what is asked of nodes.
func (o *compileOptions) alone() bool {
	return o.format == formatObjects || o.format == formatNodes ||
		(o.format == "" || o.format == formatProfiles) && o.pipeline.surface == policy.SurfaceAdmission
}

// formatFor is the format for one plan. Under admission nothing goes into
// manifests, so objects are all there is to see; but a filter passes on what it
// was given, and files are written whole.
func (o *compileOptions) formatFor(p clusterPlan) string {
	switch {
	case o.format != "":
		return o.format
	case p.Surface == policy.SurfaceAdmission && !o.inPlace && o.outputDir == "" && !readsStdin(o.pipeline.manifests.input.Files):
		return formatObjects
	}
	return formatManifests
}

// writesFiles reports whether the format comes to files, and not to a document
// about the plan.
func (o *compileOptions) writesFiles() bool {
	return o.format == "" || o.format == formatManifests || o.format == formatComponent || o.format == formatNodes || o.format == formatProfiles
}

func isFormat(name string) bool {
	for _, f := range compileFormats {
		if f == name {
			return true
		}
	}
	return false
}

func readsStdin(files []string) bool {
	for _, f := range files {
		if f == "-" {
			return true
		}
	}
	return false
}

// Run implements options.
func (o *compileOptions) Run(ctx context.Context) error {
	plans, findings, err := o.pipeline.compilePlans(ctx)
	if err != nil {
		return err
	}
	if findings.HasErrors() {
		return o.app.failOn(findings)
	}
	switch o.format {
	case formatEffects, formatJSON, formatYAML:
		if err := o.app.failOn(findings); err != nil {
			return err
		}
		return o.writePlans(plans)
	}
	outcomes, fs := o.outcomes(ctx, plans)
	if err := o.app.failOn(append(findings, fs...).Sort()); err != nil {
		return err
	}
	return o.write(ctx, outcomes)
}

// writePlans prints the plans themselves: their effects for people, or the whole
// document for tools.
func (o *compileOptions) writePlans(plans []clusterPlan) error {
	format := report.Format(o.format)
	if o.format == formatEffects {
		format = report.Text
	}
	list := make([]report.Plan, len(plans))
	for i, p := range plans {
		list[i] = report.Plan{Clusters: p.Clusters, Plan: p.Plan}
	}
	return report.Plans(o.app.Out, format, list, o.app.reportOptions(o.app.Out))
}
