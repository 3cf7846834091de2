package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-sched/kubectl-sched/internal/report"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

// newCatalogCommand returns the verbs about ready-made policies.
func newCatalogCommand(a *app) *cobra.Command {
	return newGroupCommand(&cobra.Command{
		Use:     "catalog",
		Short:   "Look through ready-made policies, and take one",
		GroupID: groupWrite,
		Long: "The catalog has ready-made policies with parameters, as a CUE package that documents import.\n" +
			"A company can have one of its own: any package of a CUE module with definitions like these,\n" +
			"which --from reads from a folder, or with --allow-registry from a registry. docs/catalog.md\n" +
			"says how.",
		Example: "  # What is there, and what is it for?\n" +
			"  kubectl sched catalog list\n" +
			"  kubectl sched catalog show web-service\n\n" +
			"  # Take it into the policies in ./placement\n" +
			"  kubectl sched catalog use web-service --name shop-web --set workloads.namespaces=shop",
	}, newCatalogListCommand(a), newCatalogShowCommand(a), newCatalogUseCommand(a))
}

// catalogFlags say which catalog is meant.
type catalogFlags struct {
	from          string
	allowRegistry bool
}

func (f *catalogFlags) addTo(cmd *cobra.Command, allowed string) {
	cmd.Flags().StringVar(&f.from, "from", "", "Another catalog: the folder of a package of a CUE module, or of one vendored below cue.mod/pkg; or, with --allow-registry, MODULE[@VERSION] in a registry")
	cmd.Flags().BoolVar(&f.allowRegistry, "allow-registry", false, allowed)
	if err := cmd.MarkFlagDirname("from"); err != nil {
		cmd.PrintErrln("completion:", err)
	}
}

// read returns the catalog that is meant. The version of one in a registry may be said by
// the module of the folder in.
func (f *catalogFlags) read(ctx context.Context, in string) (*load.Catalog, error) {
	if f.from == "" {
		return load.ReadCatalog()
	}
	if _, err := os.Stat(f.from); err == nil || !load.IsModulePath(f.from) {
		return load.ReadCatalogFrom(f.from)
	}
	if !f.allowRegistry {
		return nil, fmt.Errorf("read the catalog %s: there is no such folder, and modules are not downloaded; vendor it below cue.mod/pkg, or allow the registry with --allow-registry", f.from)
	}
	return load.FetchCatalog(ctx, f.from, in)
}

// readAlone is read for the verbs that load no policies, in which --allow-registry is about
// --from alone.
func (f *catalogFlags) readAlone(ctx context.Context, a *app) (*load.Catalog, error) {
	c, err := f.read(ctx, a.defaultPolicyPath())
	if err == nil && f.allowRegistry && c.Module == "" {
		return nil, errors.New("--allow-registry is for a catalog in a registry; name its module with --from")
	}
	return c, err
}

// completeEntries completes the name of an entry.
func (f *catalogFlags) completeEntries(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	c, err := f.read(cmd.Context(), ".")
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var found []string
	for _, e := range c.Entries {
		if strings.HasPrefix(e.Name, typed) {
			found = append(found, e.Name+"\t"+e.Summary)
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// documentedEntry is an entry as reports show it.
func documentedEntry(c *load.Catalog, e *load.Entry) report.CatalogEntry {
	d := report.CatalogEntry{
		Name: e.Name, Definition: c.Package + "." + e.Definition, Summary: e.Summary, Import: c.ImportPath, Doc: e.Doc,
	}
	for _, p := range e.Parameters {
		d.Parameters = append(d.Parameters, documented(p))
	}
	for _, r := range e.Results {
		d.Results = append(d.Results, report.CatalogResult{Name: r.Name, Section: r.Section})
	}
	if text, err := fs.ReadFile(c.Examples, path.Join(e.Name, load.ExampleFile)); err == nil {
		d.Example = string(text)
	}
	return d
}

// fetchFrom says what --allow-registry does to the verbs that load no policies.
const fetchFrom = "Fetch the module that --from names from a registry; otherwise nothing is fetched"

type catalogListFlags struct {
	catalogFlags
	output string
}

func newCatalogListCommand(a *app) *cobra.Command {
	f := &catalogListFlags{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the ready-made policies",
		Long:  "List the ready-made policies of the catalog, each with what a use of it makes and what it does.",
		Example: "  kubectl sched catalog list\n\n" +
			"  # Those of your company, vendored in this module\n" +
			"  kubectl sched catalog list --from cue.mod/pkg/company.example/placement\n\n" +
			"  # The same from a registry, which CUE_REGISTRY names\n" +
			"  kubectl sched catalog list --from company.example/placement --allow-registry",
		Args: cobra.NoArgs,
		RunE: runE(func([]string) (*catalogListOptions, error) { return f.toOptions(a) }),
	}
	f.addTo(cmd, fetchFrom)
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", "Format: text, json, yaml or name")
	completeValues(cmd, "output", []string{"text", "json", "yaml", "name"})
	return cmd
}

type catalogListOptions struct {
	app    *app
	flags  catalogFlags
	format report.Format
}

func (f *catalogListFlags) toOptions(a *app) (*catalogListOptions, error) {
	format, err := report.ParseFormat(f.output, report.Text, report.JSON, report.YAML, report.Name)
	return &catalogListOptions{app: a, flags: f.catalogFlags, format: format}, err
}

// Validate implements options.
func (o *catalogListOptions) Validate() error { return nil }

// Run implements options.
func (o *catalogListOptions) Run(ctx context.Context) error {
	c, err := o.flags.readAlone(ctx, o.app)
	if err != nil {
		return err
	}
	entries := make([]report.CatalogEntry, len(c.Entries))
	for i := range c.Entries {
		entries[i] = documentedEntry(c, &c.Entries[i])
	}
	return o.app.write(ctx, func(w io.Writer) error {
		return report.CatalogList(w, o.format, entries, o.app.reportOptions(w))
	})
}

func newCatalogShowCommand(a *app) *cobra.Command {
	f := &catalogListFlags{}
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Document a ready-made policy",
		Long: "Say what a ready-made policy is for and when not to take it, its parameters, an example, and what\n" +
			"the example compiles to for a workload.",
		Example:           "  kubectl sched catalog show spot-fallback",
		Args:              oneEntry,
		ValidArgsFunction: f.completeEntries,
		RunE:              runE(func(args []string) (*catalogShowOptions, error) { return f.toShowOptions(a, args) }),
	}
	f.addTo(cmd, fetchFrom)
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", "Format: text, json or yaml")
	completeValues(cmd, "output", []string{"text", "json", "yaml"})
	return cmd
}

// oneEntry holds that the arguments begin with the name of an entry.
func oneEntry(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return usageError{errors.New("name an entry; \"kubectl sched catalog list\" lists them")}
	case len(args) > 1:
		return usageError{fmt.Errorf("name one entry, not %d", len(args))}
	}
	return nil
}

type catalogShowOptions struct {
	app   *app
	flags catalogFlags
	name  string
	// catalog and entry are what is meant.
	catalog *load.Catalog
	entry   *load.Entry
	format  report.Format
}

func (f *catalogListFlags) toShowOptions(a *app, args []string) (*catalogShowOptions, error) {
	format, err := report.ParseFormat(f.output, report.Text, report.JSON, report.YAML)
	if err != nil {
		return nil, err
	}
	return &catalogShowOptions{app: a, flags: f.catalogFlags, name: args[0], format: format}, nil
}

// Validate implements options.
func (o *catalogShowOptions) Validate() error { return nil }

// Run implements options.
func (o *catalogShowOptions) Run(ctx context.Context) (err error) {
	if o.catalog, err = o.flags.readAlone(ctx, o.app); err == nil {
		o.entry, err = o.catalog.Entry(o.name)
	}
	if err != nil {
		return usageError{err}
	}
	entry := documentedEntry(o.catalog, o.entry)
	var plans []report.Plan
	options := o.app.reportOptions(o.app.Out)
	if entry.Example != "" && o.format == report.Text {
		// The example is read as any document is: from a folder.
		var dir string
		if dir, err = os.MkdirTemp("", "kubectl-sched-catalog-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		if plans, err = o.compiled(ctx, dir); err != nil {
			return err
		}
		options.Dir = dir
	}
	return o.app.write(ctx, func(w io.Writer) error {
		return report.CatalogShow(w, o.format, entry, plans, options)
	})
}

// compiled compiles a copy of the example below dir; nil if there are no workloads
// beside it.
func (o *catalogShowOptions) compiled(ctx context.Context, dir string) ([]report.Plan, error) {
	folder, err := o.catalog.CopyExample(dir, o.entry)
	if err != nil {
		return nil, err
	}
	manifests := filepath.Join(folder, load.ExampleManifests)
	if _, err := os.Stat(manifests); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	p := &pipeline{
		app: o.app, policies: defaultPolicies(folder),
		manifests: manifestOptions{input: workload.Input{Files: []string{manifests}, Recursive: true}},
	}
	p.policies.allowRegistry = o.flags.allowRegistry
	plans, findings, err := p.compilePlans(ctx)
	if err != nil {
		return nil, err
	}
	if findings.HasErrors() {
		// The rest is worth showing all the same.
		warn(o.app.ErrOut, "the example of %s cannot be compiled: %v", o.entry.Name, findings)
		return nil, nil
	}
	list := make([]report.Plan, len(plans))
	for i, c := range plans {
		list[i] = report.Plan{Clusters: c.Clusters, Plan: c.Plan}
	}
	return list, nil
}
