// Package cli holds the commands of sched-sandbox: it turns a command line into
// calls of internal/sandbox, and prints what comes of them.
//
// It must not know how a control plane is put together.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-sched/kubectl-sched/internal/sandbox"
)

// Exit codes of sched-sandbox.
const (
	exitOK      = 0
	exitFailure = 2
)

// homeEnv names the folder under which sandboxes have their folders.
const homeEnv = "SCHED_SANDBOX_HOME"

// Main runs the command line args (without the program's name) and returns the
// exit code: 0, or 2 when something failed, which it has then printed.
func Main(args []string, in io.Reader, out, errs io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	root := newRoot()
	// Libraries of the control plane have flags of their own in the process's set,
	// which cobra offers under every command.
	pflag.CommandLine.VisitAll(func(f *pflag.Flag) { f.Hidden = true })
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	if err := root.ExecuteContext(ctx); err != nil {
		var code exitCode
		if errors.As(err, &code) {
			return int(code)
		}
		fmt.Fprintf(errs, "error: %v\n", err)
		return exitFailure
	}
	return exitOK
}

// place says which sandbox a command is about.
type place struct {
	name    string
	dataDir string
}

func (p *place) addFlags(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&p.name, "name", "sandbox", "name of the sandbox, and of its context in the kubeconfig")
	cmd.PersistentFlags().StringVar(&p.dataDir, "data-dir", "", "folder of the sandbox (default: one for each name under $"+homeEnv+", or else under the user's cache folder)")
}

// dir returns the folder of the sandbox.
func (p *place) dir() (string, error) {
	if p.dataDir != "" {
		return filepath.Abs(p.dataDir)
	}
	if problems := validation.IsDNS1123Label(p.name); len(problems) > 0 {
		return "", fmt.Errorf("--name %q: %s", p.name, problems[0])
	}
	if home := os.Getenv(homeEnv); home != "" {
		return filepath.Abs(filepath.Join(home, p.name))
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache folder (or say --data-dir): %w", err)
	}
	return filepath.Join(cache, "kubectl-sched", "sandbox", p.name), nil
}

// find returns the sandbox, which another process runs.
func (p *place) find() (*sandbox.Remote, error) {
	dir, err := p.dir()
	if err != nil {
		return nil, err
	}
	return sandbox.Find(dir)
}

func newRoot() *cobra.Command {
	var where place
	root := &cobra.Command{
		Use:   "sched-sandbox",
		Short: "Run a real Kubernetes control plane with fake nodes on this machine",
		Long: `sched-sandbox runs a real Kubernetes control plane on the loopback interface:
etcd, kube-apiserver, kube-controller-manager and kube-scheduler, unchanged, and
kwok, which plays the kubelets. Nodes are fake, as many as you like, of any shape;
pods are scheduled for real and then only said to run. It needs no container
runtime, no root rights and no network.

  sched-sandbox up --detach --nodes pools.yaml   start, with nodes
  export KUBECONFIG=$(sched-sandbox kubeconfig)
  sched-sandbox kubectl get nodes                kubectl comes with it
  sched-sandbox nodes -f pools.yaml              change the nodes
  sched-sandbox down                             end it and remove all of it

Several sandboxes run side by side under names of their own (--name).`,
		SilenceUsage:  true,
		SilenceErrors: true,
		// Otherwise what stands before the word kubectl would be taken for kubectl's.
		TraverseChildren: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q; \"sched-sandbox --help\" lists the commands", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return errors.Join(cmd.Help()) },
	}
	where.addFlags(root)
	for _, newCommand := range []func(*place) *cobra.Command{newUp, newDown, newKubeconfig, newNodes, newStatus, newKill, newStart, newKubectl} {
		root.AddCommand(newCommand(&where))
	}
	return root
}
