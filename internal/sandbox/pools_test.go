package sandbox

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestParsePools parses pools.yaml of each archive and compares what comes of it
// with the file "want": the nodes, as name and what is set on them, or the
// findings. UPDATE=1 rewrites the archives.
func TestParsePools(t *testing.T) {
	t.Parallel()
	archives, err := filepath.Glob("testdata/pools/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, path := range archives {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var got []byte
			pools, err := ParsePools("pools.yaml", archive.Files[0].Data)
			if err != nil {
				got = []byte(err.Error() + "\n")
			} else {
				got = describe(t, pools)
			}
			if os.Getenv("UPDATE") == "1" {
				archive.Files = []txtar.File{archive.Files[0], {Name: "want", Data: got}}
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if len(archive.Files) != 2 {
				t.Fatal("the archive has no file \"want\"; run with UPDATE=1")
			}
			if diff := cmp.Diff(string(archive.Files[1].Data), string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// describe lists the nodes of pools, one a line.
func describe(t *testing.T, pools []Pool) []byte {
	t.Helper()
	var out []byte
	for _, pool := range pools {
		for index := range pool.Count {
			wanted, err := json.Marshal(pool.wanted(index))
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, pool.nodeName(index)+" "+string(wanted)+"\n"...)
		}
	}
	return out
}

// FuzzParsePools asks only that any file ends in pools or in findings that say
// where.
func FuzzParsePools(f *testing.F) {
	archives, err := filepath.Glob("testdata/pools/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range archives {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(archive.Files[0].Data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		pools, err := ParsePools("pools.yaml", data)
		if err != nil && pools != nil {
			t.Error("pools and an error")
		}
		for _, pool := range pools {
			if pool.Count > 0 {
				if _, err := pool.newNode(pool.Count - 1); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// TestMergeKeepsOthers changes a node twice, as two versions of a file would,
// with a stranger's label, taint and annotation put on it in between.
func TestMergeKeepsOthers(t *testing.T) {
	t.Parallel()
	spot := corev1.Taint{Key: "spot", Effect: corev1.TaintEffectNoSchedule}
	theirs := corev1.Taint{Key: "theirs", Effect: corev1.TaintEffectNoExecute}
	first := Pool{
		Name: "a", Count: 1, Labels: map[string]string{"x": "1", "old": "y"}, Taints: []corev1.Taint{spot},
		Annotations: map[string]string{"gone": "soon"},
	}
	node, err := first.newNode(0)
	if err != nil {
		t.Fatal(err)
	}
	node.Labels["their"] = "label"
	node.Annotations["their"] = "annotation"
	node.Spec.Taints = append(node.Spec.Taints, theirs)
	node.Spec.Unschedulable = true // cordoned by hand

	changed := spot
	changed.Value = "yes"
	second := Pool{
		Name: "a", Count: 1, Labels: map[string]string{"x": "2"}, Taints: []corev1.Taint{changed},
		Capacity: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")},
	}
	if err := second.wanted(0).merge(node, second.Name); err != nil {
		t.Fatal(err)
	}
	wantLabels := map[string]string{
		"x": "2", "their": "label",
		"kubernetes.io/hostname": "a-0", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
		"beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "amd64",
	}
	if diff := cmp.Diff(wantLabels, node.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]corev1.Taint{changed, theirs}, node.Spec.Taints); diff != "" {
		t.Errorf("taints (-want +got):\n%s", diff)
	}
	if _, there := node.Annotations["gone"]; there || node.Annotations["their"] != "annotation" {
		t.Errorf("annotations: %v", node.Annotations)
	}
	if !node.Spec.Unschedulable {
		t.Error("the cordon of another is gone")
	}
	if same, err := second.wanted(0).isApplied(node, "a"); err != nil || !same {
		t.Errorf("isApplied after merge: %v, %v", same, err)
	}
	if same, err := first.wanted(0).isApplied(node, "a"); err != nil || same {
		t.Errorf("isApplied of what was before: %v, %v", same, err)
	}
}
