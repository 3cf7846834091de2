// Package revision reads the files of a git revision.
//
// It maps a revision to a folder that holds its files, made by git's plumbing alone
// (rev-parse, ls-tree, cat-file): nothing is checked out, so that no hook, filter,
// attribute, pager or remote of the repository gets to run. What a stranger may have
// put into a revision is bounded: the number of files and bytes, links that lead out
// of it, submodules. The package must not know what the files are for.
package revision

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Repository is a git repository on this machine.
type Repository struct {
	// Root is the folder of its working tree, absolute and without symbolic links.
	Root string
	git  string
}

// hardening is what every call of git begins with: nothing of a repository's own
// configuration that would run a program or reach the network has a say.
var hardening = []string{
	"--no-pager", "--no-optional-locks", "--no-replace-objects", "--literal-pathspecs",
	"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.alternateRefsCommand=",
	"-c", "protocol.allow=never", "-c", "log.showSignature=false", "-c", "credential.helper=",
}

// passed are the variables of the environment that git is given: where it finds itself
// and the user's own configuration. Those that name programs to run are not among them.
var passed = []string{"PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES"}

// Open returns the repository that the folder is in. getenv reads the environment.
func Open(ctx context.Context, folder string) (*Repository, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, errors.New("revisions are read with git, and there is none on the PATH; install it")
	}
	r := &Repository{Root: folder, git: git}
	root, err := r.run(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, fmt.Errorf("%s is in no git repository with a working tree, whose revisions could be compared; \"git init\" makes one: %w", folder, err)
	}
	if r.Root, err = filepath.EvalSymlinks(strings.TrimSuffix(root, "\n")); err != nil {
		return nil, err
	}
	return r, nil
}

// Commit returns the hash of the commit that the revision names.
func (r *Repository) Commit(ctx context.Context, revision string) (string, error) {
	if revision == "" || strings.HasPrefix(revision, "-") {
		return "", fmt.Errorf("%q is no revision", revision)
	}
	hash, err := r.run(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", revision+"^{commit}")
	if err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", fmt.Errorf("there is no revision %q in %s; in CI fetch it first (a shallow clone has the newest commit alone)", revision, r.Root)
	}
	return strings.TrimSpace(hash), nil
}

// mains are what a main branch is called.
var mains = []string{"origin/HEAD", "origin/main", "origin/master", "main", "master"}

// Fork returns the commit at which the revision left the main branch, and the name of
// that branch.
func (r *Repository) Fork(ctx context.Context, revision string) (commit, branch string, err error) {
	for _, branch := range mains {
		if _, err := r.Commit(ctx, branch); err != nil {
			continue
		}
		if hash, err := r.run(ctx, "merge-base", "--end-of-options", branch, revision); err == nil {
			return strings.TrimSpace(hash), branch, nil
		}
	}
	if _, err := r.Commit(ctx, revision); err != nil && ctx.Err() == nil {
		return "", "", fmt.Errorf("%s has no commit yet to compare with; commit what was there before (\"git commit --allow-empty\" where there was nothing)", r.Root)
	}
	return "", "", errors.Join(ctx.Err(), fmt.Errorf("it cannot be told where %s left the main branch (none of %s is there); name the base with --base", revision, strings.Join(mains, ", ")))
}

// command returns a call of git in the repository.
func (r *Repository) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, r.git, append(append([]string{}, hardening...), args...)...)
	cmd.Dir = r.Root
	// A partial clone must not fetch what it lacks.
	cmd.Env = []string{"GIT_NO_LAZY_FETCH=1", "GIT_TERMINAL_PROMPT=0", "GIT_ATTR_NOSYSTEM=1", "LC_ALL=C"}
	for _, name := range passed {
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	return cmd
}

// run returns what a call of git prints.
func (r *Repository) run(ctx context.Context, args ...string) (string, error) {
	cmd := r.command(ctx, args...)
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		return "", gitError(ctx, args[0], err, problem.String())
	}
	return out.String(), nil
}

// gitError is what a call of git ended with.
func gitError(ctx context.Context, verb string, err error, said string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if line, _, _ := strings.Cut(strings.TrimSpace(said), "\n"); line != "" {
		return fmt.Errorf("git %s: %s", verb, strings.TrimPrefix(line, "fatal: "))
	}
	return fmt.Errorf("git %s: %w", verb, err)
}
