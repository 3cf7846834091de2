package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-sched/kubectl-sched/internal/lint"
	"github.com/kubectl-sched/kubectl-sched/internal/lint/settings"
	"github.com/kubectl-sched/kubectl-sched/internal/lint/suppress"
	"github.com/kubectl-sched/kubectl-sched/internal/report"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

type lintFlags struct {
	pipelineFlags
	triageFlags
	snapshot snapshotSource
	output   string
	fix      bool
}

func newLintCommand(a *app) *cobra.Command {
	f := &lintFlags{pipelineFlags: newPipelineFlags(a)}
	cmd := &cobra.Command{
		Use:     "lint [-p POLICIES] [-f MANIFESTS]",
		Short:   "Check policies, and what they come to for manifests",
		GroupID: groupWrite,
		Long: "Load the policies and compile them for the manifests, and report everything that must be\n" +
			"mended, also what the manifests say by themselves and do not mean. A KubeSchedulerConfiguration\n" +
			"among the manifests, or in a ConfigMap, is checked too, also for what a scheduler silently\n" +
			"accepts. Without manifests only the policies themselves are checked. A document that speaks\n" +
			"of several clusters is checked for all of them.\n\n" +
			"Rules say what the files alone can tell. With --snapshot, --with-cluster or --live they also\n" +
			"look at the labels, taints, pods, quotas and budgets of the cluster; docs/reference/findings.md\n" +
			"lists them all. With --snapshot and without manifests the workloads of the snapshot are checked.\n\n" +
			"Finding by finding, a comment in the line or above says that it is meant, and why:\n" +
			"// sched:ignore RULE REASON in a policy, # sched:ignore RULE REASON in a manifest; for a whole\n" +
			"object the annotation " + suppress.Annotation + ". " + settings.FileName + ", here or above\n" +
			"in the repository, sets severities and the baseline for all. An error that stops compile and\n" +
			"apply can be neither ignored nor known. docs/lint.md has more.\n\n" +
			"The exit code is 0 if there is nothing to mend, 1 for errors and warnings, and above 1 if\n" +
			"something could not be read.",
		Example: "  # Check the policies in ./placement\n" +
			"  kubectl sched lint\n\n" +
			"  # Check them against the manifests in git, for a tool to read\n" +
			"  kubectl sched lint -p placement -f manifests/ -R -o json\n\n" +
			"  # Check them against the nodes, quotas and pods of a cluster, without reaching it\n" +
			"  kubectl sched lint -p placement -f manifests/ -R --snapshot prod.snapshot\n\n" +
			"  # Check them against what runs in the cluster\n" +
			"  kubectl sched lint --live\n\n" +
			"  # In CI: annotations in the pull request, and a file for code scanning\n" +
			"  kubectl sched lint -f manifests/ -R -o github --findings sarif=lint.sarif\n\n" +
			"  # Mend what can be mended without asking\n" +
			"  kubectl sched lint -f manifests/ -R --fix\n\n" +
			"  # Adopt it in an old repository: what is there is known from now on\n" +
			"  kubectl sched lint -f manifests/ -R --write-baseline known.json\n" +
			"  kubectl sched lint -f manifests/ -R --baseline known.json",
		Args: cobra.NoArgs,
		RunE: runE(func([]string) (*lintOptions, error) { return f.toOptions(a) }),
	}
	f.pipelineFlags.addTo(cmd.Flags())
	f.snapshot.addTo(cmd.Flags())
	f.triageFlags.addTo(cmd.Flags())
	cmd.Flags().BoolVar(&f.fix, "fix", false, "Make the safe fixes in the files, and show the others as diffs")
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", "Format: "+strings.Join(findingFormats(), ", "))
	completeValues(cmd, "output", findingFormats())
	return cmd
}

type lintOptions struct {
	app      *app
	pipeline *pipeline
	format   report.Format
	snapshot snapshotSource
	flags    *lintFlags
}

func (f *lintFlags) toOptions(a *app) (*lintOptions, error) {
	format, err := report.ParseFormat(f.output, report.FindingFormats()...)
	if err != nil {
		return nil, err
	}
	o := &lintOptions{app: a, format: format, snapshot: f.snapshot, flags: f}
	return o, o.renew()
}

// renew makes a pipeline that has read nothing yet.
func (o *lintOptions) renew() error {
	p, err := o.flags.pipelineFlags.toOptions(o.app)
	if err != nil {
		return err
	}
	p.judge = lint.Check
	if o.pipeline != nil {
		p.snapshot, p.live = o.pipeline.snapshot, o.pipeline.live
	}
	o.pipeline, o.app.objects = p, nil
	return nil
}

// Validate implements options.
func (o *lintOptions) Validate() error {
	switch input := o.pipeline.manifests.input; {
	case o.snapshot.file == "" && o.snapshot.maxAge != 0:
		return errors.New("--max-snapshot-age needs --snapshot")
	case o.snapshot.file != "" && o.pipeline.withCluster:
		return errors.New("give --snapshot, or --live or --with-cluster, not both")
	case o.flags.fix && readsStdin(input.Files):
		return errors.New("--fix cannot write back to standard input; save it to a file and give that, or leave --fix out")
	case o.flags.fix && input.Kustomize != "":
		return errors.New("--fix cannot write back what a kustomization builds; give its files with -f")
	case o.flags.fix && o.flags.writeBaseline != "":
		return errors.New("give --fix or --write-baseline, not both: fix first, and write what is left")
	}
	return o.flags.validate()
}

// Run implements options.
func (o *lintOptions) Run(ctx context.Context) error {
	triage, findings, err := o.flags.triageFlags.toOptions(o.app)
	if err != nil {
		return usageError{err}
	}
	if findings.HasErrors() {
		return o.report(nil, triaged{findings: findings})
	}
	if o.snapshot.file != "" {
		s, err := o.app.snapshotFrom(ctx, o.snapshot, nil)
		if err != nil {
			return err
		}
		o.pipeline.snapshot, o.pipeline.live = s, !o.pipeline.manifests.given()
	}
	for round := 1; ; round++ {
		plans, found, err := o.look(ctx, triage)
		if err != nil {
			return err
		}
		fixed := 0
		if o.flags.fix && round <= maxFixRounds {
			if fixed, err = o.fixSafe(ctx, found.findings); err != nil {
				return err
			}
		}
		if fixed == 0 {
			return o.report(plans, found)
		}
		if err := o.renew(); err != nil {
			return err
		}
	}
}

// look finds what there is to find, once.
func (o *lintOptions) look(ctx context.Context, triage *triage) ([]clusterPlan, triaged, error) {
	plans, findings, err := o.pipeline.compilePlans(ctx)
	if err != nil {
		return nil, triaged{}, err
	}
	several := o.pipeline.placement != nil && len(o.pipeline.placement.Clusters) > 1
	all := o.pipeline.cluster == "" || o.pipeline.cluster == allClusters
	if o.snapshot.file != "" && several && all {
		return nil, triaged{}, usageError{errors.New("a snapshot is of one cluster, and the policies speak of several; name it with --cluster")}
	}
	o.pipeline.complete = len(plans) > 0 && (all || !several) && !slices.ContainsFunc(findings, triage.fatal)
	found, err := triage.sort(ctx, o.pipeline, findings)
	return plans, found, err
}

// report writes what was found, and returns the error with the exit code.
func (o *lintOptions) report(plans []clusterPlan, found triaged) error {
	if o.flags.fix {
		if err := o.showRest(found.findings); err != nil {
			return err
		}
	}
	o.app.findings = append(o.app.findings, found.findings...)
	o.app.ignored = append(o.app.ignored, found.ignored...)
	options := o.app.reportOptions(o.app.Out)
	options.Ignored = found.ignored
	if err := report.Findings(o.app.Out, o.format, found.findings, options); err != nil {
		return err
	}
	said := found.said()
	switch {
	case o.format != report.Text:
	case len(found.findings) > 0 && said != "":
		fmt.Fprintln(o.app.Out, "not reported: "+said)
	case len(found.findings) == 0 && said != "":
		fmt.Fprintln(o.app.Out, o.checked(plans)+"; "+said)
	case len(found.findings) == 0:
		fmt.Fprintln(o.app.Out, o.checked(plans))
	}
	return lintExit(found.findings)
}

// checked says what there was to check, so that nobody takes an empty folder
// for a clean one.
func (o *lintOptions) checked(plans []clusterPlan) string {
	text := "no findings: " + count(len(o.pipeline.placement.Policies), "policy", "policies")
	templates, clusters := 0, 0
	for _, p := range plans {
		templates = max(templates, len(p.Plan.Changes))
		clusters += len(p.Clusters)
	}
	if o.pipeline.live || o.pipeline.manifests.given() {
		text += ", " + count(templates, "pod template", "pod templates") + " matched"
	}
	if clusters > 0 {
		text += ", " + count(clusters, "cluster", "clusters")
	}
	return text
}

// count says a number with its noun.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// lintExit is 2 if anything could not be read, 1 for errors and warnings.
func lintExit(findings diag.Findings) error {
	code := exitOK
	for _, f := range findings {
		switch {
		case f.Severity == diag.Error && strings.HasPrefix(f.Rule, "input/"):
			return exitError{code: exitFailure}
		case f.Severity != diag.Info:
			code = exitFindings
		}
	}
	if code == exitOK {
		return nil
	}
	return exitError{code: code}
}
