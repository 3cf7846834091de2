package fidelity_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/capture"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate/engine"
)

// stock is the default profile.
func stock(t *testing.T) []config.KubeSchedulerProfile {
	t.Helper()
	if err := engine.Gates(); err != nil {
		t.Fatal(err)
	}
	c, err := latest.Default()
	if err != nil {
		t.Fatal(err)
	}
	return c.Profiles
}

// snapshot captures the sandbox as a user would.
func (l *lab) snapshot(ctx context.Context) (*snapshot.Snapshot, error) {
	client, err := cluster.Connect(l.sandbox.RESTConfig())
	if err != nil {
		return nil, err
	}
	s, _, err := capture.Capture(ctx, client, capture.Options{Name: "fidelity", Now: time.Now})
	return s, err
}

// world returns the world of the snapshot, in which ties are noted by the decider.
func world(t *testing.T, s *snapshot.Snapshot, d engine.Decider) *simulate.World {
	t.Helper()
	w, err := simulate.NewWorld(t.Context(), s, engine.Options{Profiles: stock(t), Seed: 1, Decider: d})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// listener is a Decider that notes between which nodes it may choose.
type listener struct {
	best []string
	room string
}

var _ engine.Decider = &listener{}

func (*listener) See(string)                   {}
func (*listener) Fail(*corev1.Pod)             {}
func (*listener) Evict(*corev1.Pod) bool       { return false }
func (*listener) Came(*corev1.Pod) (int, bool) { return 0, false }

func (l *listener) Room() string { return l.room }

func (l *listener) Place(_ *corev1.Pod, best []string) string {
	l.best = best
	return best[0]
}
