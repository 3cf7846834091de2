package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/kubectl-sched/kubectl-sched/internal/adopt"
	"github.com/kubectl-sched/kubectl-sched/internal/report"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

// importedFile is the policy file that import writes.
const importedFile = "imported.cue"

type importFlags struct {
	manifestFlags
	clusterFlags
	snapshot      snapshotSource
	allNamespaces bool
	output        string
	modernize     bool
	force         bool
}

func newImportCommand(a *app) *cobra.Command {
	f := &importFlags{clusterFlags: newClusterFlags(a)}
	cmd := &cobra.Command{
		Use:     "import [-f MANIFESTS | --snapshot FILE] [-o FOLDER]",
		Short:   "Make policies of the placement that manifests or a cluster have already",
		GroupID: groupWrite,
		Long: "Read manifests (-f, -k), a snapshot, or else the workloads of the cluster, and propose\n" +
			"policies for the placement in them: nodeSelector, affinity, spread constraints, tolerations,\n" +
			"priority classes. What several workloads share becomes one policy, with the smallest selector\n" +
			"that selects them and no workload without it. The compiler proves the outcome: the policies\n" +
			"change no workload, and bring its fields back when they are taken out of the manifests.\n\n" +
			"What no intent says goes into raw, and what cannot be said is left where it is; the report\n" +
			"lists both with the reason. Nothing is modernised unless --modernize asks for it: nodeSelector\n" +
			"stays one, and labels that are out of use stay as they are.\n\n" +
			"Of a cluster, the objects that own the pods are read, in the namespace of the context or in all\n" +
			"with -A. What kubectl sched has placed already is left out, and so are objects that another\n" +
			"controller writes.\n\n" +
			"Without -o the report is all there is. With a folder the policies are written there, and into no\n" +
			"other place; docs/adoption.md says how to go on from there, and how to go back.",
		Example: "  # What placement is there in the manifests, and what would the policies be?\n" +
			"  kubectl sched import -f manifests/ -R\n\n" +
			"  # Write them to ./placement, and see that they change nothing\n" +
			"  kubectl sched import -f manifests/ -R -o placement\n" +
			"  kubectl sched compile -p placement -f manifests/ -R --check\n\n" +
			"  # Of a whole cluster, with its dedicated pools; the policies alone, on standard output\n" +
			"  kubectl sched import -A -o -\n\n" +
			"  # The report for a tool; a folder called json is ./json\n" +
			"  kubectl sched import --snapshot prod.snapshot -o json",
		Args: cobra.NoArgs,
		RunE: runE(func([]string) (*importOptions, error) { return f.toOptions(a) }),
	}
	flags := cmd.Flags()
	f.manifestFlags.addTo(flags)
	f.snapshot.addTo(flags)
	f.config.AddFlags(flags)
	flags.BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "Read the workloads of all namespaces of the cluster")
	flags.StringVarP(&f.output, "output", "o", "", "`FOLDER` to write the policies to, \"-\" for standard output, or \"json\" for the report as JSON")
	flags.BoolVar(&f.modernize, "modernize", false, "Say nodeSelector by nodes.require, and replace labels that are out of use; each is listed")
	flags.BoolVar(&f.force, "force", false, "Overwrite files that are in the folder already")
	return cmd
}

type importOptions struct {
	flags    *importFlags
	app      *app
	pipeline *pipeline
}

func (f *importFlags) toOptions(a *app) (*importOptions, error) {
	manifests, err := f.manifestFlags.toOptions(a)
	if err != nil {
		return nil, err
	}
	p := &pipeline{app: a, manifests: manifests, config: f.config}
	p.live = !manifests.given()
	p.withCluster = p.live && f.snapshot.file == ""
	return &importOptions{flags: f, app: a, pipeline: p}, nil
}

// Validate implements options.
func (o *importOptions) Validate() error {
	f, given := o.flags, o.pipeline.manifests.given()
	switch {
	case given && f.snapshot.file != "":
		return errors.New("give manifests (-f, -k) or --snapshot, not both")
	case f.snapshot.file == "" && f.snapshot.maxAge != 0:
		return errors.New("--max-snapshot-age needs --snapshot")
	case given && f.allNamespaces:
		return errors.New("-A is for a cluster; manifests are read whole")
	case f.allNamespaces && o.pipeline.flagNamespace() != "":
		return errors.New("give -n or -A, not both")
	case f.force && !o.writes():
		return errors.New("--force needs a folder to write to: -o FOLDER")
	}
	return nil
}

// writes reports whether files are written.
func (o *importOptions) writes() bool {
	return o.flags.output != "" && o.flags.output != "-" && o.flags.output != string(report.JSON)
}

// Run implements options.
func (o *importOptions) Run(ctx context.Context) error {
	makeRoomForCluster() // of workloads, and what they are compiled to, twice over
	request, err := o.request(ctx)
	if err != nil {
		return err
	}
	proposal, err := adopt.Propose(ctx, request)
	if err != nil {
		return err
	}
	switch o.flags.output {
	case "":
		if err := report.Adoption(o.app.Out, report.Text, proposal, o.app.reportOptions(o.app.Out)); err != nil {
			return err
		}
		if len(proposal.Policies) > 0 {
			o.app.say(o.app.Out, "\nNothing is written; -o %s writes the policies to that folder.", defaultPolicyFolder)
		}
		return nil
	case "-":
		if err := report.Adoption(o.app.ErrOut, report.Text, proposal, o.app.reportOptions(o.app.ErrOut)); err != nil {
			return err
		}
		return o.app.write(ctx, func(w io.Writer) error {
			_, err := w.Write(proposal.Document)
			return err
		})
	case string(report.JSON):
		return report.Adoption(o.app.Out, report.JSON, proposal, o.app.reportOptions(o.app.Out))
	}
	return o.write(ctx, proposal)
}

// request reads what the user named.
func (o *importOptions) request(ctx context.Context) (adopt.Request, error) {
	p := o.pipeline
	request := adopt.Request{Modernize: o.flags.modernize, Now: o.app.now(), Package: "placement"}
	if o.writes() {
		name, err := load.PackageName(o.flags.output)
		if err != nil {
			return request, err
		}
		request.Package = name
	}
	if o.flags.snapshot.file != "" {
		s, err := o.app.snapshotFrom(ctx, o.flags.snapshot, nil)
		if err != nil {
			return request, err
		}
		p.snapshot = s
	} else if p.live && !o.flags.allNamespaces {
		// As with kubectl, one namespace is read if nothing else is said.
		namespace := contextNamespace(p.config)
		p.config.Namespace = &namespace
	}
	set, findings := p.readWorkloads(ctx, &policy.Placement{})
	request.Workloads = set.Workloads
	if p.live {
		workloads, fs := p.liveWorkloads(ctx, &policy.Placement{}, nil)
		findings, request.Workloads = append(findings, fs...), workloads
	}
	if err := o.app.failOn(findings); err != nil {
		return request, err
	}
	if p.live {
		caps, findings := p.capabilities(ctx, nil)
		request.Capabilities = caps
		return request, o.app.failOn(findings)
	}
	return request, ctx.Err()
}

// write writes the policies into the folder, and loads them as every other command
// will.
func (o *importOptions) write(ctx context.Context, p *adopt.Proposal) error {
	out := o.app.Out
	if err := report.Adoption(out, report.Text, p, o.app.reportOptions(out)); err != nil {
		return err
	}
	if len(p.Policies) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	written, err := load.Init(o.flags.output, load.InitOptions{Vendor: true, Document: p.Document, File: importedFile, Replace: o.flags.force})
	sayWritten(out, written)
	if err != nil {
		var there *load.ThereError
		if errors.As(err, &there) {
			err = fmt.Errorf("%w, or overwrite with --force", err)
		}
		return err
	}
	memory, err := bytesFlag("load-memory", defaultLoadMemory)
	if err != nil {
		return err
	}
	if _, findings := o.app.load(ctx, policyOptions{paths: []string{o.flags.output}, timeout: defaultLoadTimeout, memory: memory}); len(findings) > 0 {
		return o.app.failOn(findings)
	}
	o.app.say(out, "\nNext, look for what lint says of them, and see that they change nothing:\n\n"+
		"  kubectl sched lint -p %s -f MANIFESTS\n  kubectl sched compile -p %[1]s -f MANIFESTS --diff", o.flags.output)
	return nil
}
