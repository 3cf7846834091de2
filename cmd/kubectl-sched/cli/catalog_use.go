package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/kubectl-sched/kubectl-sched/compiler/emit"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
	"github.com/kubectl-sched/kubectl-sched/policy/load/take"
)

type catalogUseFlags struct {
	catalogFlags
	name   string
	set    []string
	dryRun bool
}

func newCatalogUseCommand(a *app) *cobra.Command {
	f := &catalogUseFlags{}
	cmd := &cobra.Command{
		Use:   "use NAME [FILE|FOLDER]",
		Short: "Write a ready-made policy into your policies",
		Long: "Write the few lines that take a ready-made policy into a file of policies, with the import, and\n" +
			"show them as a diff. Nothing else in the file changes. Without a file it is the one in\n" +
			"./" + defaultPolicyFolder + " that has policies, or a new one.\n\n" +
			"--set sets parameters, \"catalog show\" lists them. A required one that is not set gets a\n" +
			"placeholder, which is an error until it is filled in. What would be wrong is not written.\n\n" +
			"Of a catalog in a registry (--from, --allow-registry) the version is written into the module's\n" +
			"cue.mod/module.cue too: the one that is named, else the one that is there, else the newest.",
		Example: "  # Two replicas never alone in a zone, for the web tier of the shop\n" +
			"  kubectl sched catalog use web-service --name shop-web \\\n" +
			"    --set workloads.namespaces=shop --set workloads.pods.labels.tier=web --set zones=3\n\n" +
			"  # See what would be written\n" +
			"  kubectl sched catalog use tenant-pool --name speech placement/tenants.cue --dry-run",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				args = args[:1] // the other is where to write it
			}
			return oneEntry(cmd, args)
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return []string{"cue"}, cobra.ShellCompDirectiveFilterFileExt
			}
			return f.completeEntries(cmd, args, typed)
		},
		RunE: runE(func(args []string) (*catalogUseOptions, error) { return f.toOptions(a, args), nil }),
	}
	f.addTo(cmd, "Fetch CUE modules that the policies import, or that --from names, from a registry; otherwise nothing is fetched")
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "", "Name of the policy that comes of it (default: the entry's name)")
	flags.StringArrayVar(&f.set, "set", nil, "Parameter to set, as key=value; dots lead inside, the value may be CUE. May be given several times")
	flags.BoolVar(&f.dryRun, "dry-run", false, "Show what would be written, and write nothing")
	complete(cmd, "set", f.completeParameters)
	return cmd
}

// completeParameters completes the key of --set.
func (f *catalogUseFlags) completeParameters(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	c, err := f.read(cmd.Context(), ".")
	if err != nil || len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	entry, err := c.Entry(args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []string
	for _, p := range entry.Parameters {
		if strings.HasPrefix(p.Path, typed) {
			found = append(found, p.Path+"=\t"+p.Doc)
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

type catalogUseOptions struct {
	app    *app
	flags  catalogFlags
	name   string // of the entry
	take   take.Request
	target string // a file or folder as the user named it
	dryRun bool
}

func (f *catalogUseFlags) toOptions(a *app, args []string) *catalogUseOptions {
	o := &catalogUseOptions{
		app: a, flags: f.catalogFlags, name: args[0], dryRun: f.dryRun,
		take: take.Request{Name: f.name, Set: f.set},
	}
	if o.target = a.defaultPolicyPath(); o.target == "." {
		if found, err := filepath.Glob("*.cue"); err != nil || len(found) == 0 {
			o.target = defaultPolicyFolder
		}
	}
	if len(args) == 2 {
		o.target = args[1]
	}
	return o
}

// Validate implements options.
func (o *catalogUseOptions) Validate() error { return nil }

// Run implements options.
func (o *catalogUseOptions) Run(ctx context.Context) error {
	file, err := o.file(ctx)
	if err != nil {
		return err
	}
	folder := filepath.Dir(file)
	if o.take.Catalog, err = o.flags.read(ctx, folder); err == nil {
		o.take.Entry, err = o.take.Catalog.Entry(o.name)
	}
	if err != nil {
		return usageError{err}
	}
	if o.take.Name == "" {
		o.take.Name = o.take.Entry.Name
	}
	before, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var module emit.File
	if module.Name, module.Before, module.After, err = o.take.Catalog.Required(folder); err != nil {
		return fmt.Errorf("use %s: %w", o.take.Entry.Name, err)
	}
	o.take.Text = before
	if o.take.Others, o.take.Package, err = o.others(ctx, folder, file); err != nil {
		return err
	}
	taken, err := take.Into(o.take)
	if err != nil {
		return fmt.Errorf("use %s: %w", o.take.Entry.Name, err)
	}
	lines := emit.File{Name: file, Before: before, After: taken.Text}
	if err := o.judge(ctx, lines, module, taken); err != nil {
		return err
	}
	for _, f := range []emit.File{lines, module} {
		old := f.Name + ".orig"
		if f.Before == nil {
			old = "/dev/null"
		}
		if _, err := o.app.Out.Write(diff.Diff(filepath.ToSlash(old), f.Before, filepath.ToSlash(f.Name), f.After)); err != nil {
			return err
		}
	}
	if !o.dryRun {
		if err := o.write(ctx, lines, module); err != nil {
			return err
		}
	}
	return o.say(file, module, taken)
}

// file returns the file that the lines go into.
func (o *catalogUseOptions) file(ctx context.Context) (string, error) {
	target := filepath.Clean(o.target)
	info, err := os.Stat(target)
	switch {
	case filepath.Ext(target) == ".cue":
		if err == nil && info.IsDir() {
			return "", fmt.Errorf("%s is a folder", o.target)
		}
		return target, nil
	case err == nil && !info.IsDir():
		return "", fmt.Errorf("%s is not a folder and not a .cue file", o.target)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	var all, declaring []string
	for _, s := range load.Sources(ctx, load.Options{Paths: []string{target}}) {
		if filepath.Dir(filepath.FromSlash(s.File)) != target {
			continue
		}
		all = append(all, s.File)
		if declaresPolicies(s.Data) {
			declaring = append(declaring, s.File)
		}
	}
	usual := filepath.Join(target, "placement.cue")
	switch {
	case len(declaring) == 1:
		return filepath.FromSlash(declaring[0]), nil
	case len(all) == 0 || slices.Contains(all, filepath.ToSlash(usual)):
		return usual, nil
	case len(declaring) > 1:
		return "", fmt.Errorf("several files of %s have policies (%s); name the one that is meant", o.target, strings.Join(declaring, ", "))
	}
	return usual, nil
}

// declaresPolicies reports whether a line of a file begins with the field policies.
func declaresPolicies(text []byte) bool {
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("policies:")) && !bytes.HasPrefix(line, []byte("policies: [")) {
			return true
		}
	}
	return false
}

// others returns the texts of the folder's other files, and the package that a new file
// is of.
func (o *catalogUseOptions) others(ctx context.Context, folder, file string) (texts [][]byte, pkg string, err error) {
	if _, err := os.Stat(folder); err == nil {
		for _, s := range load.Sources(ctx, load.Options{Paths: []string{folder}}) {
			name := filepath.FromSlash(s.File)
			if name == file || filepath.Dir(name) != folder {
				continue
			}
			texts = append(texts, s.Data)
			if pkg == "" {
				pkg = load.PackageOf(s.Data)
			}
		}
	}
	if pkg == "" {
		if pkg, err = load.PackageName(folder); err != nil {
			return nil, "", err
		}
	}
	return texts, pkg, nil
}

// judge loads the policies with the lines in them, and returns what is wrong with them
// that was not before. Placeholders are meant to be wrong.
func (o *catalogUseOptions) judge(ctx context.Context, lines, module emit.File, taken *take.Taken) (err error) {
	file := lines.Name
	folder := filepath.Dir(file)
	policies := defaultPolicies(folder)
	policies.allowRegistry = o.flags.allowRegistry
	before := policies
	policies.replace = map[string][]byte{file: taken.Text}
	if module.Changed() {
		policies.replace[module.Name] = module.After
	}
	known := map[string]bool{}
	if _, err := os.Stat(folder); err != nil {
		// There is no folder yet: it is judged as if it were elsewhere.
		var dir string
		if dir, err = os.MkdirTemp("", "kubectl-sched-catalog-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		policies.paths, policies.replace = []string{dir}, map[string][]byte{filepath.Join(dir, filepath.Base(file)): taken.Text}
	} else {
		_, findings := o.app.load(ctx, before)
		for _, f := range findings {
			known[f.Rule+f.Message] = true
		}
	}
	_, findings := o.app.load(ctx, policies)
	findings = slices.DeleteFunc(findings, func(f diag.Finding) bool {
		return f.Severity != diag.Error || known[f.Rule+f.Message] || len(taken.Missing) > 0 && f.Rule == "policy/incomplete"
	})
	if len(findings) == 0 {
		return nil
	}
	shown := filepath.ToSlash(file)
	for i := range findings {
		if filepath.Base(findings[i].Range.Start.File) == filepath.Base(file) {
			findings[i].Range.Start.File = shown
			if findings[i].Range.End.File != "" {
				findings[i].Range.End.File = shown
			}
		}
	}
	o.app.texts[shown] = taken.Text
	o.app.complain("error: use %s: nothing is written, since this would be wrong:", o.take.Entry.Name)
	return findings
}

// write puts the texts into the files, that of the module first: without it the lines
// would be wrong.
func (o *catalogUseOptions) write(ctx context.Context, lines, module emit.File) error {
	dir, err := o.app.getwd()
	if err != nil {
		return err
	}
	edits := []emit.File{module}
	if lines.Before != nil {
		edits = append(edits, lines)
	}
	for i, f := range edits {
		if f.Path = f.Name; !filepath.IsAbs(f.Path) {
			f.Path = filepath.Join(dir, f.Path)
		}
		f.Root = rootFor(dir, f.Path)
		edits[i] = f
	}
	if err := emit.Replace(ctx, emit.OS{}, edits); err != nil {
		return notWritten(ctx, err)
	}
	if lines.Before != nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(lines.Name), 0o755); err != nil {
		return err
	}
	return replaceFile(lines.Name, lines.After, 0o644)
}

// say says what was written, and what is left to do.
func (o *catalogUseOptions) say(file string, module emit.File, taken *take.Taken) error {
	verb := "wrote"
	if o.dryRun {
		verb = "would write"
	}
	shown := filepath.ToSlash(file)
	fmt.Fprintf(o.app.Out, "%s lines %d to %d of %s\n", verb, taken.First, taken.Last, shown)
	if module.Changed() {
		o.app.say(o.app.Out, "%s %s %s into %s", verb, o.take.Catalog.Module, o.take.Catalog.Version, filepath.ToSlash(module.Name))
	}
	for _, pool := range taken.Kept {
		o.app.say(o.app.Out, "pool %q is there already, and is used as it is", pool)
	}
	if len(taken.Missing) > 0 {
		fmt.Fprintln(o.app.Out, "\nTo fill in, an error until then:")
	}
	for _, p := range taken.Missing {
		o.app.say(o.app.Out, "  %s: %s", p.Path, strings.TrimPrefix(p.Doc, p.Path+" "))
	}
	if o.dryRun {
		return nil
	}
	next := "kubectl sched lint -p " + filepath.ToSlash(filepath.Dir(file))
	if o.take.Catalog.Module != "" {
		next += " --allow-registry"
	}
	_, err := fmt.Fprintf(o.app.Out, "\nNext: %s\n", next)
	return err
}
