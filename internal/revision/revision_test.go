package revision_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-sched/kubectl-sched/internal/revision"
	"github.com/kubectl-sched/kubectl-sched/test/golden"
)

// repository is one that a test makes.
type repository struct {
	t   *testing.T
	dir string
}

func newRepository(t *testing.T) repository {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := repository{t, dir}
	r.git("", "init", "-q", "-b", "main")
	return r
}

// git runs git on its own, whatever the machine's is told, and returns what it prints.
func (r repository) git(stdin string, args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", args...)
	cmd.Dir, cmd.Stdin = r.dir, strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r repository) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r repository) commit() string {
	r.git("", "add", "-A")
	r.git("", "commit", "-q", "-m", "x")
	return r.git("", "rev-parse", "HEAD")
}

func (r repository) files(limits revision.Limits) (*revision.Tree, error) {
	r.t.Helper()
	opened, err := revision.Open(r.t.Context(), r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	commit, err := opened.Commit(r.t.Context(), "HEAD")
	if err != nil {
		r.t.Fatal(err)
	}
	return opened.Files(r.t.Context(), commit, limits)
}

func TestFiles(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	r.write("a/b.cue", "package a\n")
	r.write("a/new\nline \"ü\".yaml", "x: 1\n")
	r.write("empty", "")
	if err := os.Symlink("b.cue", filepath.Join(r.dir, "a", "link.cue")); err != nil {
		t.Fatal(err)
	}
	commit := r.commit()
	r.write("a/b.cue", "not committed")
	tree, err := r.files(revision.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a/b.cue": "package a\n", "a/new\nline \"ü\".yaml": "x: 1\n", "empty": "", "a/link.cue": "package a\n"}
	if diff := cmp.Diff(want, golden.Files(t, tree.Root)); diff != "" {
		t.Error(diff)
	}
	if tree.Commit != commit || len(tree.Refused) != 0 {
		t.Errorf("commit %s, refused %v", tree.Commit, tree.Refused)
	}
	if err := tree.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(tree.Root)); !errors.Is(err, os.ErrNotExist) {
		t.Error("the folder is still there")
	}
}

// TestNothingRuns holds that neither hooks, filters, attributes, a pager nor a monitor
// of the repository runs, nor a program that the environment names.
func TestNothingRuns(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	r := newRepository(t)
	r.write("a.yaml", "x: 1\n")
	r.write(".gitattributes", "* filter=evil diff=evil text eol=crlf\n")
	r.commit()
	program := "touch " + ran
	for _, key := range []string{"filter.evil.smudge", "filter.evil.clean", "filter.evil.process", "diff.evil.textconv", "core.fsmonitor", "core.pager", "core.sshCommand", "core.askPass", "credential.helper", "core.alternateRefsCommand"} {
		r.git("", "config", key, program)
	}
	for _, hook := range []string{"post-checkout", "post-index-change", "reference-transaction"} {
		r.write(".git/hooks/"+hook, "#!/bin/sh\n"+program+"\n")
		if err := os.Chmod(filepath.Join(r.dir, ".git", "hooks", hook), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_PROXY_COMMAND"} {
		t.Setenv(name, program)
	}
	tree, err := r.files(revision.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	if got := golden.Files(t, tree.Root)["a.yaml"]; got != "x: 1\n" {
		t.Errorf("the file is %q", got)
	}
	if err := tree.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(ran); !errors.Is(err, os.ErrNotExist) {
		t.Error("something of the repository ran")
	}
}

// TestLinksStayInside holds that no link leads out of the folder, by itself or through
// another.
func TestLinksStayInside(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRepository(t)
	r.write("deep/er/file", "x")
	for name, target := range map[string]string{
		"absolute": secret, "up": "../../../../../../../../etc/passwd", "down": "deep/er", "through": "down/../../../etc", "loop": "loop",
		"one": "two", "two": "one", "dangling": "nothing", "git": ".git/config", "fine": "down/file", "deep/er/top": "../../deep",
	} {
		if err := os.Symlink(target, filepath.Join(r.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	r.commit()
	tree, err := r.files(revision.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, name := range []string{"absolute", "up", "through", "loop", "one", "two", "dangling", "git"} {
		if tree.Refused[name] == "" {
			t.Errorf("%s is not refused", name)
		}
		if _, err := os.Lstat(filepath.Join(tree.Root, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is there", name)
		}
	}
	for _, name := range []string{"down", "fine", "deep/er/top"} {
		if why := tree.Refused[name]; why != "" {
			t.Errorf("%s is refused: %s", name, why)
		}
	}
}

// tree makes a commit of entries that no work tree could have.
func (r repository) tree(entries string) {
	hash := r.git(entries, "mktree", "--missing")
	r.git("", "update-ref", "HEAD", r.git("", "commit-tree", "-m", "x", hash))
}

func TestRefusedTrees(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		entry, want string
	}{
		"git's own":    {"100644 blob %s\t.GIT", "git's own"},
		"the parent":   {"100644 blob %s\t..", "no path inside"},
		"missing blob": {"100644 blob 0123456789012345678901234567890123456789\ta.yaml", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t)
			blob := r.git("x", "hash-object", "-w", "--stdin")
			r.tree(strings.ReplaceAll(test.entry, "%s", blob) + "\n")
			tree, err := r.files(revision.DefaultLimits)
			if err == nil {
				t.Fatalf("it is read: %v", golden.Files(t, tree.Root))
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v", err)
			}
		})
	}
	r := newRepository(t)
	r.tree("160000 commit 0123456789012345678901234567890123456789\tsub\n")
	tree, err := r.files(revision.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
	}()
	if tree.Refused["sub"] == "" || len(golden.Files(t, tree.Root)) != 0 {
		t.Errorf("a submodule is read: %v", tree.Refused)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	r.write("a.yaml", strings.Repeat("x", 100))
	r.write("b.yaml", strings.Repeat("y", 100))
	r.write("logo.png", strings.Repeat("z", 1000))
	r.commit()
	if _, err := r.files(revision.Limits{Files: 2, Bytes: 1 << 20, File: 1 << 20}); err == nil || !strings.Contains(err.Error(), "more than 2 files") {
		t.Errorf("too many files: %v", err)
	}
	if _, err := r.files(revision.Limits{Files: 9, Bytes: 150, File: 200}); err == nil || !strings.Contains(err.Error(), "MiB") {
		t.Errorf("too many bytes: %v", err)
	}
	if _, err := r.files(revision.Limits{Files: 9, Bytes: 1 << 20, File: 50}); err == nil || !strings.Contains(err.Error(), `"a.yaml"`) {
		t.Errorf("a large file: %v", err)
	}
	tree, err := r.files(revision.Limits{Files: 9, Bytes: 1 << 20, File: 200})
	if err != nil {
		t.Fatal(err)
	}
	if tree.Refused["logo.png"] == "" || len(golden.Files(t, tree.Root)) != 2 {
		t.Errorf("refused %v", tree.Refused)
	}
	if err := tree.Close(); err != nil {
		t.Error(err)
	}
}

// TestInterrupted holds that an end in the middle leaves nothing.
func TestInterrupted(t *testing.T) {
	temp := t.TempDir()
	r := newRepository(t)
	r.write("a.yaml", "x: 1\n")
	commit := r.commit()
	t.Setenv("TMPDIR", temp)
	opened, err := revision.Open(t.Context(), r.dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := opened.Files(ctx, commit, revision.DefaultLimits); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	left, err := os.ReadDir(temp)
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

func TestFork(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	r.write("a", "1")
	fork := r.commit()
	r.git("", "checkout", "-q", "-b", "change")
	r.write("a", "2")
	r.commit()
	opened, err := revision.Open(t.Context(), r.dir)
	if err != nil {
		t.Fatal(err)
	}
	commit, branch, err := opened.Fork(t.Context(), "HEAD")
	if err != nil || commit != fork || branch != "main" {
		t.Errorf("%s from %s: %v", commit, branch, err)
	}
	r.git("", "branch", "-q", "-m", "main", "other")
	if _, _, err := opened.Fork(t.Context(), "HEAD"); err == nil || !strings.Contains(err.Error(), "--base") {
		t.Errorf("without a main branch: %v", err)
	}
	empty, err := revision.Open(t.Context(), newRepository(t).dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := empty.Fork(t.Context(), "HEAD"); err == nil || !strings.Contains(err.Error(), "has no commit yet to compare with") {
		t.Errorf("without a commit: %v", err)
	}
	for _, bad := range []string{"", "-x", "--exec=touch", "nothing"} {
		if _, err := opened.Commit(t.Context(), bad); err == nil {
			t.Errorf("%q is a revision", bad)
		}
	}
}

// TestOutward holds that links out of a working tree are named, and no others.
func TestOutward(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	r.write("deep/file", "x")
	for name, target := range map[string]string{"absolute": os.DevNull, "up": "../../../etc", "deep/inside": "file", "deep/root": "..", "dangling": "nothing", "through": "up/passwd"} {
		if err := os.Symlink(target, filepath.Join(r.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	opened, err := revision.Open(t.Context(), r.dir)
	if err != nil {
		t.Fatal(err)
	}
	refused, err := opened.Outward(revision.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"absolute", "dangling", "through", "up"}, slices.Sorted(maps.Keys(refused))); diff != "" {
		t.Error(diff)
	}
	if _, err := opened.Outward(revision.Limits{Files: 2}); err == nil {
		t.Error("there is no limit to how many files are looked at")
	}
}
