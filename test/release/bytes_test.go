package release_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-sched/kubectl-sched/internal/release"
	"github.com/kubectl-sched/kubectl-sched/internal/release/gobuild"
)

// TestSameBytes holds that a release made of a copy of the source, in another folder
// and without git, is the same to the byte.
func TestSameBytes(t *testing.T) {
	t.Parallel()
	first := sums(t, made.get(t))
	source, second := t.TempDir(), t.TempDir()
	if err := copySource(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	if err := makeRelease(t.Context(), source, second, commit(t)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, sums(t, second)); diff != "" {
		t.Errorf("(-first +second):\n%s", diff)
	}
}

// sums returns the checksums of all files in a folder, by name.
func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		sum := sha256.Sum256(data)
		all[filepath.ToSlash(name)] = hex.EncodeToString(sum[:])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestChecksums holds that the file with the checksums is right, has everything that
// is downloaded of the plugin, and is in the form that "sha256sum --check" reads.
func TestChecksums(t *testing.T) {
	t.Parallel()
	dir := made.get(t)
	text, err := os.ReadFile(filepath.Join(dir, release.Checksums))
	if err != nil {
		t.Fatal(err)
	}
	archive := release.ArchiveName(version, host)
	bill := strings.Join([]string{"kubectl-sched", version, host.OS, host.Arch}, "_") + ".cdx.json"
	listed := map[string]string{}
	for line := range strings.Lines(string(text)) {
		sum, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok {
			t.Errorf("a line is %q", line)
		}
		listed[name] = sum
	}
	if diff := cmp.Diff([]string{bill, archive, "sched.yaml"}, slices.Sorted(maps.Keys(listed))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, sum := range sums(t, dir) {
		if want, ok := listed[name]; ok && sum != want {
			t.Errorf("%s has the checksum %s, and %s is said", name, sum, want)
		}
	}
}

// TestRefused holds that what cannot be released is not begun.
func TestRefused(t *testing.T) {
	t.Parallel()
	good := release.Options{Root: root, Version: version, Commit: strings.Repeat("0123456789", 4), At: at, Dist: t.TempDir(), Say: t.Logf}
	for want, change := range map[string]func(*release.Options){
		`version "1.2.3" is none`:             func(o *release.Options) { o.Version = "1.2.3" },
		`version "v1.2.3+build" is none`:      func(o *release.Options) { o.Version = "v1.2.3+build" },
		`commit "HEAD" is none`:               func(o *release.Options) { o.Commit = "HEAD" },
		"is SOURCE_DATE_EPOCH set":            func(o *release.Options) { o.At = o.At.AddDate(-60, 0, 0) },
		"there is no release for plan9/amd64": func(o *release.Options) { o.Platforms = []gobuild.Platform{{OS: "plan9", Arch: "amd64"}} },
		"no folder to write to":               func(o *release.Options) { o.Dist = "" },
	} {
		o := good
		change(&o)
		for name, run := range map[string]func(context.Context, release.Options) error{"archives": release.Archives, "image": release.Image} {
			if err := run(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, not %q", name, err, want)
			}
		}
	}
	if left, err := os.ReadDir(good.Dist); err != nil || len(left) > 0 {
		t.Errorf("something was written: %v, %v", left, err)
	}
}
