package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/kubectl-sched/kubectl-sched/compiler/emit"
	"github.com/kubectl-sched/kubectl-sched/internal/lint/fix"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

// maxFixRounds is how often fixes are made and what they lead to is looked at again.
// Fixes that overlap take a round each.
const maxFixRounds = 10

// fixSafe makes the safe fixes among the findings and returns how many it made.
func (o *lintOptions) fixSafe(ctx context.Context, findings diag.Findings) (int, error) {
	r := fix.Apply(findings, func(f diag.Fix) bool { return f.Safe }, o.editable())
	if len(r.Unfit) > 0 {
		return 0, fmt.Errorf("fix: %w", errors.Join(r.Unfit...))
	}
	dir, err := o.app.getwd()
	if err != nil {
		return 0, err
	}
	files := make([]emit.File, len(r.Files))
	for i, f := range r.Files {
		if err := reads(f); err != nil {
			return 0, fmt.Errorf("fix: %s would not be read any more (%w); nothing was changed", f.Name, err)
		}
		path := f.Name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		files[i] = emit.File{Name: f.Name, Path: path, Root: rootFor(dir, path), Before: f.Before, After: f.After}
	}
	if err := emit.Replace(ctx, emit.OS{}, files); err != nil {
		return 0, notWritten(ctx, err)
	}
	if len(files) == 0 {
		return 0, nil
	}
	for _, f := range r.Fixed {
		fmt.Fprintf(o.app.ErrOut, "fixed %s: %s [%s]\n", o.app.reportOptions(o.app.ErrOut).Place(f.Range.Start), f.Fix.Message, f.Rule)
	}
	return len(r.Fixed), nil
}

// showRest shows the fixes that were not made, each as a diff.
func (o *lintOptions) showRest(findings diag.Findings) error {
	for _, f := range findings {
		r := fix.Apply(diag.Findings{f}, func(diag.Fix) bool { return true }, o.editable())
		if len(r.Files) == 0 {
			continue
		}
		options := o.app.reportOptions(o.app.ErrOut)
		fmt.Fprintf(o.app.ErrOut, "not fixed, for you to decide: %s: %s [%s]\n", options.Place(f.Range.Start), f.Fix.Message, f.Rule)
		for _, file := range r.Files {
			if _, err := o.app.ErrOut.Write(diff.Diff(file.Name+".orig", file.Before, file.Name, file.After)); err != nil {
				return err
			}
		}
	}
	return nil
}

// editable returns a function that returns the text of a file on disk.
func (o *lintOptions) editable() func(string) ([]byte, bool) {
	source := o.app.texts.source()
	return func(name string) ([]byte, bool) {
		if _, ok := o.app.texts[name]; ok || name == "" {
			return nil, false
		}
		return source(name)
	}
}

// reads returns why a file with its edits would not be read; nil if it would.
func reads(f fix.File) error {
	if filepath.Ext(f.Name) == ".cue" {
		_, err := load.Format(f.After, f.Name)
		return err
	}
	if findings := workload.CheckText(f.Name, f.After); findings.HasErrors() {
		return findings
	}
	return nil
}

// rootFor returns the folder that a file may not lead out of through symbolic links:
// the repository, or else the working folder, where the file is in it.
func rootFor(dir, path string) string {
	root := repositoryOf(dir)
	if root == "" {
		root = dir
	}
	if !liesIn(root, path) {
		return filepath.Dir(path)
	}
	return root
}

// liesIn reports whether the path is the folder or in it, as far as names tell.
func liesIn(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}
