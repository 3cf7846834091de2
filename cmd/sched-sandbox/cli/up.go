package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/kubectl-sched/kubectl-sched/internal/sandbox"
)

// readyEnv tells a detached supervisor that its file descriptor 3 waits for the
// word that it is ready.
const readyEnv = "SCHED_SANDBOX_READY"

// upFlags mirrors the command line of up.
type upFlags struct {
	detach    bool
	nodes     string
	extraArgs []string
	options   sandbox.Options
}

func newUp(where *place) *cobra.Command {
	var flags upFlags
	o := &flags.options
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a control plane, and run it until Ctrl-C (or in the background)",
		Long: `up starts a control plane on free ports of 127.0.0.1 and returns when it is
ready, which takes some seconds. In the foreground it then runs until Ctrl-C; with
--detach it runs in the background until "sched-sandbox down".

The folder (--data-dir) holds the kubeconfig, certificates, data, and a log for
each part under logs/. A folder that "down --keep-data" left is taken up again,
with all its objects.`,
		Example: `  sched-sandbox up
  sched-sandbox up --detach --nodes pools.yaml
  sched-sandbox up --name alpha --feature-gates GenericWorkload=true \
    --runtime-config scheduling.k8s.io/v1alpha3=true`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.run(cmd, where) },
	}
	f := cmd.Flags()
	f.BoolVarP(&flags.detach, "detach", "d", false, "run in the background")
	f.StringVar(&flags.nodes, "nodes", "", "file with pools of fake nodes to start with, as for \"sched-sandbox nodes -f\"")
	f.IntVar(&o.Port, "port", 0, "port of the API server (default: a free one)")
	f.Var(cliflag.NewMapStringBool(&o.FeatureGates), "feature-gates", "feature gates for the API server, controller manager and scheduler, such as GenericWorkload=true,Other=false")
	f.BoolVar(&o.Fsync, "fsync", false, "make etcd write through to the disk, as real clusters do")
	f.Var(newMapFlag(&o.RuntimeConfig), "runtime-config", "API versions to switch on or off, such as scheduling.k8s.io/v1alpha3=true")
	f.StringVar(&o.SchedulerConfig, "scheduler-config", "", "file with a KubeSchedulerConfiguration (v1)")
	f.StringVar(&o.SchedulerBinary, "scheduler-binary", "", "program to run in place of kube-scheduler; it takes the same flags")
	f.StringVar(&o.ServiceClusterIPRange, "service-cluster-ip-range", "10.96.0.0/16", "network of Services")
	f.Float32Var(&o.QPS, "kube-api-qps", 500, "requests a second that controller manager and scheduler may each make")
	f.IntVar(&o.Burst, "kube-api-burst", 1000, "requests that they may make at once")
	f.StringArrayVar(&flags.extraArgs, "extra-arg", nil, "one more argument for a part, such as kube-apiserver=--v=4 (may be repeated)")
	f.DurationVar(&o.StartTimeout, "timeout", 2*time.Minute, "how long to wait until all is ready")
	return cmd
}

// newMapFlag returns a flag value of the form key=value,key=value.
func newMapFlag(m *map[string]string) *cliflag.MapStringString {
	return cliflag.NewMapStringString(m)
}

func (f *upFlags) run(cmd *cobra.Command, where *place) error {
	dir, err := where.dir()
	if err != nil {
		return err
	}
	var pools []sandbox.Pool
	var text []byte
	if f.nodes != "" {
		// Before anything is started: a slip in the file should cost no time.
		if pools, text, err = readPools(f.nodes, cmd.InOrStdin()); err != nil {
			return err
		}
	}
	if f.options.ExtraArgs, err = parseExtraArgs(f.extraArgs); err != nil {
		return err
	}
	if f.detach {
		return f.detached(cmd, dir, text)
	}
	f.options.Name, f.options.DataDir = where.name, dir
	return f.supervise(cmd, pools)
}

// parseExtraArgs turns "part=argument" into a list for each part.
func parseExtraArgs(pairs []string) (map[sandbox.Part][]string, error) {
	arguments := map[sandbox.Part][]string{}
	for _, pair := range pairs {
		name, argument, found := strings.Cut(pair, "=")
		if !found || argument == "" {
			return nil, fmt.Errorf("--extra-arg %q: write PART=ARGUMENT, such as kube-apiserver=--v=4", pair)
		}
		part, err := sandbox.ParsePart(name)
		if err != nil {
			return nil, fmt.Errorf("--extra-arg %q: %w", pair, err)
		}
		arguments[part] = append(arguments[part], argument)
	}
	return arguments, nil
}

// supervise runs the control plane in this process until it is told to end.
func (f *upFlags) supervise(cmd *cobra.Command, pools []sandbox.Pool) (err error) {
	ctx := cmd.Context()
	errs := cmd.ErrOrStderr()
	begin := time.Now()
	fmt.Fprintf(errs, "starting sandbox %q in %s\n", f.options.Name, f.options.DataDir)
	f.options.OnFailure = func(part sandbox.Part, err error) {
		fmt.Fprintf(errs, "%v\n\"sched-sandbox start %s\" starts it again\n", err, part)
	}
	sb, err := sandbox.Start(ctx, f.options)
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := sb.Stop(); err == nil {
			err = stopErr
		}
	}()
	if len(pools) > 0 {
		if _, err := sb.Nodes(ctx, pools); err != nil {
			return err
		}
	}
	fmt.Fprintf(errs, "ready after %.1f s: %s\n", time.Since(begin).Seconds(), sb.State().Server)
	fmt.Fprintf(errs, "  export KUBECONFIG=%s\n", sb.Kubeconfig())
	if ready := readyPipe(); ready != nil {
		if err := moveOutput(sb.DataDir()); err != nil {
			return err
		}
		if err := tellReady(ready); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(errs, "it runs until Ctrl-C, or \"sched-sandbox down\" from elsewhere")
	}
	return sb.Serve(ctx)
}

// detached starts this program again as a supervisor in the background, and
// returns when that is ready. pools is the text of the file of nodes, which the
// supervisor cannot read once more when it was standard input.
func (f *upFlags) detached(cmd *cobra.Command, dir string, pools []byte) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	supervisor := exec.Command(self, append(os.Args[1:len(os.Args):len(os.Args)], "--detach=false")...)
	supervisor.Stdout, supervisor.Stderr = os.Stdout, os.Stderr
	if f.nodes == "-" {
		supervisor.Stdin = bytes.NewReader(pools)
	}
	supervisor.ExtraFiles = []*os.File{write}
	supervisor.Env = append(os.Environ(), readyEnv+"=3")
	supervisor.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C here is not for it
	if err := supervisor.Start(); err != nil {
		return fmt.Errorf("start supervisor: %w", err)
	}
	if err := write.Close(); err != nil {
		return err
	}
	stop := context.AfterFunc(cmd.Context(), func() { _ = supervisor.Process.Signal(syscall.SIGTERM) })
	defer stop()
	word, err := io.ReadAll(read) // ends when the supervisor is ready, or gone
	if err != nil {
		return err
	}
	if len(word) == 0 {
		_ = supervisor.Wait() // it has printed what went wrong
		return fmt.Errorf("the sandbox did not start; its logs are in %s/logs", dir)
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "it runs until \"sched-sandbox down\"")
	return supervisor.Process.Release()
}

// readyPipe returns the pipe that waits for the word of being ready, or nil in
// the foreground.
func readyPipe() *os.File {
	if os.Getenv(readyEnv) == "" {
		return nil
	}
	return os.NewFile(3, "ready")
}

func tellReady(pipe *os.File) error {
	if _, err := pipe.WriteString("ready\n"); err != nil {
		return err
	}
	return pipe.Close()
}
