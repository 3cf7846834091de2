package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/kubectl-sched/kubectl-sched/compiler/emit"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

type fmtFlags struct{ check, diff bool }

func newFmtCommand(a *app) *cobra.Command {
	f := &fmtFlags{}
	cmd := &cobra.Command{
		Use:     "fmt [PATH...]",
		Short:   "Format policies",
		GroupID: groupWrite,
		Long: "Rewrite .cue files in CUE's canonical form, as \"cue fmt\" does, and name those that\n" +
			"changed. Paths are folders (with all below them) or files; \"-\" formats standard input.\n" +
			"Without a path it is ./" + defaultPolicyFolder + " if that exists, else the working directory. If any file cannot\n" +
			"be parsed, none is written.",
		Example: "  kubectl sched fmt\n\n" +
			"  # In CI: name the files that are not formatted, and fail if there are any\n" +
			"  kubectl sched fmt --check",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"cue"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: runE(func(args []string) (*fmtOptions, error) { return f.toOptions(a, args) }),
	}
	cmd.Flags().BoolVarP(&f.check, "check", "l", false, "Write nothing; name the files that are not formatted, and exit with 1 if there are any")
	cmd.Flags().BoolVar(&f.diff, "diff", false, "Write nothing; show what would change, and exit with 1 if anything would")
	return cmd
}

type fmtOptions struct {
	app         *app
	paths       []string
	check, diff bool
}

// stdinName is how the command line names standard input.
const stdinName = "-"

func (f *fmtFlags) toOptions(a *app, args []string) (*fmtOptions, error) {
	if len(args) == 0 {
		args = []string{a.defaultPolicyPath()}
	}
	return &fmtOptions{app: a, paths: args, check: f.check, diff: f.diff}, nil
}

// Validate implements options.
func (o *fmtOptions) Validate() error {
	if slices.Contains(o.paths, stdinName) && len(o.paths) > 1 {
		return errors.New("give \"-\" or paths, not both")
	}
	return nil
}

// Run implements options.
func (o *fmtOptions) Run(ctx context.Context) error {
	files, findings := o.formatted(ctx)
	if err := o.app.failOn(findings); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if o.paths[0] == stdinName && !o.check && !o.diff {
		_, err := o.app.Out.Write(files[0].After)
		return err
	}
	var changed []load.Formatted
	for _, f := range files {
		if !bytes.Equal(f.Before, f.After) {
			changed = append(changed, f)
		}
	}
	if o.check || o.diff {
		return o.preview(changed)
	}
	edits := make([]emit.File, len(changed))
	for i, f := range changed {
		edits[i] = emit.File{Name: f.File, Path: f.Path, Root: f.Root, Before: f.Before, After: f.After}
	}
	if err := emit.Replace(ctx, emit.OS{}, edits); err != nil {
		return notWritten(ctx, err)
	}
	for _, f := range changed {
		fmt.Fprintln(o.app.Out, f.File)
	}
	return nil
}

func (o *fmtOptions) formatted(ctx context.Context) ([]load.Formatted, diag.Findings) {
	if o.paths[0] != stdinName {
		return load.FormatAll(ctx, load.Options{Paths: o.paths})
	}
	text, err := workload.ReadAll(ctx, io.LimitReader(o.app.In, load.MaxFile+1))
	if err == nil && len(text) > load.MaxFile {
		err = fmt.Errorf("more than %d bytes", load.MaxFile)
	}
	if err != nil {
		return nil, diag.Findings{{Rule: "input/unreadable", Severity: diag.Error, Range: diag.At(diag.Pos{File: stdinName}), Message: err.Error()}}
	}
	o.app.texts[stdinName] = text
	after, err := load.Format(text, stdinName)
	var findings diag.Findings
	if err != nil && !errors.As(err, &findings) {
		findings = diag.Findings{{Rule: "input/syntax", Severity: diag.Error, Range: diag.At(diag.Pos{File: stdinName}), Message: err.Error()}}
	}
	return []load.Formatted{{File: stdinName, Before: text, After: after}}, findings
}

func (o *fmtOptions) preview(changed []load.Formatted) error {
	for _, f := range changed {
		if !o.diff {
			fmt.Fprintln(o.app.Out, f.File)
			continue
		}
		if _, err := o.app.Out.Write(diff.Diff(f.File+".orig", f.Before, f.File, f.After)); err != nil {
			return err
		}
	}
	if len(changed) > 0 {
		return exitError{code: exitFindings}
	}
	return nil
}
