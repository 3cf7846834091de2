package cli_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"cuelang.org/go/mod/modregistrytest"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kubectl-sched/kubectl-sched/cmd/kubectl-sched/cli"
)

// TestMain makes the test binary the plugin too, when it is run by that name:
// by a script, and by the plugin for its own child process.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"kubectl-sched": func() { os.Exit(cli.Main(os.Args[1:], cli.Standard(), cli.Release{})) },
		"released-sched": func() {
			os.Exit(cli.Main(os.Args[1:], cli.Standard(), cli.Release{Version: "v1.2.3", Commit: "0123456789abcdef"}))
		},
	})
}

// TestScript runs the verbs that need no cluster. UPDATE=1 rewrites what the
// scripts expect.
func TestScript(t *testing.T) {
	t.Parallel()
	testscript.Run(t, scripts("script"))
}

// scripts are those in a folder of testdata.
func scripts(folder string) testscript.Params {
	return testscript.Params{
		Dir:                 filepath.Join("testdata", folder),
		UpdateScripts:       os.Getenv("UPDATE") != "",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "registry": registry},
		Setup: func(env *testscript.Env) error {
			// Neither the user's kubeconfig nor colours get in.
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("KUBECONFIG", filepath.Join(env.WorkDir, "no-kubeconfig"))
			env.Setenv("NO_COLOR", "1")
			// Commits are the same on every machine, whatever its git is told.
			env.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
			env.Setenv("GIT_CONFIG_NOSYSTEM", "1")
			for _, who := range []string{"AUTHOR", "COMMITTER"} {
				env.Setenv("GIT_"+who+"_NAME", "A Reviewer")
				env.Setenv("GIT_"+who+"_EMAIL", "reviewer@example.com")
				env.Setenv("GIT_"+who+"_DATE", "2026-01-02T03:04:05Z")
			}
			return nil
		},
	}
}

// exits runs the plugin and holds that it ends with an exit code:
//
//	exits 2 lint --bogus
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: exits CODE ARGUMENT...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec("kubectl-sched", args[1:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("run kubectl-sched: %v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// registry serves the modules in a folder, each in a folder of its own that is called as
// modregistrytest says, as the registry that CUE_REGISTRY names:
//
//	registry modules
func registry(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: registry FOLDER")
	}
	r, err := modregistrytest.New(os.DirFS(ts.MkAbs(args[0])), "")
	ts.Check(err)
	ts.Defer(r.Close)
	ts.Setenv("CUE_REGISTRY", r.Host()+"+insecure")
	ts.Setenv("CUE_CACHE_DIR", ts.MkAbs(".cue-cache"))
}
