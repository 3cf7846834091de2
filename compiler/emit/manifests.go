package emit

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/yamledit"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// StreamFile is the name that standard input and a rendered kustomization get
// in an output folder.
const StreamFile = "manifests.yaml"

// Manifests returns all files of the set, in their order, with the plan's
// placement in them: the files that nothing changes too. What earlier runs put
// into a workload and no policy of the plan asks for any more is taken away. The
// objects that an earlier run wrote (Objects) are left out: whoever writes the
// files adds them anew. Arguments are the files and folders that the user named
// (-f), which decide what each File's Name is relative to and which folder
// bounds it.
//
// Findings of severity Error tell of a workload that cannot carry its
// placement; the files are then not to be used.
func Manifests(ctx context.Context, plan *compiler.Plan, set *workload.Set, arguments []string) ([]File, diag.Findings) {
	edits, findings := fileEdits(ctx, plan, set)
	where := newArguments(arguments)
	var sources []*workload.File
	var files []File
	for _, f := range set.Files {
		if IsObjectsFile(f.Data) && f.Mode != 0 {
			continue
		}
		sources = append(sources, f)
		files = append(files, where.place(f))
	}
	errs := make([]error, len(files))
	slots := yamledit.NewSlots()
	atOnce(ctx, len(files), func(i int) {
		f, out := sources[i], &files[i]
		out.Before, out.After = nonNil(f.Data), nonNil(f.Data)
		if e := edits[f.Name]; len(e) > 0 {
			out.After, errs[i] = yamledit.ApplyAll(f.Data, e, slots)
		}
		out.After = cutObjects(out.After)
	})
	for i, err := range errs {
		if err != nil {
			findings = append(findings, finding("input/edit", sources[i].Name, fmt.Sprintf("the placement cannot be written into the file: %v", err)))
		}
	}
	return files, append(findings, interrupted(ctx)...)
}

// interrupted is the finding on work that ctx has ended early.
func interrupted(ctx context.Context) diag.Findings {
	if ctx.Err() == nil {
		return nil
	}
	return diag.Findings{finding("compile/interrupted", "", fmt.Sprintf("writing the placement was interrupted: %v", ctx.Err()))}
}

// atOnce calls f for each index below n, for several at a time, and returns
// when all calls have. When ctx ends it calls no more.
func atOnce(ctx context.Context, n int, f func(i int)) {
	var next atomic.Int64
	var wait sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		wait.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wait.Wait()
}

// fileEdits collects what the plan changes, by file and document.
func fileEdits(ctx context.Context, plan *compiler.Plan, set *workload.Set) (map[string]map[int][]yamledit.Edit, diag.Findings) {
	edits := map[string]map[int][]yamledit.Edit{}
	written, findings := Write(ctx, plan, set.Workloads, workload.Stamp{})
	for i, w := range set.Workloads {
		if w.Source.Live || written[i] == nil || len(written[i].Edits) == 0 {
			continue
		}
		if edits[w.Source.File] == nil {
			edits[w.Source.File] = map[int][]yamledit.Edit{}
		}
		doc := edits[w.Source.File]
		doc[w.Source.Document] = append(doc[w.Source.Document], written[i].Edits...)
	}
	return edits, findings
}

// Write gives each workload the placement that the plan has for it, and takes
// from the others what earlier runs put there. The result has one entry for
// each workload, nil where the object stays as it is because no policy is or
// was about it. Findings tell of fields that a workload cannot carry.
func Write(ctx context.Context, plan *compiler.Plan, workloads []*workload.Workload, stamp workload.Stamp) ([]*workload.Written, diag.Findings) {
	after := map[*workload.Workload]map[int]workload.PodFields{}
	for _, c := range plan.Changes {
		if after[c.Workload] == nil {
			after[c.Workload] = map[int]workload.PodFields{}
		}
		after[c.Workload][c.Template] = c.After
	}
	written := make([]*workload.Written, len(workloads))
	errs := make([]error, len(workloads))
	atOnce(ctx, len(workloads), func(i int) {
		if w := workloads[i]; after[w] != nil || w.Record != nil {
			written[i], errs[i] = w.Write(after[w], stamp)
		}
	})
	var findings diag.Findings
	for i, err := range errs {
		if w := workloads[i]; err != nil {
			findings = append(findings, diag.Finding{
				Rule: "compile/unsupported-field", Severity: diag.Error, Subject: w.Ref(), Range: w.Source.At(), Message: err.Error(),
			})
		}
	}
	return written, append(findings, interrupted(ctx)...)
}

// Stream returns the files and the objects that the plan makes as one text of
// many documents, fit to be read again from standard input.
func Stream(files []File, objects []byte) []byte {
	var out []byte
	for _, f := range files {
		out = appendDocument(out, f.After)
	}
	if objects != nil {
		out = appendDocument(out, append([]byte("---\n"), objects...))
	}
	return out
}

// appendDocument adds a text of one or more documents to a stream, with a
// separator where it needs one.
func appendDocument(stream, text []byte) []byte {
	if len(text) == 0 {
		return stream
	}
	if len(stream) > 0 {
		if stream[len(stream)-1] != '\n' {
			stream = append(stream, '\n')
		}
		if !startsDocument(text) {
			stream = append(stream, "---\n"...)
		}
	}
	return append(stream, text...)
}

// startsDocument reports whether the first line that is neither blank nor a
// comment is a document marker (or a directive, which needs one before it).
func startsDocument(text []byte) bool {
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n")
		if trimmed := strings.TrimSpace(line); trimmed == "" || trimmed[0] == '#' {
			continue
		}
		return line == "---" || strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "---\t")
	}
	return false
}

// LiveManifests returns the workloads of a plan that was compiled from a
// cluster as one stream of manifests with the plan's placement, without what
// the server wrote into them: those that a policy is about.
func LiveManifests(ctx context.Context, plan *compiler.Plan) ([]byte, diag.Findings) {
	var workloads []*workload.Workload
	seen := map[*workload.Workload]bool{}
	for _, c := range plan.Changes {
		if !seen[c.Workload] {
			seen[c.Workload] = true
			workloads = append(workloads, c.Workload)
		}
	}
	written, findings := Write(ctx, plan, workloads, workload.Stamp{})
	var out []byte
	for i, w := range workloads {
		if written[i] == nil || ctx.Err() != nil {
			continue
		}
		text, err := yaml.Marshal(asManifest(written[i].Object))
		if err != nil {
			findings = append(findings, diag.Finding{Rule: "input/encode", Severity: diag.Error, Subject: w.Ref(), Message: fmt.Sprintf("the object cannot be written as YAML: %v", err)})
			continue
		}
		out = appendDocument(out, text)
	}
	return out, findings
}

// serverMetadata are the fields of metadata that only a server writes.
var serverMetadata = []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"}

// asManifest returns the object without what only a server writes.
func asManifest(object map[string]any) map[string]any {
	out := make(map[string]any, len(object))
	for k, v := range object {
		if k != "status" {
			out[k] = v
		}
	}
	if meta, ok := object["metadata"].(map[string]any); ok {
		kept := make(map[string]any, len(meta))
		for k, v := range meta {
			if !slices.Contains(serverMetadata, k) {
				kept[k] = v
			}
		}
		out["metadata"] = kept
	}
	return out
}
