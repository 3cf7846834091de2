// Command bench measures the plugin against baselines in one run and prints the
// ratios as a table. It fails where a ratio is over its limit.
//
// Each pair of programs runs in turn (A B A B …) as whole processes, so that a
// machine whose speed drifts slows both alike; the median ratio counts. The
// package must not know how the plugin works inside: it runs the binary.
// What admission policies cost is measured in a control plane of its own, with
// rounds of pods in a namespace that they are for, in one that they are not, and in
// one where two policies write the same as constants.
// Pods that use none of our plugins have one of their own, of the CPU time that they
// cost with the plugins and without, and upstream's standard benchmark with both; and so
// have gangs: loads on control planes, with the bundled scheduler, with the in-tree group
// cycle alone, and with the least scheduler that feeds it virtual groups.
//
// Arguments are the beginnings of the names of what is to be measured; without
// any, everything is but perf-5000, which takes 10 minutes.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/kubectl-sched/kubectl-sched/test/bench/orphan"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	if self, err := os.Executable(); err == nil && strings.Contains(self, "go-build") {
		orphan.Then(stop) // "go run" ends by SIGTERM without a word to what it runs
	}
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	if len(args) == 3 && args[0] == "baseline" {
		return baseline(args[1], args[2])
	}
	dir, err := os.MkdirTemp("", "sched-bench")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()

	self, err := os.Executable()
	if err != nil {
		return err
	}
	plugin, err := filepath.Abs("bin/kubectl-sched")
	if err != nil {
		return err
	}
	sandbox, err := filepath.Abs(cmp.Or(os.Getenv("SCHED_SANDBOX_BIN"), "bin/sched-sandbox"))
	if err != nil {
		return err
	}
	scheduler, err := filepath.Abs(cmp.Or(os.Getenv("SCHED_SCHEDULER_BIN"), "bin/placement-scheduler"))
	if err != nil {
		return err
	}
	cost := len(args) == 0 || slices.Contains(args, costName)
	if cost && len(args) == 1 { // which needs nothing of what follows
		return measureCost(ctx, dir, os.Stdout)
	}
	perf := perfWorkloads(args)
	if len(perf) == len(args) && len(args) > 0 {
		return measurePerf(ctx, perf, dir, os.Stdout)
	}
	gangs := gangLoads(args)
	if len(gangs) == len(args) && len(args) > 0 { // which need nothing of what follows
		return measureGangs(ctx, gangs, dir, sandbox, scheduler, os.Stdout)
	}
	kubectl := filepath.Join(dir, "kubectl")
	fmt.Fprintln(os.Stderr, "building kubectl as the baseline for start-up …")
	if err := command(ctx, "go", "build", "-ldflags", "-s -w", "-o", kubectl, "./test/bench/kubectl").Run(); err != nil {
		return fmt.Errorf("build kubectl: %w", err)
	}

	fleet := filepath.Join(dir, "fleet")
	if err := generate(fleet, 1000, 10000, 0); err != nil {
		return err
	}
	rich := filepath.Join(dir, "rich")
	if err := generate(rich, 1000, 10000, 20); err != nil {
		return err
	}
	small := filepath.Join(dir, "small")
	if err := generate(small, 1, 50, 0); err != nil {
		return err
	}

	planes := map[string]*admissionBench{}
	defer func() {
		for _, plane := range planes {
			err = errors.Join(err, plane.Stop())
		}
	}()
	creating := func(namespace, against string, at pace, fsync bool) func(context.Context) (usage, usage, error) {
		return func(ctx context.Context) (with, without usage, err error) {
			name := fmt.Sprintf("sandbox-fsync-%t", fsync)
			if planes[name] == nil {
				fmt.Fprintln(os.Stderr, "starting a control plane …")
				if planes[name], err = startAdmission(ctx, dir, name, sandbox, plugin, fsync); err != nil {
					delete(planes, name)
					return with, without, err
				}
			}
			return planes[name].pair(ctx, namespace, against, at)
		}
	}
	rows := []row{
		{
			name:     "compile: 1,000 policies, 10,000 manifests",
			baseline: "CUE alone + YAML decode and encode",
			runs:     5, maxRatio: 1.5, maxMiB: 500,
			a: []string{plugin, "compile", "-p", fleet + "/placement", "-f", fleet + "/manifests", "-R", "-o", "manifests"},
			b: []string{self, "baseline", fleet + "/placement", fleet + "/manifests"},
		},
		{
			name:     "compile: the same, 20 variables more in each manifest",
			baseline: "CUE alone + YAML decode and encode",
			runs:     3, maxRatio: 1.5, maxMiB: 500,
			a: []string{plugin, "compile", "-p", rich + "/placement", "-f", rich + "/manifests", "-R", "-o", "manifests"},
			b: []string{self, "baseline", rich + "/placement", rich + "/manifests"},
		},
		{
			name:     "version",
			baseline: "kubectl version --client",
			runs:     21, maxRatio: 1.0,
			a: []string{plugin, "version"},
			b: []string{kubectl, "version", "--client"},
		},
		{
			name:     "lint: 1 policy, 50 manifests",
			baseline: "CUE alone + YAML decode and encode",
			runs:     11, maxSeconds: 0.3,
			a: []string{plugin, "lint", "-p", small + "/placement", "-f", small + "/manifests"},
			b: []string{self, "baseline", small + "/placement", small + "/manifests"},
		},
	}
	rows = append(rows, admissionRows(creating)...)
	rows = append(rows, snapshotRows(dir, plugin)...)
	if asked(args, lintName) {
		lints, err := lintRows(dir, plugin, self)
		if err != nil {
			return err
		}
		rows = append(rows, lints...)
	}
	if asked(args, importName) {
		imports, err := importRows(dir, plugin, self)
		if err != nil {
			return err
		}
		rows = append(rows, imports...)
	}
	if asked(args, reviewName) {
		reviews, err := reviewRows(ctx, dir, plugin)
		if err != nil {
			return err
		}
		rows = append(rows, reviews...)
	}
	tests, err := testRows(dir, plugin)
	if err != nil {
		return err
	}
	rows = append(rows, tests...)
	if asked(args, simulateName) {
		simulations, err := simulateRows(ctx, dir, plugin)
		if err != nil {
			return err
		}
		rows = append(rows, simulations...)
	}
	for _, word := range args {
		if word != costName && len(perfWorkloads([]string{word})) == 0 && len(gangLoads([]string{word})) == 0 && !slices.ContainsFunc(rows, func(r row) bool { return strings.HasPrefix(r.name, word) }) {
			return fmt.Errorf("no row begins with %q; without arguments all are measured", word)
		}
	}
	rows = slices.DeleteFunc(rows, func(r row) bool {
		return len(args) > 0 && !slices.ContainsFunc(args, func(word string) bool { return strings.HasPrefix(r.name, word) })
	})
	if len(rows) > 0 {
		err = measureAll(ctx, rows, os.Stdout)
	}
	if cost {
		err = errors.Join(err, measureCost(ctx, dir, os.Stdout))
	}
	if len(perf) > 0 {
		err = errors.Join(err, measurePerf(ctx, perf, dir, os.Stdout))
	}
	if len(gangs) > 0 {
		err = errors.Join(err, measureGangs(ctx, gangs, dir, sandbox, scheduler, os.Stdout))
	}
	return err
}

// asked reports whether rows whose names begin with group are wanted: those that begin
// with one of args, or all.
func asked(args []string, group string) bool {
	return len(args) == 0 || slices.ContainsFunc(args, func(word string) bool {
		return strings.HasPrefix(group, word) || strings.HasPrefix(word, group)
	})
}
