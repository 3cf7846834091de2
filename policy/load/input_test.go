package load_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

const fine = "package placement\n\npolicies: %: {workloads: names: [\"a\"], spread: zone: strength: \"prefer\"}\n"

// document returns a document with one policy of that name.
func document(name string) []byte { return []byte(strings.ReplaceAll(fine, "%", name)) }

func symlink(t *testing.T, target, link string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
}

// TestBadInput gives the loader what is no document, or no file at all.
func TestBadInput(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		make      func(t *testing.T, dir string)
		rule, pos string // of the one finding; none if empty
		message   string // what it says, in part
	}{
		"link to a file inside": {
			make: func(t *testing.T, dir string) {
				write(t, filepath.Join(dir, "placement/.data/a.cue"), document("a"))
				symlink(t, ".data/a.cue", filepath.Join(dir, "placement/a.cue"))
			},
		},
		"link to a file outside": {
			make: func(t *testing.T, dir string) {
				write(t, filepath.Join(dir, "secret.cue"), document("a"))
				symlink(t, "../secret.cue", filepath.Join(dir, "placement/a.cue"))
			},
			rule: "input/symlink", pos: "placement/a.cue", message: "the link leads out of the folder",
		},
		"absolute link outside": {
			make: func(t *testing.T, dir string) {
				symlink(t, "/etc/passwd", filepath.Join(dir, "placement/a.cue"))
			},
			rule: "input/symlink", pos: "placement/a.cue", message: "the link leads out of the folder",
		},
		"link to a folder outside": {
			make: func(t *testing.T, dir string) {
				write(t, filepath.Join(dir, "other/a.cue"), document("a"))
				symlink(t, "../other", filepath.Join(dir, "placement/sub"))
				write(t, filepath.Join(dir, "placement/b.cue"), document("b"))
			},
			rule: "input/symlink", pos: "placement/sub", message: "the link leads out of the folder",
		},
		"link to itself": {
			make: func(t *testing.T, dir string) {
				symlink(t, "a.cue", filepath.Join(dir, "placement/a.cue"))
			},
			rule: "input/unreadable", pos: "placement/a.cue",
		},
		"folders in a circle": {
			make: func(t *testing.T, dir string) {
				write(t, filepath.Join(dir, "placement/a.cue"), document("a"))
				symlink(t, "..", filepath.Join(dir, "placement/sub/up"))
			},
		},
		"link to nothing": {
			make: func(t *testing.T, dir string) {
				symlink(t, "nowhere.cue", filepath.Join(dir, "placement/a.cue"))
			},
			rule: "input/unreadable", pos: "placement/a.cue", message: "no such file",
		},
		"a pipe": {
			make: func(t *testing.T, dir string) {
				write(t, filepath.Join(dir, "placement/b.cue"), document("b"))
				if err := syscall.Mkfifo(filepath.Join(dir, "placement/a.cue"), 0o644); err != nil {
					t.Fatal(err)
				}
			},
			rule: "input/unreadable", pos: "placement/a.cue", message: "not a regular file",
		},
		"100 MB": {
			make: func(t *testing.T, dir string) {
				file := filepath.Join(dir, "placement/a.cue")
				write(t, file, document("a"))
				if err := os.Truncate(file, 100<<20); err != nil {
					t.Fatal(err)
				}
			},
			rule: "input/limit", pos: "placement/a.cue", message: "larger than 16 MiB",
		},
		"no text": {
			make: func(t *testing.T, dir string) {
				write(t, filepath.Join(dir, "placement/a.cue"), []byte{0x7f, 'E', 'L', 'F', 0, 0, 1})
			},
			rule: "input/syntax", pos: "placement/a.cue:1:1",
		},
		"not UTF-8": {
			make: func(t *testing.T, dir string) {
				write(t, filepath.Join(dir, "placement/a.cue"), []byte("package placement\n// \xff\xfe\n"))
			},
			rule: "input/syntax", pos: "placement/a.cue:2:4",
		},
		"nested without end": {
			make: func(t *testing.T, dir string) {
				write(t, filepath.Join(dir, "placement/a.cue"), []byte("package placement\nparams: x: "+strings.Repeat("{a: ", 20000)+"1"+strings.Repeat("}", 20000)+"\n"))
			},
			rule: "input/syntax", pos: "placement/a.cue:2:", message: "maximum nesting depth",
		},
		"a module file that is a folder": {
			make: func(t *testing.T, dir string) {
				write(t, filepath.Join(dir, "placement/cue.mod/module.cue/x"), nil)
				write(t, filepath.Join(dir, "placement/a.cue"), document("a"))
			},
		},
		"a module file that links outside": {
			make: func(t *testing.T, dir string) {
				symlink(t, "/etc/passwd", filepath.Join(dir, "placement/cue.mod/module.cue"))
				write(t, filepath.Join(dir, "placement/a.cue"), document("a"))
			},
			rule: "input/symlink", pos: "placement/cue.mod/module.cue",
		},
		"an import that links outside": {
			make: func(t *testing.T, dir string) {
				write(t, filepath.Join(dir, "secret.cue"), []byte("package lib\n"))
				symlink(t, "../../../secret.cue", filepath.Join(dir, "placement/_x/lib/a.cue"))
				write(t, filepath.Join(dir, "placement/cue.mod/module.cue"), []byte("module: \"example.com/x@v0\"\nlanguage: version: \"v0.15.0\"\n"))
				write(t, filepath.Join(dir, "placement/a.cue"), []byte("package placement\nimport \"example.com/x/_x/lib\"\npolicies: lib\n"))
			},
			rule: "input/import", pos: "placement/a.cue:2:8", message: "leads out of the folder",
		},
		"other files are no matter": {
			make: func(t *testing.T, dir string) {
				write(t, filepath.Join(dir, "placement/a.cue"), document("a"))
				for _, name := range []string{"_draft.cue", ".hidden.cue", "x.yaml", "_drafts/a.cue", ".git/a.cue"} {
					write(t, filepath.Join(dir, "placement", name), []byte("broken: ["))
				}
				write(t, filepath.Join(dir, "placement/x_tool.cue"), []byte("package placement\nnot_a: \"policy\"\n"))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			test.make(t, dir)
			p, findings := load.Evaluate(context.Background(), load.Options{Dir: dir, Paths: []string{"placement"}})
			if test.rule == "" {
				if len(findings) > 0 || len(p.Policies) != 1 {
					t.Errorf("got %v, %v", p, findings)
				}
				return
			}
			if p != nil || len(findings) != 1 || findings[0].Rule != test.rule ||
				!strings.HasPrefix(findings[0].Range.Start.String(), test.pos) || !strings.Contains(findings[0].Message, test.message) {
				t.Errorf("got %v, rule %v", findings, rules(findings))
			}
			if strings.Contains(findings.Error(), dir) {
				t.Errorf("an absolute path is shown: %v", findings)
			}
		})
	}
}

func rules(fs diag.Findings) (names []string) {
	for _, f := range fs {
		names = append(names, f.Rule)
	}
	return names
}

// TestNoPermission holds for whoever is not root, whom nothing is denied.
func TestNoPermission(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "placement/a.cue"), document("a"))
	write(t, filepath.Join(dir, "placement/sub/b.cue"), document("b"))
	if err := os.Chmod(filepath.Join(dir, "placement/a.cue"), 0); err != nil {
		t.Fatal(err)
	}
	_, findings := load.Evaluate(context.Background(), load.Options{Dir: dir, Paths: []string{"placement"}})
	denied := slices.Contains(rules(findings), "input/unreadable")
	if root := os.Geteuid() == 0; denied == root {
		t.Errorf("got %v", findings)
	}
}

// TestHermetic holds that nothing outside decides what a document means.
func TestHermetic(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "placement/a.cue"), []byte("package placement\n\nimport \"example.com/a\"\n\npolicies: a\n"))
	// Were the environment read, this registry would be asked.
	t.Setenv("CUE_REGISTRY", "127.0.0.1:1+insecure")
	t.Setenv("CUE_CACHE_DIR", filepath.Join(dir, "cache"))
	start := time.Now()
	_, findings := load.Evaluate(context.Background(), load.Options{Dir: dir, Paths: []string{"placement"}})
	if len(findings) != 1 || findings[0].Rule != "input/import" || !strings.Contains(findings[0].Message, "--allow-registry") {
		t.Errorf("got %v", findings)
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
	_, findings = load.Evaluate(context.Background(), load.Options{Dir: dir, Paths: []string{"placement"}, AllowRegistry: true})
	if !findings.HasErrors() || strings.Contains(findings.Error(), "--allow-registry") {
		t.Errorf("with the registry allowed: got %v", findings)
	}
}

func TestTags(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "placement/a.cue"), []byte("package placement\n\n_team: string @tag(team)\npolicies: a: {workloads: namespaces: [_team], spread: zone: strength: \"prefer\"}\n"))
	p, findings := load.Evaluate(context.Background(), load.Options{Dir: dir, Paths: []string{"placement"}, Tags: []string{"team=shop"}})
	if len(findings) > 0 || p.Policies[0].Workloads.Namespaces[0] != "shop" {
		t.Errorf("got %v, %v", p, findings)
	}
	_, findings = load.Evaluate(context.Background(), load.Options{Dir: dir, Paths: []string{"placement"}, Tags: []string{"taem=shop"}})
	if !findings.HasErrors() {
		t.Error("an unknown tag is accepted")
	}
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p, findings := load.Evaluate(ctx, load.Options{Paths: []string{"../../examples/nightly-batch"}})
	if p != nil || len(findings) != 1 || findings[0].Rule != "input/interrupted" {
		t.Errorf("got %v, %v", p, findings)
	}
}

// TestNamedTwice holds that naming a folder twice, or a folder and one within,
// is naming it once.
func TestNamedTwice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "placement/a.cue"), document("a"))
	write(t, filepath.Join(dir, "placement/sub/b.cue"), document("b"))
	for _, paths := range [][]string{
		{"placement", "placement/sub"},
		{"placement/", "./placement"},
		{"placement/a.cue", "placement"},
		{filepath.Join(dir, "placement"), "placement"},
		{"."},
	} {
		p, findings := load.Evaluate(context.Background(), load.Options{Dir: dir, Paths: paths})
		if len(findings) > 0 || len(p.Policies) != 2 {
			t.Errorf("%q: got %v, %v", paths, p, findings)
		}
	}
}

// TestTestThatIsNotRead holds that a file whose tests would never run is a finding.
func TestTestThatIsNotRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "placement/a.cue"), document("a"))
	write(t, filepath.Join(dir, "placement/x_test.cue"), []byte("package placement\ntests: t: expect: noFindings: true\n"))
	p, findings := load.Evaluate(t.Context(), load.Options{Dir: dir, Paths: []string{"placement"}})
	if p == nil || len(findings) != 1 || findings[0].Rule != "policy/unread-test" || findings[0].Range.Start.File != "placement/x_test.cue" {
		t.Errorf("%v", findings)
	}
}
