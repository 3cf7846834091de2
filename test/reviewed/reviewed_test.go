package reviewed_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubectl-sched/kubectl-sched/test/reviewed"
)

// review returns what the plugin says of a branch.
func review(t *testing.T, c reviewed.Case, branch string, more ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), c.Plugin, append([]string{"review", "--base", reviewed.Main, "--head", branch, "-p", "placement", "-f", "manifests", "-R", "--snapshot", c.Snapshot()}, more...)...)
	cmd.Dir = c.Repository()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("review of %s: %v\n%s", branch, err, stderr.Bytes())
	}
	return string(out)
}

// TestLargeCluster is the reviewer's story on 1,000 nodes and 10,000 pods: comments do
// nothing, and one number moves pods of the policy's own workloads and no others; twice
// the same bytes.
func TestLargeCluster(t *testing.T) {
	t.Parallel()
	plugin, err := filepath.Abs("../../bin/kubectl-sched") // make test builds it first
	if err != nil {
		t.Fatal(err)
	}
	c := reviewed.Case{Plugin: plugin, Dir: t.TempDir(), Nodes: 1000, Pods: 10_000}
	if err := c.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	nothing := review(t, c, reviewed.Comments, "--fail-on", "pending,moved,skew>0,findings=info,ignored")
	if !strings.HasPrefix(nothing, "0 pods move, 0 new findings: ") || strings.Contains(strings.TrimSpace(nothing), "\n\n") {
		t.Errorf("a change of comments: %s", nothing)
	}
	text := review(t, c, reviewed.Number, "-o", "markdown", "--fail-on", "pending,skew>1")
	if again := review(t, c, reviewed.Number, "-o", "markdown", "--fail-on", "pending,skew>1"); again != text {
		t.Error("the same review is another text")
	}
	if !strings.Contains(text, "`spread.zone.maxSkew: 5 → 1`") || strings.Contains(text, "- 0 pods move") {
		t.Errorf("it says:\n%.2000s", text)
	}
	if len(text) > 60_000 {
		t.Errorf("the comment has %d bytes", len(text))
	}
}
