//go:build unix

package workload

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// inTime runs Read, which must not wait for anybody.
func inTime(t *testing.T, in Input) (*Set, diag.Findings) {
	t.Helper()
	type answer struct {
		set      *Set
		findings diag.Findings
	}
	done := make(chan answer, 1)
	go func() {
		set, findings := Read(context.Background(), in, Options{})
		done <- answer{set, findings}
	}()
	select {
	case a := <-done:
		return a.set, a.findings
	case <-time.After(20 * time.Second):
		t.Fatal("reading waits for ever")
		return nil, nil
	}
}

func TestReadWhatIsNoFile(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"good.yaml": fmt.Sprintf(deployment, "good"), "k/kustomization.yaml": "resources:\n- pipe.yaml\n", "p/kustomization.yaml": "resources: [x.yaml]\npatches:\n- path: pipe.yaml\n", "p/x.yaml": fmt.Sprintf(deployment, "x")})
	for _, name := range []string{"pipe.yaml", "k/pipe.yaml", "p/pipe.yaml"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	short, err := os.MkdirTemp("", "s") //nolint:usetesting // a socket's name must be shorter than a test's folder
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	listener, err := net.Listen("unix", filepath.Join(short, "socket.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	if err := os.Symlink(filepath.Join(dir, "pipe.yaml"), filepath.Join(dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	hint := ", not a file; write the manifests to a file, or give them on standard input (-f -)"
	for name, test := range map[string]struct {
		in   Input
		want []string
	}{
		"folder":        {Input{Files: []string{dir}}, []string{"input/unreadable DIR/link.yaml: it is a named pipe" + hint, "input/unreadable DIR/pipe.yaml: it is a named pipe" + hint}},
		"named":         {Input{Files: []string{filepath.Join(dir, "pipe.yaml"), filepath.Join(dir, "good.yaml")}}, []string{"input/unreadable DIR/pipe.yaml: it is a named pipe" + hint}},
		"socket":        {Input{Files: []string{filepath.Join(dir, "good.yaml"), short}}, []string{"input/unreadable SHORT/socket.yaml: it is a socket" + hint}},
		"device":        {Input{Files: []string{"/dev/null", filepath.Join(dir, "good.yaml")}}, []string{"input/unreadable /dev/null: it is a device" + hint}},
		"kustomization": {Input{Kustomize: filepath.Join(dir, "k"), Files: []string{filepath.Join(dir, "good.yaml")}}, []string{`input/unreadable DIR/k/kustomization.yaml:2:3: "pipe.yaml" is a named pipe, not a file`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set, findings := inTime(t, test.in)
			got := lines(findings, dir)
			for i := range got {
				got[i] = strings.ReplaceAll(got[i], short, "SHORT")
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]string{"Deployment default/good"}, refs(set)); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("patch", func(t *testing.T) {
		t.Parallel()
		_, findings := inTime(t, Input{Kustomize: filepath.Join(dir, "p")})
		if len(findings) != 1 || !strings.Contains(findings[0].Message, "named pipe") {
			t.Errorf("findings are %v", findings)
		}
	})
}

// TestReadDescriptors reads what shells put in the place of <(command).
func TestReadDescriptors(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		_, _ = fmt.Fprintf(w, deployment, "piped")
		_ = w.Close()
	}()
	set, findings := inTime(t, Input{Files: []string{fmt.Sprintf("/dev/fd/%d", r.Fd())}})
	if diff := cmp.Diff([]string{"Deployment default/piped"}, refs(set)); diff != "" || len(findings) > 0 {
		t.Error(diff, findings)
	}
}

// TestReadWithoutPermission puts an open in the place of the system's: root, whom
// tests may run as, is refused no file.
func TestReadWithoutPermission(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"a.yaml": "", "b.yaml": fmt.Sprintf(deployment, "b")})
	g := &gatherer{in: Input{Files: []string{dir}}, max: DefaultMaxFileSize, open: func(name string) (fs.File, error) {
		if filepath.Base(name) == "a.yaml" {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
		}
		return os.Open(name)
	}}
	g.gather(context.Background())
	want := []string{"input/unreadable DIR/a.yaml: it cannot be read: permission denied"}
	if diff := cmp.Diff(want, lines(g.findings, dir)); diff != "" || len(g.files) != 1 {
		t.Error(diff, g.files)
	}
}

// TestReadWhatCannotBeOpened names a link that leads to itself.
func TestReadWhatCannotBeOpened(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"b.yaml": fmt.Sprintf(deployment, "b")})
	loop := filepath.Join(dir, "loop.yaml")
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	set, findings := Read(context.Background(), Input{Files: []string{loop, filepath.Join(dir, "b.yaml")}}, Options{})
	want := []string{"input/unreadable DIR/loop.yaml: it cannot be read: too many levels of symbolic links"}
	if diff := cmp.Diff(want, lines(findings, dir)); diff != "" || len(set.Workloads) != 1 {
		t.Error(diff)
	}
}
