package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

type initFlags struct {
	packageName string
	vendor      bool
}

func newInitCommand(a *app) *cobra.Command {
	f := &initFlags{}
	cmd := &cobra.Command{
		Use:     "init [FOLDER]",
		Short:   "Start a folder of policies",
		GroupID: groupWrite,
		Long: "Write a folder with a first policy, and with a copy of the schema, so that plain \"cue vet\"\n" +
			"and the CUE language server check it too. The folder is \"" + defaultPolicyFolder + "\" if none is given. Files that\n" +
			"exist are never overwritten; only --vendor renews the copy of the schema in a folder.",
		Example: "  # Start the folder ./placement\n" +
			"  kubectl sched init\n\n" +
			"  # After an upgrade of the plugin: renew the folder's copy of the schema\n" +
			"  kubectl sched init --vendor placement",
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: runE(func(args []string) (*initOptions, error) { return f.toOptions(a, args) }),
	}
	cmd.Flags().StringVar(&f.packageName, "package", "", "Name of the CUE package; made from the folder's name if not given")
	cmd.Flags().BoolVar(&f.vendor, "vendor", false, "Write nothing but the copy of the schema, and replace the one that is there")
	return cmd
}

type initOptions struct {
	out    io.Writer
	folder string // as the user named it
	module string // absolute root of the CUE module that the schema goes into
	// newModule says that the module is ours to make.
	newModule   bool
	packageName string
	vendor      bool
}

func (f *initFlags) toOptions(a *app, args []string) (*initOptions, error) {
	o := &initOptions{out: a.Out, folder: defaultPolicyFolder, vendor: f.vendor}
	if len(args) == 1 {
		o.folder = args[0]
	}
	dir, err := a.getwd()
	if err != nil {
		return nil, err
	}
	abs := o.folder
	if !filepath.IsAbs(abs) {
		abs = filepath.Join(dir, abs)
	}
	root, found := load.ModuleRoot(abs)
	o.module, o.newModule = root, !found
	if !found {
		o.module = abs
	}
	o.packageName = f.packageName
	if o.packageName == "" {
		o.packageName = packageNameOf(abs)
	}
	return o, nil
}

var (
	notInName   = regexp.MustCompile(`[^a-z0-9_]+`)
	packageName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_]*$`)
)

// packageNameOf makes a package name of a folder's.
func packageNameOf(folder string) string {
	name := strings.Trim(notInName.ReplaceAllString(strings.ToLower(filepath.Base(folder)), "_"), "_")
	if !packageName.MatchString(name) {
		return defaultPolicyFolder
	}
	return name
}

// Validate implements options.
func (o *initOptions) Validate() error {
	if !packageName.MatchString(o.packageName) {
		return fmt.Errorf("--package %q is not a name for a CUE package: letters, digits and \"_\", beginning with a letter", o.packageName)
	}
	return nil
}

// starter is the first document. It must be free of findings.
const starter = `// Where the pods of our workloads may run. "kubectl sched explain" documents
// every field; "kubectl sched lint" checks this folder.
package %s

import "github.com/kubectl-sched/kubectl-sched/policy"

// With these lines plain "cue vet" and the editor check every field as well.
clusters: [string]: policy.#Cluster
pools: [string]:    policy.#Pool
policies: [string]: policy.#Policy

// A policy says which workloads it is for, and what it wants for their pods.
policies: {
	// The replicas of each Deployment stand in different zones where that is
	// possible. "require" in place of "prefer" makes it binding.
	"spread-over-zones": {
		workloads: {
			namespaces: ["default"]
			kinds: ["apps/Deployment"]
		}
		spread: zone: strength: "prefer"
	}
}
`

// Run implements options.
func (o *initOptions) Run(context.Context) error {
	files, err := o.files()
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(files))
	if err := o.refuseToOverwrite(names); err != nil {
		return err
	}
	for _, name := range names {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return fmt.Errorf("make the folder: %w", err)
		}
		if err := replaceFile(name, files[name], 0o644); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		fmt.Fprintf(o.out, "wrote %s\n", o.show(name))
	}
	if o.vendor {
		return nil
	}
	_, err = fmt.Fprintf(o.out, "\nNext, edit %s, and see what it does to your manifests:\n\n"+
		"  kubectl sched lint -p %s -f MANIFESTS\n  kubectl sched compile -p %[2]s -f MANIFESTS --diff\n",
		filepath.Join(o.folder, starterFile), o.folder)
	return err
}

// starterFile is the file of the first document.
const starterFile = "placement.cue"

// files returns what is to be written, by absolute name.
func (o *initOptions) files() (map[string][]byte, error) {
	vendored, err := load.Vendored()
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for name, data := range vendored {
		files[filepath.Join(o.module, filepath.FromSlash(name))] = data
	}
	if o.newModule {
		name, data := load.ModuleFile("placement.local/" + strings.ReplaceAll(o.packageName, "_", "-") + "@v0")
		files[filepath.Join(o.module, filepath.FromSlash(name))] = data
	}
	if !o.vendor {
		files[o.abs(starterFile)] = fmt.Appendf(nil, starter, o.packageName)
	}
	return files, nil
}

// abs is the absolute name of a file in the folder.
func (o *initOptions) abs(name string) string {
	path := filepath.Join(o.folder, name)
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// show names a file as the user would.
func (o *initOptions) show(name string) string {
	if rel, err := filepath.Rel(o.abs("."), name); err == nil {
		return filepath.Join(o.folder, rel)
	}
	return name
}

// refuseToOverwrite is an error if any of the files exists, other than the copy
// of the schema, which is not the user's.
func (o *initOptions) refuseToOverwrite(names []string) error {
	vendored := filepath.Join(o.module, "cue.mod", "pkg", filepath.FromSlash(policy.ModulePath))
	for _, name := range names {
		if rel, err := filepath.Rel(vendored, name); err == nil && filepath.IsLocal(rel) {
			continue
		}
		_, err := os.Lstat(name)
		if err == nil {
			return fmt.Errorf("%s exists already; nothing was written (--vendor renews the copy of the schema alone)", o.show(name))
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if o.vendor {
		if info, err := os.Stat(o.folder); err != nil || !info.IsDir() {
			return fmt.Errorf("--vendor: there is no folder %s; run \"kubectl sched init %[1]s\"", o.folder)
		}
		return nil
	}
	// A folder that has policies needs no first one.
	entries, err := os.ReadDir(o.folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".cue" {
			return fmt.Errorf("%s has policies already (%s); nothing was written (--vendor adds a copy of the schema)", o.folder, e.Name())
		}
	}
	return nil
}
