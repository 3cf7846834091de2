// Command sched-sandbox runs a real Kubernetes control plane with fake nodes on
// the loopback interface; "sched-sandbox --help" shows how.
package main

import (
	"os"

	"github.com/kubectl-sched/kubectl-sched/cmd/sched-sandbox/cli"
	"github.com/kubectl-sched/kubectl-sched/cmd/sched-sandbox/parts"
)

func main() {
	if code, isPart := parts.Run(os.Args[1:]); isPart {
		os.Exit(code)
	}
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
