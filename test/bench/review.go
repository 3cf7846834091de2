package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/kubectl-sched/kubectl-sched/test/reviewed"
)

// What is reviewed, and in how many seconds.
const (
	reviewName    = "review: one number, 1,000 nodes, 10,000 pods"
	reviewSeconds = 10
)

// reviewRows is what the review of a change of one number takes, which rolls a third of
// the pods out, against that of a change of comments: the same reading and compiling,
// and no simulation.
func reviewRows(ctx context.Context, dir, plugin string) ([]row, error) {
	c := reviewed.Case{Plugin: plugin, Dir: filepath.Join(dir, "reviewed"), Nodes: 1000, Pods: 10_000}
	if err := os.Mkdir(c.Dir, 0o755); err != nil {
		return nil, err
	}
	if err := c.Write(ctx); err != nil {
		return nil, err
	}
	call := func(branch string) []string {
		return []string{"env", "-C", c.Repository(), plugin, "review", "--base", reviewed.Main, "--head", branch, "-p", "placement", "-f", "manifests", "-R", "--snapshot", c.Snapshot()}
	}
	return []row{{
		name: reviewName, baseline: "a change of comments", runs: 3, maxSeconds: reviewSeconds, maxMiB: 1536,
		a: call(reviewed.Number), b: call(reviewed.Comments),
	}}, nil
}
