// Package reviewed writes a repository with a change to review, and a snapshot of the
// cluster that it is for: pools over three zones, hundreds of workloads, and pods that
// run as the policies of the main branch say. What it writes is the same each time.
//
// Tests, benchmarks and screenshots share it. The package must not know how a review
// is made: it runs git and the plugin's compile alone.
package reviewed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The branches of the repository.
const (
	// Main is what is compared with.
	Main = "main"
	// Comments differs from it in comments alone.
	Comments = "comments"
	// Number differs in one number, a maxSkew.
	Number = "number"
	// Change is a change as people make them: several policies, a new workload, and
	// two mistakes.
	Change = "change"
)

// Case is where to write, and how large.
type Case struct {
	// Plugin is the program that compiles what runs in the cluster.
	Plugin string
	// Dir is a folder that exists. The repository is Dir/repository, and the snapshot
	// Dir/prod.snapshot.
	Dir string
	// Nodes and Pods are how many the cluster has, about.
	Nodes, Pods int
}

// Repository is the folder of the repository.
func (c Case) Repository() string { return filepath.Join(c.Dir, "repository") }

// Snapshot is the file of the snapshot.
func (c Case) Snapshot() string { return filepath.Join(c.Dir, "prod.snapshot") }

// Write writes the repository and the snapshot.
func (c Case) Write(ctx context.Context) error {
	workloads := c.workloads()
	if err := c.git(ctx, "init", "-q", "-b", Main, "."); err != nil {
		return err
	}
	for _, w := range workloads {
		if err := c.file("manifests/"+w.namespace+"/"+w.name+".yaml", w.manifest()); err != nil {
			return err
		}
	}
	if err := c.commit(ctx, policies(5, "prefer", ""), "base"); err != nil {
		return err
	}
	compiled, err := c.compile(ctx)
	if err != nil {
		return err
	}
	if err := c.writeSnapshot(workloads, compiled); err != nil {
		return err
	}
	for _, branch := range []struct{ name, text string }{
		{Comments, "// What the shop's policies are for is in the handbook.\n" + policies(5, "prefer", "")},
		{Number, policies(1, "prefer", "")},
	} {
		if err := c.git(ctx, "checkout", "-q", "-b", branch.name, Main); err != nil {
			return err
		}
		if err := c.commit(ctx, branch.text, branch.name); err != nil {
			return err
		}
	}
	if err := c.git(ctx, "checkout", "-q", "-b", Change, Main); err != nil {
		return err
	}
	if err := c.file("manifests/shop/wishlist.yaml", wishlist); err != nil {
		return err
	}
	if err := c.commit(ctx, policies(1, "require", quorum), Change); err != nil {
		return err
	}
	return c.git(ctx, "checkout", "-q", Main)
}

func (c Case) file(name, text string) error {
	path := filepath.Join(c.Repository(), filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

func (c Case) commit(ctx context.Context, text, message string) error {
	if err := c.file("placement/placement.cue", text); err != nil {
		return err
	}
	if err := c.git(ctx, "add", "-A"); err != nil {
		return err
	}
	return c.git(ctx, "commit", "-q", "-m", message)
}

// git runs git in the repository, with nothing of the machine's own configuration.
// Commits have fixed dates, so that their hashes are the same each time.
func (c Case) git(ctx context.Context, args ...string) error {
	if err := os.MkdirAll(c.Repository(), 0o755); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = c.Repository()
	const date = "2026-11-02T09:30:00Z"
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_DATE="+date, "GIT_COMMITTER_DATE="+date,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// compile returns the manifests as the policies make them.
func (c Case) compile(ctx context.Context) ([]byte, error) {
	cmd := exec.CommandContext(ctx, c.Plugin, "compile", "-p", "placement", "-f", "manifests", "-R", "-o", "manifests")
	cmd.Dir = c.Repository()
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("compile: %w\n%s", err, exit.Stderr)
	}
	return out, err
}
