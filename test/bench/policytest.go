package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// How many policy tests are run, and in how many seconds.
const (
	testName    = "test: 100 policy tests"
	testCount   = 100
	testSeconds = 5
)

// testRows is what policy tests take, each with a cluster of its own of 30 nodes and
// 60 pods.
func testRows(dir, plugin string) ([]row, error) {
	folder := filepath.Join(dir, "tested")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString("package tested\n\npolicies: web: {workloads: names: [\"web*\"], spread: zone: strength: \"require\"}\n")
	for i := range testCount {
		fmt.Fprintf(&b, "tests: \"%d\": {\n\tnodes: web: {count: 30, zones: [\"a\", \"b\", \"c\"]}\n\tworkloads: \"web-%d\": replicas: 60\n\tafter: [{lose: zone: \"a\"}]\n\texpect: workloads: \"web-%d\": {placed: 40, pending: count: 20}\n}\n", i, i, i)
	}
	if err := os.WriteFile(filepath.Join(folder, "tests.cue"), []byte(b.String()), 0o644); err != nil {
		return nil, err
	}
	return []row{{
		name: testName, baseline: "the program alone", runs: 3, maxSeconds: testSeconds,
		a: []string{plugin, "test", "-p", folder},
		b: []string{plugin, "version"},
	}}, nil
}
