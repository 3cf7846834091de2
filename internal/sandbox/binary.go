package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// BinaryEnv is the environment variable that names a sched-sandbox binary to
// use, so that nothing is built.
const BinaryEnv = "SCHED_SANDBOX_BIN"

// mainPackage is the package of the sched-sandbox binary.
const mainPackage = "github.com/kubectl-sched/kubectl-sched/cmd/sched-sandbox"

// Binary returns the path of the sched-sandbox binary: the one that BinaryEnv
// names, or this program if it is one, or else one that it builds from the
// module around the working folder, into a cache. The first build takes some
// minutes; the next, without a change, about a second. Processes that call it at
// the same time wait for one build.
func Binary(ctx context.Context) (string, error) {
	if path := os.Getenv(BinaryEnv); path != "" {
		path, err := filepath.Abs(path)
		if err != nil {
			return "", fmt.Errorf("%s: %w", BinaryEnv, err)
		}
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%s: %w", BinaryEnv, err)
		}
		return path, nil
	}
	if self, err := os.Executable(); err == nil && filepath.Base(self) == "sched-sandbox" {
		return self, nil
	}
	module, err := goOutput(ctx, "env", "GOMOD")
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w", err)
	}
	// One folder a checkout: two of them must not undo each other's builds.
	dir := filepath.Join(cache, "kubectl-sched", "sandbox-bin", fmt.Sprintf("%x", sha256.Sum256([]byte(module)))[:12])
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("create cache folder: %w", err)
	}
	unlock, err := lockBuild(ctx, filepath.Join(dir, "lock"))
	if err != nil {
		return "", fmt.Errorf("wait for another build of sched-sandbox: %w", err)
	}
	defer unlock()
	path := filepath.Join(dir, "sched-sandbox")
	release, err := goOutput(ctx, "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	if err != nil {
		return "", err
	}
	// The version that the API server reports is a linker flag of upstream's.
	flags := "-ldflags=-s -w -X k8s.io/component-base/version.gitVersion=" + release
	// The go command knows whether the binary is up to date.
	if _, err := goOutput(ctx, "build", flags, "-o", path, mainPackage); err != nil {
		return "", fmt.Errorf("build sched-sandbox: %w", err)
	}
	return path, nil
}

// goOutput runs the go command and returns what it prints, trimmed. Its error
// holds what the command said.
func goOutput(ctx context.Context, args ...string) (string, error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w: %s", args[0], err, strings.TrimSpace(errs.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

// lockBuild takes the lock that path is, waiting until ctx is over.
func lockBuild(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if err != syscall.EWOULDBLOCK && err != syscall.EINTR {
			_ = file.Close()
			return nil, err
		}
		select {
		case <-ctx.Done():
			_ = file.Close()
			return nil, context.Cause(ctx)
		case <-ticker.C:
		}
	}
}
