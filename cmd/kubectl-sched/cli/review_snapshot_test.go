package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
)

// TestSnapshotBomb holds that what is small as a file, and large unpacked, is read no
// further than the limit.
func TestSnapshotBomb(t *testing.T) {
	t.Parallel()
	s := &snapshot.Snapshot{}
	for i := range 400 {
		s.Nodes = append(s.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i), Labels: map[string]string{"a": strings.Repeat("x", 50_000)}}})
	}
	file := filepath.Join(t.TempDir(), "bomb.snapshot")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := snapshot.Write(f, s, "test"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	const limit = 4 << 20
	if info.Size() > limit/4 {
		t.Fatalf("the bomb has %d bytes as a file", info.Size())
	}
	if _, err := readSnapshotOf(file, snapshot.Limits{Bytes: limit}); err == nil || !strings.Contains(err.Error(), "bomb.snapshot") {
		t.Errorf("with a limit of 4 MiB: %v", err)
	}
	if _, err := readSnapshotOf(file, snapshot.Limits{Bytes: 64 << 20}); err != nil {
		t.Errorf("with a limit of 64 MiB: %v", err)
	}
}
