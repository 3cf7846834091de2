package cli

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/kubectl-sched/kubectl-sched/internal/lint"
	"github.com/kubectl-sched/kubectl-sched/internal/lint/suppress"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

// knownRules are the names of all rules.
func knownRules() []string {
	rules := lint.Documented()
	names := make([]string, len(rules))
	for i, r := range rules {
		names[i] = r.ID
	}
	return names
}

// fatal returns whether a finding stops compile and apply: an error of anything but
// the rules that lint alone runs.
func fatal() func(diag.Finding) bool {
	own := map[string]bool{}
	for _, r := range lint.Rules() {
		own[r.ID] = true
	}
	return func(f diag.Finding) bool { return f.Severity == diag.Error && !own[f.Rule] }
}

// withoutIgnored takes away what the files that the findings are in, or the objects
// that they are about, say is to be ignored. What is wrong with that lint says.
func (a *app) withoutIgnored(findings diag.Findings) diag.Findings {
	source := a.texts.source()
	var ignores []suppress.Ignore
	read := map[string]bool{"": true}
	for _, f := range findings {
		file := f.Range.Start.File
		if read[file] {
			continue
		}
		read[file] = true
		if data, ok := source(file); ok {
			list, _ := ignoresIn(file, data)
			ignores = append(ignores, list...)
		}
	}
	for _, o := range a.objects {
		list, _ := suppress.Of(o)
		ignores = append(ignores, list...)
	}
	if len(ignores) == 0 {
		return findings
	}
	var known []string
	for _, i := range ignores {
		known = append(known, i.Rule)
	}
	left, _ := suppress.Apply(findings, ignores, suppress.Rules{Known: known, Fatal: fatal(), Ran: func(string) bool { return false }})
	return slices.DeleteFunc(left, func(f diag.Finding) bool { return f.Rule == suppress.Impossible })
}

func ignoresIn(file string, data []byte) ([]suppress.Ignore, diag.Findings) {
	if filepath.Ext(file) == ".cue" {
		return suppress.CUE(file, data)
	}
	return suppress.YAML(file, data)
}

// ignores returns everything that the policies, the manifests and their objects say is
// to be ignored, and the files that were looked at.
func (p *pipeline) ignores(ctx context.Context, findings diag.Findings) (all []suppress.Ignore, files map[string]bool, problems diag.Findings) {
	files = map[string]bool{}
	add := func(ignores []suppress.Ignore, fs diag.Findings) {
		all, problems = append(all, ignores...), append(problems, fs...)
	}
	for _, s := range load.Sources(ctx, load.Options{Paths: p.policies.paths}) {
		files[s.File] = true
		add(suppress.CUE(s.File, s.Data))
	}
	if p.set != nil {
		for _, f := range p.set.Files {
			files[f.Name] = true
			if f.Mode != 0 || f.Name == stdinName { // not what a kustomization rendered
				add(suppress.YAML(f.Name, f.Data))
			}
		}
	}
	// A policy has parts in the folders above, too.
	source := p.app.texts.source()
	for _, f := range findings {
		if file := f.Range.Start.File; filepath.Ext(file) == ".cue" && !files[file] {
			files[file] = true
			if data, ok := source(file); ok {
				add(suppress.CUE(file, data))
			}
		}
	}
	for _, o := range p.app.objects {
		add(suppress.Of(o))
	}
	return all, files, problems
}

// ignorable are the objects whose annotations may ignore findings.
func ignorable(workloads []*workload.Workload, others []*workload.Object) []suppress.Object {
	var out []suppress.Object
	for _, w := range workloads {
		if _, ok := w.Annotations[suppress.Annotation]; ok {
			out = append(out, suppress.Object{
				Ref: w.Ref(), Annotations: w.Annotations, Range: w.Source.At(), At: w.Source.At("metadata", "annotations", suppress.Annotation),
			})
		}
	}
	for _, o := range others {
		value, _ := workload.Lookup(o.Object, "metadata", "annotations", suppress.Annotation)
		text, ok := value.(string)
		if !ok {
			continue
		}
		ref := o.Kind + " " + o.Name
		if o.Namespace != "" {
			ref = o.Kind + " " + o.Namespace + "/" + o.Name
		}
		out = append(out, suppress.Object{
			Ref: ref, Annotations: map[string]string{suppress.Annotation: text}, Range: o.Source.At(), At: o.Source.At("metadata", "annotations", suppress.Annotation),
		})
	}
	return out
}
