// Command sched-sandbox runs a real Kubernetes control plane with fake nodes on
// the loopback interface; "sched-sandbox --help" shows how. Called by the name
// kubectl, it is upstream's kubectl.
//
// It maps arguments to calls of internal/sandbox. It must not know policies, nor
// anything else of the plugin that is tested against what it runs.
package main

import (
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-sched/kubectl-sched/cmd/sched-sandbox/cli"
	"github.com/kubectl-sched/kubectl-sched/cmd/sched-sandbox/parts"
)

func main() {
	if cli.IsKubectl(os.Args[0]) {
		os.Exit(cli.Kubectl(os.Args[1:], genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}))
	}
	if code, isPart := parts.Run(os.Args[1:]); isPart {
		os.Exit(code)
	}
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
