package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubectl-sched/kubectl-sched/internal/report"
	"github.com/kubectl-sched/kubectl-sched/internal/review"
	"github.com/kubectl-sched/kubectl-sched/internal/revision"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

type reviewFlags struct {
	policyFlags
	manifestFlags
	surfaceFlag
	triageFlags
	ownNames
	base, head string
	cluster    string
	namespace  string
	snapshots  []string
	maxAge     time.Duration
	maxBytes   string
	seed       uint64
	failOn     []string
	outputs    []string
}

func newReviewCommand(a *app) *cobra.Command {
	f := &reviewFlags{}
	cmd := &cobra.Command{
		Use:     "review [--base REF] [--head REF] [--snapshot FILE] [-p POLICIES] [-f MANIFESTS]",
		Short:   "Say what a change of policies and manifests would do, from git revisions",
		GroupID: groupApply,
		Long: "Compare two git revisions: what changes in the policies, in the compiled fields (workloads that\n" +
			"change alike are one entry), in where the pods are, and which findings of lint are new. The\n" +
			"first line says which workloads would restart, how many pods and which PodDisruptionBudgets.\n\n" +
			"Both sides are simulated on the same snapshot with the same seed, so what is live does not count,\n" +
			"and moves that only a tie decided are counted apart. Without --snapshot no pod is placed. The\n" +
			"policies of several clusters are compiled for each; --snapshot NAME=FILE, given several times,\n" +
			"says of which cluster a snapshot is. Without manifests the workloads of the snapshot are compared.\n\n" +
			"The base is, unless --base says otherwise, the commit at which the head left the main branch, and\n" +
			"the head the working tree as it is, with what is not committed. Revisions are read with git's\n" +
			"plumbing into a temporary folder: nothing is checked out, fetched or run. Lint settings and the\n" +
			"baseline are those of the base, so that a change cannot silence what is said of it, and a\n" +
			"finding that only the head says is to be ignored is listed as such.\n\n" +
			"The exit code is 0, also where something changes; 1 where --fail-on is met, and above 1 if either\n" +
			"side could not be read, or the head does not compile. docs/review.md has more, and workflows\n" +
			"for pull requests of strangers.",
		Example: "  # What would my working tree do?\n" +
			"  kubectl sched review --snapshot prod.snapshot -p placement -f manifests/ -R\n\n" +
			"  # In CI: a comment, a file for code scanning, a page, and an exit code\n" +
			"  kubectl sched review --base origin/main --head HEAD --snapshot prod.snapshot \\\n" +
			"    -p placement -f manifests/ -R -o markdown=comment.md -o sarif=new.sarif -o html=review.html \\\n" +
			"    --fail-on 'pending,moved>10%,skew>1,findings=error'\n\n" +
			"  # A fleet\n" +
			"  kubectl sched review --snapshot prod-eu=eu.snapshot --snapshot prod-us=us.snapshot",
		Args: cobra.NoArgs,
		RunE: runE(func([]string) (*reviewOptions, error) { return f.toOptions(a) }),
	}
	flags := cmd.Flags()
	f.policyFlags.addTo(flags)
	f.manifestFlags.addTo(flags)
	f.surfaceFlag.addTo(flags, "How the policies reach the workloads, whatever the cluster's surface is in the policies: render, live or admission",
		policy.SurfaceRender, policy.SurfaceLive, policy.SurfaceAdmission)
	flags.StringVar(&f.base, "base", "", "Revision to compare with; by default where the head left the main branch")
	flags.StringVar(&f.head, "head", "", "Revision to review; by default the working tree")
	flags.StringVar(&f.cluster, "cluster", "", "Cluster of the policies' clusters block to review, or \"all\"")
	flags.StringVarP(&f.namespace, "namespace", "n", "", "Namespace of manifests that name none")
	flags.StringArrayVar(&f.snapshots, "snapshot", nil, "`[CLUSTER=]FILE` that \"kubectl sched snapshot\" wrote; several times for several clusters")
	flags.DurationVar(&f.maxAge, "max-snapshot-age", 0, "Refuse a snapshot that is older than this; 0 takes any")
	flags.StringVar(&f.maxBytes, "max-snapshot-size", defaultMaxSnapshot, "How large a snapshot may be, unpacked")
	f.ownNames.addTo(flags)
	f.triageFlags.addReading(flags)
	flags.Uint64Var(&f.seed, "seed", 1, "What decides between nodes that are equal in everything")
	flags.StringSliceVar(&f.failOn, "fail-on", nil, "`CONDITION`s under which the exit code is 1: pending, needs-nodes, moved, restarts, each also as moved>N or moved>N%, skew>N, findings=error, ignored")
	flags.StringArrayVarP(&f.outputs, "output", "o", []string{"text"}, "`FORMAT[=FILE]`: "+strings.Join(reviewFormats(), ", ")+"; may be given several times")
	completeValues(cmd, "output", reviewFormats())
	return cmd
}

func reviewFormats() []string {
	var names []string
	for _, f := range report.ReviewFormats() {
		names = append(names, string(f))
	}
	return names
}

// defaultMaxSnapshot is what --max-snapshot-size is if nothing is said.
var defaultMaxSnapshot = resource.NewQuantity(1<<30, resource.BinarySI).String()

type reviewOptions struct {
	app        *app
	flags      *reviewFlags
	policies   policyOptions
	manifests  manifestOptions
	conditions []review.Condition
	sinks      []findingsSink
	maxBytes   int64
	// repository is its folder, and dir where in it the user stands, without links.
	repository, dir string
	// said returns a text with the owner's names in the place of a snapshot's words; nil
	// for none.
	said func(string) string
}

func (f *reviewFlags) toOptions(a *app) (*reviewOptions, error) {
	o := &reviewOptions{app: a, flags: f}
	var err error
	if o.policies, err = f.policyFlags.toOptions(a); err != nil {
		return nil, err
	}
	if o.manifests, err = f.manifestFlags.toOptions(a); err != nil {
		return nil, err
	}
	if _, err := f.surfaceFlag.toOptions(); err != nil {
		return nil, err
	}
	if o.maxBytes, err = bytesFlag("max-snapshot-size", f.maxBytes); err != nil {
		return nil, err
	}
	for _, text := range f.failOn {
		c, err := review.ParseCondition(text)
		if err != nil {
			return nil, fmt.Errorf("--fail-on: %w", err)
		}
		o.conditions = append(o.conditions, c)
	}
	standard := 0
	for _, text := range f.outputs {
		name, file, named := strings.Cut(text, "=")
		format, err := report.ParseFormat(name, report.ReviewFormats()...)
		if err != nil {
			return nil, err
		}
		if named && file == "" {
			return nil, fmt.Errorf("-o %q: there is no file after \"=\"", text)
		}
		if !named {
			standard++
		}
		o.sinks = append(o.sinks, findingsSink{format, file})
	}
	if standard > 1 {
		return nil, errors.New("one format alone can go to standard output; give the others a file, as -o markdown=FILE")
	}
	return o, nil
}

// Validate implements options.
func (o *reviewOptions) Validate() error {
	switch {
	case readsStdin(o.manifests.input.Files):
		return errors.New("standard input has no revisions; give files of the repository")
	case len(o.flags.snapshots) == 0 && o.flags.maxAge != 0:
		return errors.New("--max-snapshot-age needs --snapshot")
	case len(o.flags.snapshots) == 0 && o.flags.namesFile != "":
		return errors.New("--names needs --snapshot")
	case len(o.flags.snapshots) == 0 && !o.manifests.given():
		return errors.New("there is nothing that the policies could act on: give manifests (-f, -k), --snapshot, or both")
	}
	return nil
}

// Run implements options.
func (o *reviewOptions) Run(ctx context.Context) (err error) {
	base, head, done, err := o.sides(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	r, broken, err := o.review(ctx, base, head)
	if err != nil {
		return err
	}
	options := head.app.reportOptions(o.app.Out)
	// The reader stands here, wherever the files of the head are.
	options.Dir, options.Repository = head.root, head.root
	options.Names, options.Ignored = o.said, r.Ignored
	if err := o.write(r, options); err != nil {
		return err
	}
	o.app.findings = append(o.app.findings, r.Findings...)
	o.app.ignored = append(o.app.ignored, r.Ignored...)
	if broken {
		return exitError{code: exitFailure}
	}
	failed := false
	for _, c := range o.conditions {
		for _, why := range c.Failed(r) {
			failed = true
			o.app.complain("--fail-on %s", why)
		}
	}
	if failed {
		return exitError{code: exitFindings}
	}
	return nil
}

// write writes the review to where it is wanted.
func (o *reviewOptions) write(r *review.Review, options report.Options) error {
	for _, s := range o.sinks {
		if s.file == "" {
			if err := report.Review(o.app.Out, s.format, r, options); err != nil {
				return err
			}
			continue
		}
		plain := options
		plain.Color, plain.Width = false, 0
		var b bytes.Buffer
		if err := report.Review(io.Writer(&b), s.format, r, plain); err != nil {
			return err
		}
		if err := replaceFile(s.file, b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// sides makes the two sides ready; done ends them.
func (o *reviewOptions) sides(ctx context.Context) (base, head *side, done func() error, err error) {
	var trees []*revision.Tree
	remove := func() error {
		var all error
		for _, t := range trees {
			all = errors.Join(all, t.Close())
		}
		return all
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, remove())
		}
	}()
	dir, err := o.app.getwd()
	if err != nil {
		return nil, nil, nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, nil, nil, err
	}
	repository, err := revision.Open(ctx, dir)
	if err != nil {
		return nil, nil, nil, err
	}
	within, err := filepath.Rel(repository.Root, dir)
	if err != nil {
		return nil, nil, nil, err
	}
	o.repository, o.dir = repository.Root, dir
	tip := "HEAD"
	if o.flags.head != "" {
		tip = o.flags.head
	}
	name := o.flags.base
	var commit string
	if name == "" {
		var branch string
		if commit, branch, err = repository.Fork(ctx, tip); err != nil {
			return nil, nil, nil, err
		}
		name = "the merge base with " + branch
	} else if commit, err = repository.Commit(ctx, name); err != nil {
		return nil, nil, nil, err
	}
	tree := func(name, commit string) (*side, error) {
		t, err := repository.Files(ctx, commit, revision.DefaultLimits)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		trees = append(trees, t)
		s, err := o.side(fmt.Sprintf("%s (%.12s)", name, commit), t.Root, within, repository.Root)
		if err == nil {
			s.refused = t.Refused
		}
		return s, err
	}
	if base, err = tree(name, commit); err != nil {
		return nil, nil, nil, err
	}
	if o.flags.head == "" {
		if head, err = o.side("the working tree", repository.Root, within, repository.Root); err == nil {
			head.inPlace = true
			head.refused, err = repository.Outward(revision.DefaultLimits)
		}
	} else if commit, err = repository.Commit(ctx, o.flags.head); err == nil {
		head, err = tree(o.flags.head, commit)
	}
	return base, head, remove, err
}
