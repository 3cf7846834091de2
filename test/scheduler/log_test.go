package scheduler_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/kubectl-sched/kubectl-sched/internal/sandbox/sandboxtest"
)

// TestJSONLog holds that --logging-format=json makes every line that the scheduler
// writes, from its first, an object with a time and a message.
func TestJSONLog(t *testing.T) {
	t.Parallel()
	withoutAPI.start(t)
	l := newLab(t, withoutAPI, 0)
	binary, err := sandboxtest.SchedulerBinary()
	if err != nil {
		t.Fatal(err)
	}
	const name = "json-scheduler"
	dir := t.TempDir()
	command, err := startProcess(binary, dir, name, fmt.Sprintf(`
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %q}
leaderElection: {resourceName: %s}
profiles:
- schedulerName: %s
  plugins: {multiPoint: {enabled: [{name: Gang}]}}
`, withoutAPI.sandbox.Kubeconfig(), name, name), "--logging-format=json")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	t.Cleanup(func() {
		_ = command.Process.Kill() // it may have ended, as where the format is unknown
		<-ended
	})
	var log []byte
	l.until("it leads and says so", func(context.Context) (bool, string) {
		log, err = os.ReadFile(filepath.Join(dir, name+".log"))
		return err == nil && bytes.Contains(log, []byte("Successfully acquired lease")), string(log)
	})
	whole := log[:bytes.LastIndexByte(log, '\n')] // the last line may be in the making
	for line := range bytes.Lines(whole) {
		var said struct {
			Time    float64 `json:"ts"`
			Message string  `json:"msg"`
		}
		if err := json.Unmarshal(line, &said); err != nil || said.Time == 0 || said.Message == "" {
			t.Errorf("%q: %v", line, err)
		}
	}
}
