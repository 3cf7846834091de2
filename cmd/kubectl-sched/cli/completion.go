package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kubectl-sched/kubectl-sched/internal/completion"
)

func newCompletionCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "completion (install | bash | zsh | fish | powershell)",
		Short:   "Set up completion in the shell",
		GroupID: groupLook,
		Long: "kubectl completes plugins by asking a program called " + completion.Name + ". \"install\" writes\n" +
			"that program beside the plugin; then, with kubectl's own completion set up, pressing TAB\n" +
			"after \"kubectl sched\" completes verbs, flags, policies, clusters, sets and namespaces.\n\n" +
			"The names of shells print a script for the plugin's own name, kubectl-sched.",
		Example: "  # Make \"kubectl sched <TAB>\" work\n" +
			"  kubectl sched completion install\n\n" +
			"  # Complete \"kubectl-sched\" in this bash\n" +
			"  source <(kubectl sched completion bash)",
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		Args:      cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.Out, true)
			case "zsh":
				return root.GenZshCompletion(a.Out)
			case "fish":
				return root.GenFishCompletion(a.Out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.Out)
			}
			return usageError{fmt.Errorf("unknown shell %q; %s", args[0], didYouMean(args[0], cmd.ValidArgs))}
		},
	}
	cmd.AddCommand(newCompletionInstallCommand(a))
	return cmd
}

type completionInstallFlags struct{ dir string }

func newCompletionInstallCommand(a *app) *cobra.Command {
	f := &completionInstallFlags{}
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Write the program through which kubectl completes the plugin",
		Example: "  # Beside the plugin, where kubectl finds it\n" +
			"  kubectl sched completion install\n\n" +
			"  # Into another folder on the PATH\n" +
			"  kubectl sched completion install --dir ~/.local/bin",
		Args: cobra.NoArgs,
		RunE: runE(func([]string) (*completionInstallOptions, error) { return f.toOptions(a) }),
	}
	cmd.Flags().StringVar(&f.dir, "dir", "", "Folder on the PATH to write "+completion.Name+" to; the plugin's own if not given")
	return cmd
}

type completionInstallOptions struct {
	out, errOut io.Writer
	getenv      func(string) string
	dir         string
}

func (f *completionInstallFlags) toOptions(a *app) (*completionInstallOptions, error) {
	o := &completionInstallOptions{out: a.Out, errOut: a.ErrOut, getenv: a.getenv, dir: f.dir}
	if o.dir != "" {
		return o, nil
	}
	// krew links plugins into a folder on the PATH; that folder, not the one of
	// the plugin's files, is where kubectl looks.
	self, err := a.executable()
	if err != nil {
		return nil, fmt.Errorf("find the plugin's own folder: %w; give --dir", err)
	}
	o.dir = filepath.Dir(self)
	for _, dir := range filepath.SplitList(a.getenv("PATH")) {
		target, err := filepath.EvalSymlinks(filepath.Join(dir, filepath.Base(self)))
		if err == nil && target == evalOr(self) {
			o.dir = dir
			break
		}
	}
	return o, nil
}

// evalOr resolves symbolic links, or returns the path itself.
func evalOr(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}

// Validate implements options.
func (o *completionInstallOptions) Validate() error {
	if info, err := os.Stat(o.dir); err != nil || !info.IsDir() {
		return fmt.Errorf("--dir %q is not a folder", o.dir)
	}
	return nil
}

// Run implements options.
func (o *completionInstallOptions) Run(context.Context) error {
	name, text := completion.Shim(runtime.GOOS)
	path := filepath.Join(o.dir, name)
	if err := replaceFile(path, []byte(text), 0o755); err != nil {
		return fmt.Errorf("install the completion: %w", err)
	}
	fmt.Fprintf(o.out, "wrote %s\n", path)
	if !slices.Contains(filepath.SplitList(o.getenv("PATH")), o.dir) {
		warn(o.errOut, "%s is not on the PATH, so kubectl will not find it; give --dir", o.dir)
	}
	return nil
}
