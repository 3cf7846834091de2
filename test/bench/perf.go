package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"

	"sigs.k8s.io/yaml"
)

// The names of upstream's standard benchmark: with few nodes, and with many, which is
// measured only where it is asked for. One run of that takes a minute on two cores that
// are idle, and more than 3 on such as are not.
const (
	perfName     = "perf"
	perfManyName = "perf-5000"
)

const (
	// perfPairs is how often both are measured in turn.
	perfPairs = 5
	// leastPerfRatio is the least that our pods a second may be of stock's: the runs
	// of the benchmark vary by 13 % on two cores.
	leastPerfRatio = 0.90
	// perfCase is what is run, with 1,000 pods on 500 nodes or 10,000 on 5,000.
	perfCase, perfFew, perfMany = "SchedulingBasic", "500Nodes", "5000Nodes_10000Pods"
)

// perfWorkloads returns which workloads are among the arguments: that with few nodes
// where there are no arguments at all.
func perfWorkloads(args []string) (workloads []string) {
	if len(args) == 0 || slices.Contains(args, perfName) {
		workloads = append(workloads, perfFew)
	}
	if slices.Contains(args, perfManyName) {
		workloads = append(workloads, perfMany)
	}
	return workloads
}

// perfBench is upstream's benchmark, built.
type perfBench struct {
	dir             string // for what is written
	program, folder string // folder has upstream's files of cases, with paths from there
	environment     []string
}

// measurePerf runs the workloads of upstream's standard benchmark with kube-scheduler's
// default profile and with that and all bundled plugins, and compares the pods a second.
func measurePerf(ctx context.Context, workloads []string, dir string, out io.Writer) error {
	b, err := buildPerf(ctx, dir)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "what\tagainst\tpods/s\tstock\tratio\tlimit\t")
	for _, workload := range workloads {
		err = errors.Join(err, b.compare(ctx, workload, table))
	}
	return errors.Join(err, table.Flush())
}

// compare runs the workload with both in turn. It is an error if ours places fewer pods a
// second than it must.
func (b *perfBench) compare(ctx context.Context, workload string, table io.Writer) error {
	name := "scheduler_perf " + perfCase + "/" + workload
	var ratios []float64
	for pair := range perfPairs {
		var rates [2]float64
		for i := range rates {
			with := (i + pair) % 2 // who is first changes
			var err error
			if rates[with], err = b.run(ctx, workload, with == 1); err != nil {
				return err
			}
		}
		ratios = append(ratios, rates[1]/rates[0])
		fmt.Fprintf(table, "%s\tdefault profile\t%.0f\t%.0f\t%.2f\t\t\n", name, rates[1], rates[0], rates[1]/rates[0])
	}
	limit := fmt.Sprintf("at least %.2f", leastPerfRatio)
	if median(ratios) < leastPerfRatio {
		limit += " NOT REACHED"
	}
	fmt.Fprintf(table, "median of %d pairs\t\t\t\t%.2f\t%s\t\n", perfPairs, median(ratios), limit)
	if median(ratios) < leastPerfRatio {
		return fmt.Errorf("%s: %.2f times the pods a second of kube-scheduler's default profile; want %.2f", name, median(ratios), leastPerfRatio)
	}
	return nil
}

// runningSchedulerRate returns how many pods a second kube-scheduler places, with its
// default profile, in the standard benchmark with many nodes: 10,000 pods that need
// nothing but room, on 5,000 nodes, of which it scores the 10 % that it scores of so many
// where nothing else is configured.
func runningSchedulerRate(ctx context.Context, dir string) (podsPerSecond float64, err error) {
	b, err := buildPerf(ctx, dir)
	if err != nil {
		return 0, err
	}
	return b.run(ctx, perfMany, false)
}

// buildPerf builds the benchmark, and the etcd that it starts, which it looks for in the
// path.
func buildPerf(ctx context.Context, dir string) (*perfBench, error) {
	fmt.Fprintln(os.Stderr, "building upstream's benchmark: about 9 minutes the first time …")
	b := &perfBench{dir: dir, program: filepath.Join(dir, "perf.test")}
	// Upstream looks for its files from where it was built.
	if err := command(ctx, "go", "test", "-c", "-trimpath=false", "-o", b.program, "./test/bench/perf").Run(); err != nil {
		return nil, fmt.Errorf("build upstream's benchmark: %w", err)
	}
	programs := filepath.Join(dir, "programs")
	if err := command(ctx, "go", "build", "-o", filepath.Join(programs, "etcd"), "./test/bench/etcd").Run(); err != nil {
		return nil, fmt.Errorf("build etcd: %w", err)
	}
	list := command(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes")
	module, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("find upstream's files: %w", err)
	}
	b.folder = filepath.Join(strings.TrimSpace(string(module)), "test", "integration", "scheduler_perf", "misc")
	b.environment = append(os.Environ(), "PATH="+programs+string(filepath.ListSeparator)+os.Getenv("PATH"), "TMPDIR="+dir) // where etcd's data is
	return b, nil
}

// cases writes a file with upstream's case alone, and returns its name: with all our
// plugins in the default profile, and the feature gate that Gang needs, or as it is.
func (b *perfBench) cases(ours bool) (string, error) {
	name := "stock"
	if ours {
		name = "ours"
	}
	data, err := os.ReadFile(filepath.Join(b.folder, "performance-config.yaml"))
	if err != nil {
		return "", err
	}
	var all []map[string]any
	if err := yaml.Unmarshal(data, &all); err != nil {
		return "", err
	}
	for _, c := range all {
		if c["name"] != perfCase {
			continue
		}
		if ours {
			profile := filepath.Join(b.dir, "perf-profile.yaml")
			if err := os.WriteFile(profile, []byte(perfProfile), 0o600); err != nil {
				return "", err
			}
			c["schedulerConfigPath"] = profile
			c["featureGates"] = map[string]any{"GenericWorkload": true}
		}
		workloads, _ := c["workloads"].([]any)
		for _, w := range workloads {
			if w, ok := w.(map[string]any); ok {
				delete(w, "threshold") // pods a second that upstream's machines reach
			}
		}
		if data, err = yaml.Marshal([]any{c}); err != nil {
			return "", err
		}
		file := filepath.Join(b.dir, "perf-"+name+".yaml")
		return file, os.WriteFile(file, data, 0o600)
	}
	return "", fmt.Errorf("upstream has no case %s any more", perfCase)
}

// perfProfile is the default profile with all bundled plugins.
const perfProfile = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: CacheLocality}, {name: GPUMemory}, {name: Gang}]}}
`

var throughput = regexp.MustCompile(`([0-9.e+]+) SchedulingThroughput/Average`)

// run runs the workload, with our plugins or without, and returns the pods a second.
func (b *perfBench) run(ctx context.Context, workload string, ours bool) (float64, error) {
	cases, err := b.cases(ours)
	if err != nil {
		return 0, err
	}
	fmt.Fprintf(os.Stderr, "%s, %s …\n", workload, filepath.Base(cases))
	args := []string{
		"-test.run=^$", "-test.bench=^BenchmarkStandard$/^" + perfCase + "$/^" + workload + "$", "-test.benchtime=1x", "-test.timeout=30m",
		"-perf-scheduling-label-filter=", // whatever upstream runs it for
		"-cases=" + cases, fmt.Sprintf("-ours=%v", ours), "-data-items-dir=" + filepath.Dir(cases),
	}
	process := exec.CommandContext(ctx, b.program, args...)
	process.Dir, process.Env = b.folder, b.environment
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	process.Cancel = func() error { return syscall.Kill(-process.Process.Pid, syscall.SIGKILL) } // and its etcd
	var log bytes.Buffer
	process.Stderr = &log
	output, err := process.Output()
	if err != nil {
		return 0, fmt.Errorf("%s: %w\n%s%s", process, err, output, log.Bytes()[max(0, log.Len()-4096):])
	}
	found := throughput.FindSubmatch(output)
	if found == nil {
		return 0, fmt.Errorf("%s says no throughput:\n%s", process, output)
	}
	rate, err := strconv.ParseFloat(string(found[1]), 64)
	if err == nil {
		fmt.Fprintf(os.Stderr, "  %.0f pods/s\n", rate)
	}
	return rate, err
}
