package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

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
		Long: "Write a folder with a first policy, and with a copy of the schema and the catalog, so that plain \"cue vet\"\n" +
			"and the CUE language server check it too. The folder is \"" + defaultPolicyFolder + "\" if none is given. Files that\n" +
			"exist are never overwritten; only --vendor renews the copy of the schema.",
		Example: "  # Start the folder ./placement\n" +
			"  kubectl sched init\n\n" +
			"  # After an upgrade of the plugin: renew the folder's copy of the schema\n" +
			"  kubectl sched init --vendor placement",
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: runE(func(args []string) (*initOptions, error) { return f.toOptions(a, args), nil }),
	}
	cmd.Flags().StringVar(&f.packageName, "package", "", "Name of the CUE package; made from the folder's name if not given")
	cmd.Flags().BoolVar(&f.vendor, "vendor", false, "Write nothing but the copy of the schema, in place of the one that is there")
	return cmd
}

type initOptions struct {
	out         io.Writer
	folder      string // as the user named it
	packageName string
	vendor      bool
}

func (f *initFlags) toOptions(a *app, args []string) *initOptions {
	o := &initOptions{out: a.Out, folder: defaultPolicyFolder, packageName: f.packageName, vendor: f.vendor}
	if len(args) == 1 {
		o.folder = args[0]
	}
	return o
}

// Validate implements options.
func (o *initOptions) Validate() error {
	if o.vendor && o.packageName != "" {
		return errors.New("--vendor writes no package; give it without --package")
	}
	return nil
}

// Run implements options.
func (o *initOptions) Run(context.Context) error {
	if o.vendor {
		written, err := load.Vendor(o.folder)
		if err == nil && len(written) == 0 {
			fmt.Fprintln(o.out, "the copy of the schema is current")
		}
		sayWritten(o.out, written)
		return err
	}
	written, err := load.Init(o.folder, load.InitOptions{Package: o.packageName, Vendor: true})
	sayWritten(o.out, written)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.out, "\nNext, edit %s, or take a ready-made policy into it:\n\n"+
		"  kubectl sched catalog list\n\n"+
		"Then see what it does to your manifests, or with --live to what runs:\n\n"+
		"  kubectl sched lint -p %s -f MANIFESTS\n  kubectl sched compile -p %[2]s -f MANIFESTS --diff\n",
		filepath.ToSlash(written[0]), o.folder)
	return err
}

// sayWritten names the files that were written. The copies that a module gets are named
// as one: nobody reads its files there.
func sayWritten(out io.Writer, written []string) {
	copies := map[string]int{}
	for _, name := range written {
		module, _, vendored := strings.Cut(filepath.ToSlash(name), "cue.mod/pkg/")
		if !vendored {
			fmt.Fprintln(out, "wrote", name)
			continue
		}
		copies[module+"cue.mod/pkg"]++
	}
	for _, dir := range slices.Sorted(maps.Keys(copies)) {
		fmt.Fprintf(out, "wrote %s: copies of the schema and the catalog (%s)\n", dir, count(copies[dir], "file", "files"))
	}
}
