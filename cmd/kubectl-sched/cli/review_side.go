package cli

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/internal/lint"
	"github.com/kubectl-sched/kubectl-sched/internal/review"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// side is the base or the head of a review.
type side struct {
	name string
	// root is the folder that stands for the repository, as this side has it.
	root string
	// app is the program's, but that it stands in the folder of this side.
	app      *app
	pipeline *pipeline
	// inPlace says that the files are those of the user's own folder, and not a copy
	// that lacks what is refused.
	inPlace bool
	// refused are the files that are not to be read, and why.
	refused map[string]string

	placement *policy.Placement
	set       *workload.Set
	findings  diag.Findings
	// all are the plans, of each cluster.
	all []clusterPlan
}

// side returns the side whose files are in the folder root. within is where in the
// repository the user stands, and repository its real folder.
func (o *reviewOptions) side(name, root, within, repository string) (*side, error) {
	a := *o.app
	a.texts, a.objects, a.findings, a.ignored, a.sinks = texts{}, nil, nil, nil, nil
	a.getwd = func() (string, error) { return filepath.Join(root, within), nil }
	s := &side{name: name, root: root, app: &a}
	move := func(flag string, paths []string) ([]string, error) {
		var out []string
		for _, p := range paths {
			full := p
			if !filepath.IsAbs(full) {
				full = filepath.Join(repository, within, p)
			}
			rel, err := filepath.Rel(repository, full)
			if err != nil || !filepath.IsLocal(rel) {
				return nil, usageError{fmt.Errorf("%s %s is not in the repository %s, so that no revision has it", flag, p, repository)}
			}
			out = append(out, filepath.Join(root, rel))
		}
		return out, nil
	}
	p := &pipeline{app: &a, policies: o.policies, manifests: o.manifests, judge: lint.Check, installing: true, surface: policy.Surface(o.flags.surface)}
	if o.flags.namespace != "" {
		p.config = a.newConfigFlags()
		p.config.Namespace = &o.flags.namespace
	}
	var err error
	if p.policies.paths, err = move("-p", o.policies.paths); err != nil {
		return nil, err
	}
	if p.manifests.input.Files, err = move("-f", o.manifests.input.Files); err != nil {
		return nil, err
	}
	if k := o.manifests.input.Kustomize; k != "" {
		folder, err := move("-k", []string{k})
		if err != nil {
			return nil, err
		}
		p.manifests.input.Kustomize = folder[0]
	}
	s.pipeline = p
	return s, nil
}

// absent drops the paths that this side does not have. A change may add the first
// policies of a repository, or take the last manifest away.
func (s *side) absent() {
	gone := func(p string) bool { return !there(p) && s.refused[s.rel(p)] == "" }
	p := s.pipeline
	p.policies.paths = slices.DeleteFunc(p.policies.paths, gone)
	p.manifests.input.Files = slices.DeleteFunc(p.manifests.input.Files, gone)
	if k := p.manifests.input.Kustomize; k != "" && gone(k) {
		p.manifests.input.Kustomize = ""
	}
}

// there reports whether there is a file or folder of that name.
func there(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// rel names a file relative to the repository, with slashes.
func (s *side) rel(file string) string {
	if rel, err := filepath.Rel(s.root, file); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return file
}

// at names a place relative to the repository.
func (s *side) at(r diag.Range) diag.Range {
	if r.Start.File != "" {
		r.Start.File = s.rel(r.Start.File)
	}
	if r.End.File != "" {
		r.End.File = s.rel(r.End.File)
	}
	return r
}

// load reads the policies and manifests. A path that the side does not have is no
// error where the other side has it.
func (s *side) load(ctx context.Context) {
	given := s.pipeline.manifests.given()
	s.absent()
	p := s.pipeline
	s.refusals()
	s.placement, s.set = &policy.Placement{}, &workload.Set{}
	if s.findings.HasErrors() && s.inPlace {
		// What is refused is there all the same, and would be read.
		p.policies.paths, p.manifests.input = nil, workload.Input{}
	}
	if len(p.policies.paths) > 0 {
		placement, findings := p.loadPlacement(ctx)
		s.findings = append(s.findings, findings...)
		if placement != nil {
			s.placement = placement
		}
	}
	p.placement = s.placement
	set, findings := p.readWorkloads(ctx, s.placement)
	s.set = set
	s.findings = append(s.findings, findings...)
	p.incomplete = s.findings.HasErrors()
	p.workloads = set.Workloads
	// Only who names no manifests at all means the workloads of the snapshot.
	p.live = !given
}

// refusals are findings about what was named and is not in the folder.
func (s *side) refusals() {
	named := slices.Concat(s.pipeline.policies.paths, s.pipeline.manifests.input.Files)
	if k := s.pipeline.manifests.input.Kustomize; k != "" {
		named = append(named, k)
	}
	for _, file := range slices.Sorted(maps.Keys(s.refused)) {
		if s.inPlace && (s.pipeline.manifests.input.Kustomize != "" || slices.Contains(strings.Split(file, "/"), "cue.mod")) {
			named = append(named, filepath.Join(s.root, filepath.FromSlash(file))) // it may be asked for from elsewhere
		}
		for _, n := range named {
			if rel := s.rel(n); rel == "." || rel == file || strings.HasPrefix(file, rel+"/") || strings.HasPrefix(rel, file+"/") {
				s.findings = append(s.findings, diag.Finding{
					Rule: "input/revision", Severity: diag.Error, Range: diag.At(diag.Pos{File: filepath.Join(s.root, filepath.FromSlash(path.Clean(file)))}),
					Message: "it is not read: " + s.refused[file],
				})
				break
			}
		}
	}
}

// compile compiles for the cluster, nil for the nameless; nothing where that cannot be
// done.
func (s *side) compile(ctx context.Context, target *policy.Cluster, from *snapshot.Snapshot) (review.Compilation, bool) {
	p := s.pipeline
	p.snapshot = from
	workloads := s.set.Workloads
	if p.live && from != nil {
		var findings diag.Findings
		workloads, findings = p.liveWorkloads(ctx, s.placement, target)
		s.findings = append(s.findings, findings...)
		p.workloads = append(p.workloads, workloads...)
		s.app.objects = append(s.app.objects, ignorable(workloads, nil)...)
	}
	plan, findings := p.compileFor(ctx, s.placement, target, workloads)
	s.findings = append(s.findings, findings...)
	if plan == nil {
		return review.Compilation{}, false
	}
	s.all = append(s.all, clusterPlan{Clusters: nameOf(target), Plan: plan, Surface: p.surfaceOf(target, policy.SurfaceRender), Workloads: workloads})
	return review.Compilation{Plan: plan, Workloads: workloads}, true
}

// broken reports whether the side does not compile.
func (s *side) broken() bool { return slices.ContainsFunc(s.findings, fatal()) }

// strip takes the folder out of a text.
func (s *side) strip(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, s.root+string(filepath.Separator), ""), s.root, ".")
}
