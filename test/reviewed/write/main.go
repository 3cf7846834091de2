// Command write writes a repository with a change to review and a snapshot: see
// package reviewed. It must not know what is done with them.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/kubectl-sched/kubectl-sched/test/reviewed"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var c reviewed.Case
	flag.StringVar(&c.Plugin, "plugin", "bin/kubectl-sched", "the plugin")
	flag.StringVar(&c.Dir, "dir", "", "the folder to write to")
	flag.IntVar(&c.Nodes, "nodes", 72, "how many nodes there are")
	flag.IntVar(&c.Pods, "pods", 560, "how many pods there are")
	flag.Parse()
	if err := c.Write(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "write:", err)
		stop()
		os.Exit(1)
	}
}
