// Command kubectl-sched is the kubectl plugin; kubectl runs it for "kubectl sched".
package main

import (
	"os"

	"github.com/kubectl-sched/kubectl-sched/cmd/kubectl-sched/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], cli.Standard())) }
