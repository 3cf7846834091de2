package emit

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/objectyaml"
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
// With last, nobody asks the set for its objects any more: they are let go before
// the files are written out, which halves the memory that ten thousand take.
//
// Findings of severity Error tell of a workload that cannot carry its
// placement; the files are then not to be used.
func Manifests(ctx context.Context, plan *compiler.Plan, set *workload.Set, arguments []string, last bool) ([]File, diag.Findings) {
	edits, findings := fileEdits(ctx, plan, set)
	if last {
		set.Forget()
	}
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

// fileEdits collects what the plan changes, by file and document. Of what becomes
// of a workload only the edits are kept: of ten thousand, the rest is too much.
func fileEdits(ctx context.Context, plan *compiler.Plan, set *workload.Set) (map[string]map[int][]yamledit.Edit, diag.Findings) {
	edits := map[string]map[int][]yamledit.Edit{}
	each := make([][]yamledit.Edit, len(set.Workloads))
	findings := writeEach(ctx, plan, set.Workloads, workload.Stamp{}, func(i int, written *workload.Written) { each[i] = written.Edits })
	for i, w := range set.Workloads {
		if w.Source.Live || len(each[i]) == 0 {
			continue
		}
		if edits[w.Source.File] == nil {
			edits[w.Source.File] = map[int][]yamledit.Edit{}
		}
		doc := edits[w.Source.File]
		doc[w.Source.Document] = append(doc[w.Source.Document], each[i]...)
	}
	return edits, findings
}

// Write gives each workload the placement that the plan has for it, and takes
// from the others what earlier runs put there. The result has one entry for
// each workload, nil where the object stays as it is because no policy is or
// was about it. Findings tell of fields that a workload cannot carry.
func Write(ctx context.Context, plan *compiler.Plan, workloads []*workload.Workload, stamp workload.Stamp) ([]*workload.Written, diag.Findings) {
	written := make([]*workload.Written, len(workloads))
	findings := writeEach(ctx, plan, workloads, stamp, func(i int, w *workload.Written) { written[i] = w })
	return written, findings
}

// writeEach is Write, one workload after the other, or several at a time: keep is
// called with each index that has something.
func writeEach(ctx context.Context, plan *compiler.Plan, workloads []*workload.Workload, stamp workload.Stamp, keep func(int, *workload.Written)) diag.Findings {
	after := map[*workload.Workload]map[int]workload.PodFields{}
	for _, c := range plan.Changes {
		if after[c.Workload] == nil {
			after[c.Workload] = map[int]workload.PodFields{}
		}
		after[c.Workload][c.Template] = c.After
	}
	errs := make([]error, len(workloads))
	atOnce(ctx, len(workloads), func(i int) {
		w := workloads[i]
		if after[w] == nil && w.Record == nil {
			return
		}
		written, err := w.Write(after[w], stamp)
		if errs[i] = err; err == nil {
			keep(i, written)
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
	return append(findings, interrupted(ctx)...)
}

// Stream writes the files and the objects that the plan makes as one text of many
// documents, fit to be read again from standard input. Errors are those of out.
func Stream(out io.Writer, files []File, objects []byte) error {
	s := &stream{out: out}
	for _, f := range files {
		s.add(f.After)
	}
	if objects != nil {
		s.add([]byte("---\n"))
		s.write(objects)
	}
	return s.err
}

// stream joins texts of one or more documents.
type stream struct {
	out io.Writer
	err error
	// begun says that something was written, whole that it ended a line.
	begun, whole bool
}

func (s *stream) write(text []byte) {
	if s.err == nil && len(text) > 0 {
		_, s.err = s.out.Write(text)
		s.begun, s.whole = true, text[len(text)-1] == '\n'
	}
}

// add adds a text, with a separator where it needs one.
func (s *stream) add(text []byte) {
	if len(text) == 0 {
		return
	}
	if s.begun {
		if !s.whole {
			s.write([]byte("\n"))
		}
		if !startsDocument(text) {
			s.write([]byte("---\n"))
		}
	}
	s.write(text)
}

// startsDocument reports whether the first line that is neither blank nor a
// comment is a document marker (or a directive, which needs one before it).
func startsDocument(text []byte) bool {
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, "\r\n")
		if trimmed := bytes.TrimSpace(line); len(trimmed) == 0 || trimmed[0] == '#' {
			continue
		}
		marker, more := bytes.CutPrefix(line, []byte("---"))
		return more && (len(marker) == 0 || marker[0] == ' ' || marker[0] == '\t')
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
	var out bytes.Buffer
	documents := &stream{out: &out}
	for i, w := range workloads {
		if written[i] == nil || ctx.Err() != nil {
			continue
		}
		text, err := objectyaml.Marshal(asManifest(written[i].Object))
		if err != nil {
			findings = append(findings, diag.Finding{Rule: "input/encode", Severity: diag.Error, Subject: w.Ref(), Message: fmt.Sprintf("the object cannot be written as YAML: %v", err)})
			continue
		}
		documents.add(text)
	}
	return out.Bytes(), findings
}

// serverMetadata are the fields of metadata that only a server writes.
var serverMetadata = []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"}

// asManifest returns the object without what only a server, or the scheduler, writes.
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
	if spec, ok := object["spec"].(map[string]any); ok && object["kind"] == "Pod" && object["apiVersion"] == "v1" {
		kept := maps.Clone(spec)
		delete(kept, "nodeName") // the scheduler's answer, not what was asked for
		out["spec"] = kept
	}
	return out
}
