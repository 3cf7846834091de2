package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"

	"sigs.k8s.io/yaml"
)

// perfName is the name of upstream's standard benchmark.
const perfName = "perf"

const (
	// perfPairs is how often both are measured in turn.
	perfPairs = 5
	// leastPerfRatio is the least that our pods a second may be of stock's: the runs
	// of the benchmark vary by 13 % on two cores.
	leastPerfRatio = 0.90
	// perfCase and perfWorkload are what is run: 1,000 pods on 500 nodes. One run on
	// 5,000 nodes can take more than 3 minutes on two cores that are not idle.
	perfCase, perfWorkload = "SchedulingBasic", "500Nodes"
)

// perfBench is upstream's benchmark, built.
type perfBench struct {
	program, folder string // folder has upstream's files of cases, with paths from there
	environment     []string
}

// measurePerf runs upstream's standard benchmark with kube-scheduler's default profile
// and with that and all bundled plugins, and compares the pods a second.
func measurePerf(ctx context.Context, dir string, out io.Writer) error {
	fmt.Fprintln(os.Stderr, "building upstream's benchmark: about 9 minutes the first time …")
	b, err := buildPerf(ctx, dir)
	if err != nil {
		return err
	}
	stock, err := b.cases(dir, "stock", false)
	if err != nil {
		return err
	}
	ours, err := b.cases(dir, "ours", true)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "what\tagainst\tpods/s\tstock\tratio\tlimit\t")
	const name = "scheduler_perf " + perfCase + "/" + perfWorkload
	var ratios []float64
	for pair := range perfPairs {
		var rates [2]float64
		for i := range rates {
			with := (i + pair) % 2 // who is first changes
			if rates[with], err = b.run(ctx, [2]string{stock, ours}[with], with == 1); err != nil {
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
	if err := table.Flush(); err != nil {
		return err
	}
	if median(ratios) < leastPerfRatio {
		return fmt.Errorf("%s: %.2f times the pods a second of kube-scheduler's default profile; want %.2f", name, median(ratios), leastPerfRatio)
	}
	return nil
}

// buildPerf builds the benchmark, and the etcd that it starts, which it looks for in the
// path.
func buildPerf(ctx context.Context, dir string) (*perfBench, error) {
	b := &perfBench{program: filepath.Join(dir, "perf.test")}
	// Upstream looks for its files from where it was built.
	if err := command(ctx, "go", "test", "-c", "-trimpath=false", "-o", b.program, "./test/bench/perf").Run(); err != nil {
		return nil, fmt.Errorf("build upstream's benchmark: %w", err)
	}
	programs := filepath.Join(dir, "programs")
	if err := command(ctx, "go", "build", "-o", filepath.Join(programs, "etcd"), "go.etcd.io/etcd/server/v3").Run(); err != nil {
		return nil, fmt.Errorf("build etcd: %w", err)
	}
	list := command(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes")
	module, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("find upstream's files: %w", err)
	}
	b.folder = filepath.Join(strings.TrimSpace(string(module)), "test", "integration", "scheduler_perf", "misc")
	b.environment = append(os.Environ(), "PATH="+programs+string(filepath.ListSeparator)+os.Getenv("PATH"))
	return b, nil
}

// cases writes a file with upstream's case alone, and returns its name: with all our
// plugins in the default profile, and the feature gate that Gang needs, or as it is.
func (b *perfBench) cases(dir, name string, ours bool) (string, error) {
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
			profile := filepath.Join(dir, "perf-profile.yaml")
			if err := os.WriteFile(profile, []byte(perfProfile), 0o600); err != nil {
				return "", err
			}
			c["schedulerConfigPath"] = profile
			c["featureGates"] = map[string]any{"GenericWorkload": true}
		}
		if data, err = yaml.Marshal([]any{c}); err != nil {
			return "", err
		}
		file := filepath.Join(dir, "perf-"+name+".yaml")
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

// run runs the cases and returns the pods a second.
func (b *perfBench) run(ctx context.Context, cases string, ours bool) (float64, error) {
	fmt.Fprintf(os.Stderr, "%s …\n", filepath.Base(cases))
	args := []string{
		"-test.run=^$", "-test.bench=^BenchmarkStandard$/^" + perfCase + "$/^" + perfWorkload + "$", "-test.benchtime=1x", "-test.timeout=30m",
		"-perf-scheduling-label-filter=", // whatever upstream runs it for
		"-cases=" + cases, fmt.Sprintf("-ours=%v", ours), "-data-items-dir=" + filepath.Dir(cases),
	}
	process := exec.CommandContext(ctx, b.program, args...)
	process.Dir, process.Env = b.folder, b.environment
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
