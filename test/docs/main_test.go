package docs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kubectl-sched/kubectl-sched/cmd/kubectl-sched/cli"
	"github.com/kubectl-sched/kubectl-sched/internal/sandbox"
	"github.com/kubectl-sched/kubectl-sched/test/page"
)

func TestMain(m *testing.M) {
	programs := map[string]func(){"kubectl": kubectl, "kubectl-sched": plugin}
	for name := range standIns {
		programs[name] = standIn(name)
	}
	testscript.Main(m, programs)
}

// release is what the plugin of the pages is built as: a released one, which knows the
// image of its scheduler.
var release = cli.Release{Version: "v1.2.3"}

func plugin() { os.Exit(cli.Main(os.Args[1:], cli.Standard(), release)) }

// kubectl is the kubectl that the sandbox brings, with the plugin on its PATH. For the
// plugin alone, which most pages are content with, no sandbox has to be there.
func kubectl() {
	name, args := "kubectl-sched", os.Args
	if len(args) > 1 && args[1] == "sched" {
		args = args[1:]
	} else {
		name = "kubectl"
	}
	if err := become(name, args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func become(name string, args []string) (err error) {
	var path string
	if name == "kubectl" {
		path, err = sandbox.Binary(context.Background())
	} else {
		path, err = exec.LookPath(name)
	}
	if err != nil {
		return err
	}
	return syscall.Exec(path, append([]string{name}, args[1:]...), os.Environ())
}

// noCluster is the kubeconfig of where there is no cluster.
const noCluster = os.DevNull

// shell runs a script in a folder, as in a terminal of 80 columns, and returns what it
// says and the exit code.
func shell(t *testing.T, dir, kubeconfig, script string, env ...string) (said string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	variables := append(os.Environ(), "HOME="+dir, "KUBECONFIG="+kubeconfig, "GIT_CONFIG_GLOBAL="+dir+"/.gitconfig")
	if kubeconfig != noCluster {
		// It is found from here, where there is a module to build it from.
		binary, err := sandbox.Binary(ctx)
		if err != nil {
			t.Fatal(err)
		}
		variables = append(variables, sandbox.BinaryEnv+"="+binary)
	}
	c := page.Shell(ctx, dir, script, append(variables, env...))
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	var failed *exec.ExitError
	switch err := c.Run(); {
	case errors.As(err, &failed):
		return out.String(), failed.ExitCode()
	case err != nil:
		t.Fatal(err)
	}
	return out.String(), 0
}
