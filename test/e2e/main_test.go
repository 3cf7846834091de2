// Package e2e holds the tests that drive the built plugin against a real control
// plane, and look at where pods land.
//
// A story is a script in testdata/script: policies, manifests, and what a user
// types. Each works in a namespace and on a set of its own, so that all of them
// share one control plane at the same time. What a script cannot say (a plugin
// that is killed, an API server that goes away) is a test in Go.
//
// The tests know the plugin by its command line alone.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/kubectl-sched/kubectl-sched/internal/sandbox"
	"github.com/kubectl-sched/kubectl-sched/internal/sandbox/sandboxtest"
)

// pluginEnv names a plugin binary to test instead of one that is built.
const pluginEnv = "SCHED_PLUGIN_BIN"

var (
	// shared is the control plane of the scripts.
	shared = sandboxtest.Shared{}
	// plugin is the path of the binary under test.
	plugin string
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "kubectl-sched-e2e-")
	if err == nil {
		plugin, err = buildPlugin(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, errors.Join(err, os.RemoveAll(dir)))
		os.Exit(1)
	}
	code := shared.Run(m)
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// buildPlugin returns the path of the plugin: the one that pluginEnv names, or
// else one built into dir. It is called kubectl-sched, so that dir can go on PATH.
func buildPlugin(dir string) (string, error) {
	target := filepath.Join(dir, "kubectl-sched")
	if path := os.Getenv(pluginEnv); path != "" {
		path, err := filepath.Abs(path)
		if err != nil {
			return "", err
		}
		return target, os.Symlink(path, target)
	}
	build := exec.Command("go", "build", "-o", target, "../../cmd/kubectl-sched")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the plugin: %w\n%s", err, out)
	}
	return target, nil
}

// pluginCommand is a run of the plugin in a folder.
func pluginCommand(ctx context.Context, dir, kubeconfig string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, plugin, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+dir, "NO_COLOR=1")
	return cmd
}

// world is a control plane with nodes that tests can add to.
type world struct {
	*sandbox.Sandbox

	mu    sync.Mutex
	pools []sandbox.Pool
}

// addNodes adds the pools of a file to the nodes there are. A pool that is there
// already changes.
func (w *world) addNodes(ctx context.Context, file string, data []byte) error {
	pools, err := sandbox.ParsePools(file, data)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, pool := range pools {
		w.pools = withPool(w.pools, pool)
	}
	_, err = w.Nodes(ctx, w.pools)
	return err
}

func withPool(pools []sandbox.Pool, pool sandbox.Pool) []sandbox.Pool {
	for i := range pools {
		if pools[i].Name == pool.Name {
			pools[i] = pool
			return pools
		}
	}
	return append(pools, pool)
}

// sharedWorld is the world of the scripts.
var sharedWorld struct {
	once  sync.Once
	world *world
	err   error
}

// theWorld returns the world of the scripts, with the nodes of testdata/nodes.yaml.
func theWorld(t testing.TB) *world {
	t.Helper()
	sb := shared.Get(t)
	sharedWorld.once.Do(func() {
		sharedWorld.world = &world{Sandbox: sb}
		sharedWorld.err = sharedWorld.world.addFile(context.WithoutCancel(t.Context()), filepath.Join("testdata", "nodes.yaml"))
	})
	if sharedWorld.err != nil {
		t.Fatal(sharedWorld.err)
	}
	return sharedWorld.world
}

// newWorld starts a control plane for one test, with the nodes of the file.
func newWorld(t testing.TB, nodes string) *world {
	t.Helper()
	w := &world{Sandbox: sandboxtest.ForTest(t, sandbox.Options{})}
	if err := w.addFile(t.Context(), nodes); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) addFile(ctx context.Context, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return w.addNodes(ctx, path, data)
}
