package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/kubectl-sched/kubectl-sched/internal/lint"
	"github.com/kubectl-sched/kubectl-sched/internal/lint/baseline"
	"github.com/kubectl-sched/kubectl-sched/internal/lint/fingerprint"
	"github.com/kubectl-sched/kubectl-sched/internal/lint/settings"
	"github.com/kubectl-sched/kubectl-sched/internal/lint/suppress"
	"github.com/kubectl-sched/kubectl-sched/internal/report"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// triageFlags say what becomes of findings.
type triageFlags struct {
	severity                []string
	baseline, writeBaseline string
}

func (f *triageFlags) addTo(flags *pflag.FlagSet) {
	f.addReading(flags)
	flags.StringVar(&f.writeBaseline, "write-baseline", "", "Write all findings that there are to this file, as known from now on")
}

// addReading adds the flags of commands that write no baseline.
func (f *triageFlags) addReading(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.severity, "severity", nil, "`RULE=SEVERITY` for the findings of a rule: error, warning, info or off; also in "+settings.FileName)
	flags.StringVar(&f.baseline, "baseline", "", "File with the findings that are known and not reported again; also in "+settings.FileName)
}

// triage is what becomes of findings. It is in the order in which it is done: what is
// ignored goes first, then severities are set, then goes what is known.
type triage struct {
	app      *app
	settings settings.Settings
	baseline *baseline.Baseline
	// write is the baseline file to write; empty for none.
	write string
	// fatal picks the errors that stay what they are.
	fatal func(diag.Finding) bool
}

// triaged is what is left of findings, and how many are not.
type triaged struct {
	findings diag.Findings
	ignored  []diag.Ignored
	known    int
}

func (f *triageFlags) validate() error {
	if f.baseline != "" && f.writeBaseline != "" {
		return errors.New("give --baseline or --write-baseline, not both: a baseline is written whole")
	}
	return nil
}

// toOptions reads the settings file, the flags, which stand over it, and the baseline.
// The findings are about the files; an error is about the flags.
func (f *triageFlags) toOptions(a *app) (*triage, diag.Findings, error) {
	t := &triage{app: a, write: f.writeBaseline, fatal: fatal(), settings: settings.Settings{Severity: map[string]settings.Override{}}}
	known := f.baseline
	dir, err := a.getwd()
	if err != nil {
		return nil, nil, err
	}
	if file, ok := settings.Find(dir); ok {
		if relative, err := filepath.Rel(dir, file); err == nil {
			file = relative // as somebody would name it who stands here
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, nil, err
		}
		var findings diag.Findings
		if t.settings, findings = settings.Parse(file, data, knownRules()); findings.HasErrors() {
			return t, findings, nil
		}
		if known == "" && t.settings.Baseline != "" {
			known = filepath.Join(filepath.Dir(file), t.settings.Baseline)
		}
	}
	for _, text := range f.severity {
		rule, o, err := settings.Flag(text, knownRules())
		if err != nil {
			return nil, nil, fmt.Errorf("--severity: %w", err)
		}
		t.settings.Severity[rule] = o
	}
	if known == "" || t.write != "" {
		return t, nil, nil
	}
	data, err := readBaseline(known)
	if err != nil {
		return t, diag.Findings{{
			Rule: "input/baseline", Severity: diag.Error, Range: diag.At(diag.Pos{File: known}),
			Message: fmt.Sprintf("the baseline cannot be read: %v; write it with --write-baseline", err),
		}}, nil
	}
	var findings diag.Findings
	t.baseline, findings = baseline.Parse(known, data)
	return t, findings, nil
}

func readBaseline(file string) ([]byte, error) {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, errors.New("there is no such file")
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no file")
	case info.Size() > baseline.MaxFile:
		return nil, fmt.Errorf("it has more than %d bytes", baseline.MaxFile)
	}
	return os.ReadFile(file)
}

// sort does with the findings of a pipeline what is to be done.
func (t *triage) sort(ctx context.Context, p *pipeline, findings diag.Findings) (triaged, error) {
	ignores, files, problems := p.ignores(ctx, findings)
	ran := p.ran()
	left, ignored := suppress.Apply(findings, ignores, suppress.Rules{Known: knownRules(), Fatal: t.fatal, Ran: ran})
	left = t.settings.Apply(append(left, problems...), t.fatal)
	ignored = t.settled(ignored)
	out := triaged{findings: left, ignored: ignored}
	o := t.app.reportOptions(t.app.Out)
	prints := fingerprint.Of(left, fingerprint.Sources{Name: o.Name, Read: o.Source})
	switch {
	case t.write != "":
		return t.remember(left, prints, o, out)
	case t.baseline != nil:
		names := map[string]bool{}
		for file := range files {
			names[o.Name(file)] = true
		}
		open, theirs, stay := t.split(left, prints)
		open, out.known = t.baseline.Apply(open, theirs, func(e baseline.Entry) bool {
			return ran(e.Rule) && (e.File == "" || names[e.File] || isGone(e.File, o))
		})
		out.findings = append(open, stay...).Sort()
	}
	return out, nil
}

// settled returns the ignored findings as severe as the settings have them, without those
// of rules that are off.
func (t *triage) settled(ignored []diag.Ignored) []diag.Ignored {
	var out []diag.Ignored
	for _, i := range ignored {
		for _, f := range t.settings.Apply(diag.Findings{i.Finding}, t.fatal) {
			i.Finding = f
			out = append(out, i)
		}
	}
	return out
}

// split divides findings, with their prints, from those that are fatal, which no
// baseline knows.
func (t *triage) split(findings diag.Findings, prints []fingerprint.Print) (open diag.Findings, theirs []fingerprint.Print, stay diag.Findings) {
	for i, f := range findings {
		if t.fatal(f) {
			stay = append(stay, f)
			continue
		}
		open, theirs = append(open, f), append(theirs, prints[i])
	}
	return open, theirs, stay
}

// remember writes the baseline. What stops compile and apply is left, and reported.
func (t *triage) remember(findings diag.Findings, prints []fingerprint.Print, o report.Options, out triaged) (triaged, error) {
	open, theirs, stay := t.split(findings, prints)
	b := baseline.New(open, theirs, o.Name)
	data, err := b.Encode()
	if err != nil {
		return out, err
	}
	if err := replaceFile(t.write, data, 0o644); err != nil {
		return out, err
	}
	fmt.Fprintf(t.app.ErrOut, "%s written to %s\n", count(b.Len(), "finding", "findings"), t.write)
	out.findings, out.known = stay, b.Len()
	return out, nil
}

// isGone reports whether a file that a baseline names, relative to the repository, does
// not exist any more.
func isGone(name string, o report.Options) bool {
	base := o.Repository
	if base == "" {
		base = o.Dir
	}
	path := filepath.FromSlash(name)
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	_, err := os.Stat(path)
	return errors.Is(err, os.ErrNotExist)
}

// ran returns a function that reports whether a rule had all that it needs, over all
// clusters: only then does it mean something that it found nothing.
func (p *pipeline) ran() func(rule string) bool {
	ran := map[string]bool{}
	workloads := p.live || p.manifests.given()
	cluster := p.snapshot != nil || p.withCluster
	for _, r := range lint.Documented() {
		// What is found elsewhere than by the rules of lint may need anything.
		ran[r.ID] = p.complete && workloads && cluster
		if r.Needs == lint.Files {
			ran[r.ID] = p.complete && (workloads || r.Area() == "policy")
		}
	}
	return func(rule string) bool { return ran[rule] }
}

// said is how many findings are not shown, and why; empty for none.
func (t triaged) said() string {
	switch {
	case len(t.ignored) > 0 && t.known > 0:
		return fmt.Sprintf("%d ignored, %d in the baseline", len(t.ignored), t.known)
	case len(t.ignored) > 0:
		return fmt.Sprintf("%d ignored", len(t.ignored))
	case t.known > 0:
		return fmt.Sprintf("%d in the baseline", t.known)
	}
	return ""
}
