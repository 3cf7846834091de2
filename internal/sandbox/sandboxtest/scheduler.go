package sandboxtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// schedulerEnv names a built placement-scheduler, so that tests build none.
const schedulerEnv = "SCHED_SCHEDULER_BIN"

// buildLimit is for a first build on two busy cores.
const buildLimit = 15 * time.Minute

// buildScheduler builds the scheduler once a run.
var buildScheduler = sync.OnceValues(func() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "kubectl-sched", "placement-scheduler-test")
	ctx, cancel := context.WithTimeout(context.Background(), buildLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/kubectl-sched/kubectl-sched/cmd/placement-scheduler").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build placement-scheduler: %w\n%s", err, out)
	}
	return path, nil
})

// SchedulerBinary returns the path of the bundled scheduler: the one that the
// environment names, else one that is built once a run.
func SchedulerBinary() (string, error) {
	if path := os.Getenv(schedulerEnv); path != "" {
		return filepath.Abs(path)
	}
	return buildScheduler()
}
