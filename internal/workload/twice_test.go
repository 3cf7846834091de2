package workload

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReadTheSameFileTwice names files in all the ways in which somebody comes to
// name one twice.
func TestReadTheSameFileTwice(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"a.yaml": fmt.Sprintf(deployment, "a"), "sub/b.yaml": fmt.Sprintf(deployment, "b")})
	a := filepath.Join(dir, "a.yaml")
	for _, files := range [][]string{{a, a}, {a, dir}, {dir, a}, {a, filepath.Join(dir, "sub", "..", "a.yaml")}} {
		set, findings := Read(context.Background(), Input{Files: files}, Options{})
		if diff := cmp.Diff([]string{"Deployment default/a"}, refs(set)); diff != "" || len(findings) > 0 {
			t.Errorf("%v: %s %v", files, diff, findings)
		}
	}
}

func TestReadTheSameObjectTwice(t *testing.T) {
	t.Parallel()
	config := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: shop}\n"
	dir := folder(t, map[string]string{
		"a.yaml": fmt.Sprintf(deployment, "web") + "---\n" + config,
		"b.yaml": config + "---\n" + fmt.Sprintf(deployment, "web") + "---\n" + fmt.Sprintf(deployment, "other"),
		"c.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {generateName: x-}\nspec: {}\n---\napiVersion: v1\nkind: Pod\nmetadata: {generateName: x-}\nspec: {}\n",
	})
	_, findings := Read(context.Background(), Input{Files: []string{dir}}, Options{})
	want := []string{
		"input/duplicate DIR/b.yaml:1:1: ConfigMap shop/c: it is there twice, and of two the last one counts where both are applied; keep one",
		"input/duplicate DIR/b.yaml:5:1: Deployment default/web: it is there twice, and of two the last one counts where both are applied; keep one",
	}
	if diff := cmp.Diff(want, lines(findings, dir)); diff != "" {
		t.Fatal(diff)
	}
	for i, at := range []string{"a.yaml:13:1", "a.yaml:1:1"} {
		if got := findings[i].Related[0].Range.Start.String(); got != filepath.Join(dir, at) {
			t.Errorf("the first is said to be at %s, want %s", got, at)
		}
	}
}
