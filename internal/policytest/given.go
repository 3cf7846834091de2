package policytest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// path returns where a file or folder is that the test names as seen from its own
// folder. It must not lead out of Dir, or out of the test's folder if that is
// outside already: a test may be a stranger's.
func (r *run) path(at []string, name string) (string, bool) {
	if filepath.IsAbs(name) {
		r.bad(ruleError, at, "%q begins at the root of this machine; name the file as seen from the test's folder", name)
		return "", false
	}
	dir := r.Dir
	folder := filepath.FromSlash(r.test.Positions.At(at...).Start.File)
	if !filepath.IsAbs(folder) {
		folder = filepath.Join(dir, folder)
	}
	folder = filepath.Dir(folder)
	full := filepath.Join(folder, filepath.FromSlash(name))
	root, err := filepath.EvalSymlinks(dir)
	if err == nil {
		if own, err := filepath.EvalSymlinks(folder); err == nil && !within(root, own) {
			root = own
		}
	}
	target, err2 := filepath.EvalSymlinks(full)
	switch {
	case err != nil:
		r.bad(ruleError, at, "%v", err)
		return "", false
	case err2 != nil:
		r.bad(ruleError, at, "there is no %q as seen from the test's folder", name)
		return "", false
	case !within(root, target):
		r.bad(ruleError, at, "%q leads out of the folder in which the tests are run; copy the file, or run the tests from a folder above it", name)
		return "", false
	}
	if rel, err := filepath.Rel(dir, full); err == nil && filepath.IsLocal(rel) {
		return filepath.Join(dir, rel), true
	}
	return full, true
}

// within reports whether path is dir or below it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// given reads the workloads that the test describes, and its manifests.
func (r *run) given(ctx context.Context) *workload.Set {
	var in workload.Input
	in.Recursive = true
	for i, name := range r.test.Manifests {
		if path, ok := r.path([]string{"manifests", fmt.Sprint(i)}, name); ok {
			in.Files = append(in.Files, path)
		}
	}
	names := slices.Sorted(maps.Keys(r.test.Workloads))
	if len(names) > 0 {
		var objects []any
		for _, name := range names {
			objects = append(objects, object(name, r.test.Workloads[name]))
		}
		in.Files = append(in.Files, inline)
		in.Stdin = bytes.NewReader(documents(objects))
	}
	if len(in.Files) == 0 || r.broken() {
		return &workload.Set{}
	}
	set, findings := workload.Read(ctx, in, workload.Options{Kinds: r.Kinds})
	for _, f := range findings {
		if f.Severity == diag.Error {
			r.result.Errors = append(r.result.Errors, r.placed(f))
		}
	}
	return set
}

// placed returns the finding at a place that the user can see: what is wrong in a
// workload that the test describes is wrong in the test.
func (r *run) placed(f diag.Finding) diag.Finding {
	if f.Range.Start.File != inline {
		return f
	}
	path := []string{"workloads"}
	for name := range r.test.Workloads {
		if strings.HasSuffix(f.Subject, "/"+name) {
			path = []string{"workloads", name}
		}
	}
	f.Range, f.Fix = r.test.Positions.At(path...), nil
	return f
}

// object is the manifest of a workload that is described in a few lines.
func object(name string, w policy.TestWorkload) map[string]any {
	kind := cmp.Or(w.Kind, "Deployment")
	labels := w.Labels
	if labels == nil {
		labels = map[string]string{"app": name}
	}
	spec := map[string]any{"containers": []any{container(w.Requests)}}
	if kind == "Job" {
		spec["restartPolicy"] = "Never"
	}
	maps.Copy(spec, w.Pod)
	metadata := map[string]any{"namespace": cmp.Or(w.Namespace, metav1.NamespaceDefault), "name": name, "labels": labels}
	if kind == "Pod" {
		return map[string]any{"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}
	}
	body := map[string]any{"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": spec}}
	replicas := 1
	if w.Replicas != nil {
		replicas = *w.Replicas
	}
	version := "apps/v1"
	switch kind {
	case "Job":
		version = "batch/v1"
		body["parallelism"], body["completions"] = replicas, replicas
	case "Deployment", "StatefulSet":
		body["replicas"] = replicas
		fallthrough
	case "DaemonSet":
		body["selector"] = map[string]any{"matchLabels": labels}
	}
	if kind == "StatefulSet" {
		body["serviceName"] = name
	}
	return map[string]any{"apiVersion": version, "kind": kind, "metadata": metadata, "spec": body}
}
