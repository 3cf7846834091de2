package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/kubectl-sched/kubectl-sched/compiler/emit"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// outcome is what compile writes for one cluster, or for several that come out
// the same.
type outcome struct {
	clusters []string
	files    []emit.File
	// objects are the objects that the plan makes, for the end of a stream.
	objects []byte
	plan    clusterPlan
	// nodes says that the files are for those who make nodes.
	nodes bool
}

// stream writes the outcome as one text.
func (c outcome) stream(w io.Writer) error {
	if c.nodes {
		_, err := w.Write(emit.NodesText(c.files))
		return err
	}
	buffered := bufio.NewWriter(w)
	return errors.Join(emit.Stream(buffered, c.files, c.objects), buffered.Flush())
}

// same reports whether what is written of two outcomes is the same.
func (c outcome) same(other outcome) bool {
	return c.nodes == other.nodes && bytes.Equal(c.objects, other.objects) && slices.EqualFunc(c.files, other.files, func(a, b emit.File) bool {
		return a.Name == b.Name && bytes.Equal(a.After, b.After)
	})
}

// outcomes renders the plans and joins those that come out the same, though
// they may differ in what is not written (such as what is asked of nodes).
func (o *compileOptions) outcomes(ctx context.Context, plans []clusterPlan) ([]outcome, diag.Findings) {
	var list []outcome
	var findings diag.Findings
	for i, p := range plans {
		out, fs := o.render(ctx, p, i == len(plans)-1)
		findings = append(findings, fs...)
		if i := slices.IndexFunc(list, out.same); i >= 0 {
			list[i].clusters = append(list[i].clusters, out.clusters...)
			continue
		}
		list = append(list, out)
	}
	return list, findings
}

// render writes one plan out in memory; the manifests need not be kept for another
// if it is the last.
func (o *compileOptions) render(ctx context.Context, p clusterPlan, last bool) (outcome, diag.Findings) {
	out := outcome{clusters: slices.Clone(p.Clusters), plan: p}
	set := o.pipeline.set
	format, plan := o.formatFor(p), forManifests(p.Plan, p.Surface)
	if format == formatNodes {
		files, err := emit.Nodes(p.Plan)
		if err != nil {
			return out, diag.Findings{{Rule: "input/encode", Severity: diag.Error, Message: err.Error()}}
		}
		out.files, out.nodes = files, true
		return out, nil
	}
	if format == formatProfiles {
		files, err := emit.Profiles(p.Plan)
		if err != nil {
			return out, diag.Findings{{Rule: "input/encode", Severity: diag.Error, Message: err.Error()}}
		}
		out.files = files
		return out, nil
	}
	if format == formatComponent {
		files, findings := emit.Component(ctx, plan, set)
		out.files = files
		return out, findings
	}
	if format == formatObjects {
		// Those that the manifests have already are shown as well.
		set = nil
	}
	objects, err := emit.Objects(plan, set)
	if err != nil {
		return out, diag.Findings{{Rule: "input/encode", Severity: diag.Error, Message: err.Error()}}
	}
	out.objects = objects
	if format == formatObjects {
		return out, nil
	}
	if o.pipeline.live {
		text, findings := emit.LiveManifests(ctx, plan)
		out.files = []emit.File{{Name: emit.StreamFile, After: text}}
		return out, findings
	}
	files, findings := emit.Manifests(ctx, plan, set, o.pipeline.manifests.input.Files, last)
	out.files = files
	return out, findings
}

// write puts the outcomes where the user wants them.
func (o *compileOptions) write(ctx context.Context, outcomes []outcome) error {
	if o.outputDir != "" && o.pipeline.cluster == allClusters {
		return o.writePerCluster(ctx, outcomes)
	}
	if len(outcomes) > 1 {
		return usageError{fmt.Errorf("the clusters come out differently (%s); name one with --cluster, or give --cluster all and --output-dir", describe(outcomes))}
	}
	if len(outcomes) == 0 {
		return nil
	}
	out := outcomes[0]
	switch {
	case o.inPlace:
		return o.writeInPlace(ctx, out)
	case o.outputDir != "":
		files, err := o.below(o.outputDir, out)
		if err != nil {
			return err
		}
		return o.replace(ctx, files, o.outputDir)
	case o.format == formatNodes && len(out.files) == 0:
		fmt.Fprintln(o.app.ErrOut, "no pool asks anything of its nodes: none is dedicated, or has labels, or says who makes its nodes")
		return nil
	case o.format == formatProfiles && len(out.files) == 0:
		fmt.Fprintln(o.app.ErrOut, "no policy needs a profile: the built-in fields say all of it")
		return nil
	case o.format == formatComponent && len(out.files) > 1:
		return usageError{fmt.Errorf("the Component has a second file, %s; give --output-dir", out.files[1].Name)}
	}
	return o.app.write(ctx, out.stream)
}

// describe names the clusters of each outcome: "a, b / c".
func describe(outcomes []outcome) string {
	names := make([]string, len(outcomes))
	for i, c := range outcomes {
		names[i] = strings.Join(c.clusters, ", ")
	}
	return strings.Join(names, " / ")
}

// writePerCluster gives every cluster a folder of its own, also those that come
// out the same: what reads the folders knows them by name.
func (o *compileOptions) writePerCluster(ctx context.Context, outcomes []outcome) error {
	var files []emit.File
	var folders []string
	for _, out := range outcomes {
		if len(out.clusters) > 1 {
			fmt.Fprintf(o.app.ErrOut, "the same for %s\n", strings.Join(out.clusters, ", "))
		}
		clusters := out.clusters
		if len(clusters) == 0 {
			clusters = []string{""}
		}
		for _, cluster := range clusters {
			folder := filepath.Join(o.outputDir, cluster)
			below, err := o.below(folder, out)
			if err != nil {
				return err
			}
			files, folders = append(files, below...), append(folders, folder)
		}
	}
	return o.replace(ctx, files, folders...)
}

// below returns the files of an outcome as they are to be in a folder.
func (o *compileOptions) below(folder string, out outcome) ([]emit.File, error) {
	files, findings := emit.Into(o.disk, folder, out.files)
	if o.formatFor(out.plan) == formatManifests {
		objects, fs := emit.ObjectsAt(out.plan.Plan, o.disk, o.objectsFile, filepath.Join(folder, o.objectsFile), folder)
		files, findings = append(files, objects), append(findings, fs...)
	}
	return files, o.app.failOn(findings)
}

// writeInPlace writes the manifests back.
func (o *compileOptions) writeInPlace(ctx context.Context, out outcome) error {
	path, folder := o.objectsPath()
	objects, findings := emit.ObjectsAt(out.plan.Plan, o.disk, filepath.Base(path), path, folder)
	if objects.Before == nil && objects.After != nil {
		findings = append(findings, unlisted(o.disk, folder, filepath.Base(path))...)
	}
	if err := o.app.failOn(findings); err != nil {
		return err
	}
	return o.replace(ctx, append(out.files, objects))
}

// objectsPath returns where the objects file is in place, and its folder: where
// the user says, where an earlier run's file was found among the manifests, or
// beside the first of them.
func (o *compileOptions) objectsPath() (path, folder string) {
	if o.objectsFile != filepath.Base(o.objectsFile) {
		return o.objectsFile, filepath.Dir(o.objectsFile)
	}
	for _, f := range o.pipeline.set.Files {
		if emit.IsObjectsFile(f.Data) && filepath.Base(f.Name) == o.objectsFile {
			return f.Name, filepath.Dir(f.Name)
		}
	}
	folder = firstFolder(o.pipeline.manifests.input.Files)
	return filepath.Join(folder, o.objectsFile), folder
}

// firstFolder is the folder of the first file or folder that was named.
func firstFolder(arguments []string) string {
	first := arguments[0]
	if info, err := os.Stat(first); err == nil && info.IsDir() {
		return first
	}
	return filepath.Dir(first)
}

// unlisted tells of a kustomization beside a new file that does not list it.
func unlisted(disk emit.FileSystem, folder, name string) diag.Findings {
	for _, k := range []string{"kustomization.yaml", "kustomization.yml", "Kustomization"} {
		path := filepath.Join(folder, k)
		text, err := disk.ReadFile(path)
		if err == nil && !bytes.Contains(text, []byte(name)) {
			return diag.Findings{{
				Rule: "compile/unlisted-objects", Severity: diag.Warning, Range: diag.At(diag.Pos{File: path}),
				Message: fmt.Sprintf("the kustomization does not list the new file %q; add it under \"resources\"", name),
			}}
		}
	}
	return nil
}

// replace writes the files that change, or says which would (--check, --diff).
// Folders are made if they are missing.
func (o *compileOptions) replace(ctx context.Context, files []emit.File, folders ...string) error {
	changed := slices.DeleteFunc(slices.Clone(files), func(f emit.File) bool { return !f.Changed() })
	if o.check || o.diff {
		return o.preview(changed)
	}
	for _, f := range changed {
		if f.After != nil && len(folders) > 0 {
			if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
				return fmt.Errorf("make the output folder: %w (no file was changed)", err)
			}
		}
	}
	if err := emit.Replace(ctx, o.disk, changed); err != nil {
		return notWritten(ctx, err)
	}
	for _, f := range changed {
		fmt.Fprintf(o.app.Out, "%s %s\n", f.Path, verbFor(f))
	}
	return nil
}

// preview prints what would change; that it would is exit code 1.
func (o *compileOptions) preview(changed []emit.File) error {
	for _, f := range changed {
		if !o.diff {
			fmt.Fprintln(o.app.Out, f.Path)
			continue
		}
		if _, err := o.app.Out.Write(diff.Diff(f.Path+".orig", f.Before, f.Path, f.After)); err != nil {
			return err
		}
	}
	if len(changed) > 0 {
		return exitError{code: exitFindings}
	}
	return nil
}

func verbFor(f emit.File) string {
	switch {
	case f.Before == nil:
		return "created"
	case f.After == nil:
		return "deleted"
	}
	return "updated"
}

// notWritten is the finding on files that could not be written.
func notWritten(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return diag.Findings{{Rule: "output/file", Severity: diag.Error, Message: err.Error()}}
}
