package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
	"github.com/kubectl-sched/kubectl-sched/test/golden"
)

// charts holds whole renderings of the kinds of charts that people install, and
// a placement for each.
const charts = "../../../test/charts"

// runCharts runs a command in this process and returns its exit code and output.
func runCharts(t *testing.T, args ...string) (int, string, string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	a := newApp(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr})
	a.now = func() time.Time { return time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC) }
	a.load = func(ctx context.Context, o policyOptions) (*policy.Placement, diag.Findings) {
		return load.Evaluate(ctx, load.Options{Paths: o.paths})
	}
	code := run(t.Context(), a, args)
	return code, stdout.String(), stderr.String()
}

// The placement of a whole chart goes in and out again without one byte of
// noise: only lines of placement change, compiling again changes nothing, and
// without the policies every file is what it was.
func TestChartsInPlace(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob(filepath.Join(charts, "*", "placement"))
	if err != nil || len(folders) < 6 {
		t.Fatalf("%d charts, %v", len(folders), err)
	}
	for _, placement := range folders {
		chart := filepath.Base(filepath.Dir(placement))
		t.Run(chart, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			copyFiles(t, filepath.Dir(placement), dir)
			before := golden.Files(t, dir, ".yaml")
			args := []string{"compile", "-p", placement, "-R", "-f", dir, "--in-place"}

			code, _, stderr := runCharts(t, args...)
			if code != 0 {
				t.Fatalf("exit code %d\n%s", code, stderr)
			}
			after := golden.Files(t, dir, ".yaml")
			changed := 0
			for name, text := range before {
				changed += checkNoise(t, name, text, after[name])
			}
			if changed == 0 {
				t.Error("nothing was placed")
			}
			if strings.Contains(stderr, "selects no workload") {
				t.Errorf("a policy is for nothing:\n%s", stderr)
			}

			if code, stdout, stderr := runCharts(t, append(args, "--check")...); code != 0 || stdout != "" {
				t.Errorf("again: exit code %d\n%s%s", code, stdout, stderr)
			}
			none := filepath.Join(t.TempDir(), "none.cue")
			if err := os.WriteFile(none, []byte("package placement\n"+kindsOf(t, placement)), 0o644); err != nil {
				t.Fatal(err)
			}
			if code, _, stderr := runCharts(t, "compile", "-p", none, "-R", "-f", dir, "-i"); code != 0 {
				t.Fatalf("without policies: exit code %d\n%s", code, stderr)
			}
			if d := cmp.Diff(before, golden.Files(t, dir, ".yaml")); d != "" {
				t.Errorf("without policies (-before +after):\n%s", d)
			}
		})
	}
}

// kindsOf returns the part of a document that teaches kinds.
func kindsOf(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.cue"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\nkinds:")
	if !found {
		return ""
	}
	kinds, _, _ := strings.Cut(rest, "\npolicies:")
	return "kinds:" + kinds
}

// checkNoise checks that two texts of one file differ only in lines of
// placement; it returns how many lines do.
func checkNoise(t *testing.T, name, before, after string) int {
	t.Helper()
	if before == after {
		return 0
	}
	if strings.Contains(before, "\r\n") && strings.Count(after, "\n") != strings.Count(after, "\r\n") {
		t.Errorf("%s: line ends are mixed now", name)
	}
	was, is := strings.Split(before, "\n"), strings.Split(after, "\n")
	oldPaths, newPaths := linePaths(t, name, before), linePaths(t, name, after)
	changed := 0
	gone, come := lineDiff(was, is)
	for _, n := range come {
		changed++
		if !slices.ContainsFunc(newPaths[n], isPlacement) {
			t.Errorf("%s:%d: +%s (%q)", name, n+1, is[n], newPaths[n])
		}
	}
	for _, n := range gone {
		changed++
		// A line in flow style is written anew with something put into it.
		grown := slices.ContainsFunc(come, func(m int) bool { return isWithin(was[n], is[m]) })
		if !slices.ContainsFunc(oldPaths[n], isPlacement) && !grown {
			t.Errorf("%s:%d: -%s (%q)", name, n+1, was[n], oldPaths[n])
		}
	}
	return changed
}

// isWithin reports whether a line becomes another by putting text into it at one
// place.
func isWithin(line, longer string) bool {
	for n := 0; n <= len(line); n++ {
		if strings.HasPrefix(longer, line[:n]) && strings.HasSuffix(longer[n:], line[n:]) && len(longer) > len(line) {
			return true
		}
	}
	return false
}

// isPlacement reports whether a path leads to, or makes room for, placement.
func isPlacement(path string) bool {
	for key := range strings.SplitSeq(path, "\x00") {
		if slices.Contains(workload.Fields, workload.Field(key)) || key == ownership.Annotation {
			return true
		}
	}
	return strings.HasSuffix(path, "metadata\x00annotations") || strings.HasSuffix(path, "\x00template") || strings.HasSuffix(path, "\x00pod")
}

// linePaths returns, for each line (from 0), the paths of what it says.
func linePaths(t *testing.T, name, text string) map[int][]string {
	t.Helper()
	paths := map[int][]string{}
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return paths
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var walk func(n *yaml.Node, path string)
		walk = func(n *yaml.Node, path string) {
			paths[n.Line-1] = append(paths[n.Line-1], path)
			for i := range n.Content {
				switch {
				case n.Kind == yaml.MappingNode && i%2 == 0:
					walk(n.Content[i], path+"\x00"+n.Content[i].Value)
				case n.Kind == yaml.MappingNode:
					walk(n.Content[i], path+"\x00"+n.Content[i-1].Value)
				default:
					walk(n.Content[i], path)
				}
			}
		}
		walk(&document, "")
	}
}

// lineDiff returns the lines of a that b lacks, and of b that a lacks.
func lineDiff(a, b []string) (gone, come []int) {
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		if i < len(a) && j < len(b) && a[i] == b[j] {
			i, j = i+1, j+1
			continue
		}
		di, dj := resync(a[i:], b[j:])
		for range di {
			gone = append(gone, i)
			i++
		}
		for range dj {
			come = append(come, j)
			j++
		}
	}
	return gone, come
}

// resync returns how many lines to leave out of each so that three lines are the
// same again, as few as possible.
func resync(a, b []string) (int, int) {
	same := func(i, j int) bool {
		for n := range 3 {
			if i+n >= len(a) || j+n >= len(b) {
				return i+n >= len(a) && j+n >= len(b)
			}
			if a[i+n] != b[j+n] {
				return false
			}
		}
		return true
	}
	for total := 1; total < len(a)+len(b); total++ {
		for di := range total + 1 {
			if dj := total - di; di <= len(a) && dj <= len(b) && same(di, dj) {
				return di, dj
			}
		}
	}
	return len(a), len(b)
}

func copyFiles(t *testing.T, from, to string) {
	t.Helper()
	for name, text := range golden.Files(t, from, ".yaml") {
		path := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
