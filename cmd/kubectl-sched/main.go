// Command kubectl-sched is the kubectl plugin; kubectl runs it for "kubectl sched".
//
// It holds nothing but the process: its memory limit, its release and its exit code. It must not know
// any verb or flag, which are cli's.
package main

import (
	"os"
	"runtime/debug"

	"github.com/kubectl-sched/kubectl-sched/cmd/kubectl-sched/cli"
)

// softLimit is the memory, in bytes, above which garbage is collected more
// eagerly: ten thousand manifests fit in a small CI runner. It is no bound.
const softLimit = 400 << 20

// The linker sets these in a release. Where they are empty, the build is what Go has
// recorded of it.
var version, commit string

func main() {
	debug.SetMemoryLimit(softLimit)
	os.Exit(cli.Main(os.Args[1:], cli.Standard(), cli.Release{Version: version, Commit: commit}))
}
