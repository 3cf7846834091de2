// Package load maps folders of CUE to a policy.Placement.
//
// Evaluate does it in this process; Isolated does it in a child process that
// can be killed, because an evaluation of CUE cannot be cancelled and a document
// may be written to run for ever. Loading is hermetic: it reads the given
// folders, and, of the folders above them, what belongs to the same CUE module.
// It uses no network, no module registry (unless asked) and no environment.
//
// Everything that is wrong with a document is a diag.Finding at a place in the
// user's own files. The package must not know workloads, clusters, what an
// intent compiles to, or how findings are printed.
package load

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Options says what to load.
type Options struct {
	// Dir is the folder that Paths are relative to, and that positions are shown
	// relative to. Empty means the working directory.
	Dir string `json:"dir,omitempty"`
	// Paths are folders, each read with every folder below it that holds CUE
	// files, or single .cue files.
	Paths []string `json:"paths"`
	// Tags are CUE's injection tags ("key=value"), as `cue -t` takes them.
	Tags []string `json:"tags,omitempty"`
	// AllowRegistry lets imports that are found nowhere else be fetched from
	// the module registry that the environment (CUE_REGISTRY) names.
	AllowRegistry bool `json:"allowRegistry,omitempty"`
	// Replace are texts that stand in the place of files, by their paths (relative to
	// Dir or absolute): what they would come to is judged before they are written. A
	// file need not be there, but its folder must.
	Replace map[string][]byte `json:"replace,omitempty"`
}

// MaxFile is how many bytes one file may have.
const MaxFile = 16 << 20

// Evaluate loads the folders and returns what they say together. If a finding is
// an error, the Placement is what can be judged in spite of it, to look for more
// findings and for nothing else; it is nil if that is nothing. The findings are
// sorted. A cancelled ctx
// ends the work between two folders, not within one.
func Evaluate(ctx context.Context, o Options) (*policy.Placement, diag.Findings) {
	return evaluate(ctx, o, func(string, bool) {})
}

// evaluate is Evaluate with a callback that is told which folder's evaluation
// begins (true) and ends (false). It may be called from several goroutines.
func evaluate(ctx context.Context, o Options, progress func(folder string, begins bool)) (*policy.Placement, diag.Findings) {
	shapes, err := schemaShapes()
	if err != nil {
		return nil, diag.Findings{{Rule: "input/schema", Severity: diag.Error, Message: err.Error()}}
	}
	set, findings := discover(o)
	if findings.HasErrors() {
		return nil, findings.Sort()
	}
	params, fs := sharedParams(ctx, set)
	if fs.HasErrors() {
		return nil, append(findings, fs...).Sort()
	}
	set.params = params

	results := make([]*result, len(set.folders))
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i, f := range set.folders {
		slots <- struct{}{}
		if ctx.Err() != nil {
			<-slots
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			progress(f.display, true)
			defer progress(f.display, false)
			results[i] = evaluateFolder(set, f, shapes)
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, diag.Findings{{
			Rule: "input/interrupted", Severity: diag.Error,
			Message: "loading the policies was interrupted: " + err.Error(),
		}}
	}

	placement, fs := merge(results)
	findings = append(findings, fs...)
	v := validate(placement)
	findings = append(findings, v.findings...).Sort()
	if findings.HasErrors() {
		return v.sound(findings), findings
	}
	return placement.Placement, slices.Clip(findings)
}
