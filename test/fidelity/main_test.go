// Package fidelity_test holds that what the simulator says is what the scheduler
// does. Generated cases run on a real control plane, with the bundled scheduler
// writing down each cycle; the simulator follows the recording and must agree
// (internal/simulate/replay says in what). docs/fidelity.md says what is covered.
package fidelity_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-sched/kubectl-sched/internal/sandbox"
	"github.com/kubectl-sched/kubectl-sched/internal/sandbox/sandboxtest"
)

var (
	shared sandboxtest.Shared
	// turn is of the test that has the cluster to itself: what one creates, another
	// would count.
	turn sync.Mutex
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(shared.Run(m))
}

// newLab returns the control plane, to be had by one test at a time, with what all
// cases share.
func newLab(t *testing.T) *lab {
	t.Helper()
	turn.Lock()
	t.Cleanup(turn.Unlock)
	sb := shared.Get(t)
	l := &lab{sandbox: sb, client: sb.Client()}
	var err error
	if l.dynamic, err = dynamic.NewForConfig(sb.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	if err := l.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l
}

// lab is the control plane, maybe with a scheduler that is recorded.
type lab struct {
	sandbox   *sandbox.Sandbox
	client    kubernetes.Interface
	dynamic   dynamic.Interface
	recording string // the file; empty without that scheduler
	watch     *watcher
}

// startScheduler starts the scheduler, which ends with the test.
func (l *lab) startScheduler(t *testing.T) {
	t.Helper()
	l.recording = filepath.Join(t.TempDir(), "attempts.jsonl")
	if *keep != "" {
		l.recording = *keep
	}
	binary, err := sandboxtest.SchedulerBinary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "scheduler.yaml")
	if err := os.WriteFile(config, []byte(configuration(l.sandbox.Kubeconfig())), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "scheduler.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	process := exec.Command(binary, "--config="+config, "--secure-port=0", "--v=2", "--record-attempts="+l.recording)
	process.Stdout, process.Stderr = log, log
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = process.Wait() // killed is how it ends
		if data, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("the scheduler's log ends:\n%s", tail(string(data), 10))
		}
	})
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		lease, err := l.client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, "placement-scheduler", metav1.GetOptions{})
		return err == nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "", nil
	})
	if err != nil {
		data, readErr := os.ReadFile(log.Name())
		t.Fatalf("the scheduler does not take its lease: %v\n%s", errors.Join(err, readErr), tail(string(data), 30))
	}
	l.watch = &watcher{at: map[string]time.Time{}}
	ctx, cancel := context.WithCancel(t.Context())
	followed := make(chan error, 1)
	go func() { followed <- l.watch.follow(ctx, l.recording) }()
	t.Cleanup(func() {
		cancel()
		if err := <-followed; err != nil {
			t.Error(err)
		}
	})
}

// tail returns the last lines of text.
func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
