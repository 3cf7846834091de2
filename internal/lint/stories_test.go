package lint_test

import (
	"testing"

	"github.com/kubectl-sched/kubectl-sched/internal/lint"
)

// TestStories holds that what people have reported elsewhere is found: the fixtures
// of the rules begin with the situations, and say where they come from.
func TestStories(t *testing.T) {
	t.Parallel()
	for _, story := range []struct {
		name  string
		rules []string
	}{
		{"a spread without a selector constrains nothing", []string{"workload/spread-no-selector"}},
		{"a rolling restart ends uneven", []string{"workload/spread-rollout"}},
		{"a tainted control plane counts as a domain", []string{"workload/spread-tainted-nodes"}},
		{"one zone exists so far", []string{"workload/spread-one-domain", "workload/min-domains", "compile/pending-for-domains"}},
		{"the topology key is missing on nodes", []string{"workload/topology-missing"}},
		{"anti-affinity leaves a rollout no node", []string{"workload/rollout-deadlock", "compile/rollout-deadlock"}},
		{"a lone preference loses to other scores", []string{"workload/lone-preference"}},
		{"two terms were meant as AND", []string{"workload/terms-are-alternatives"}},
		{"the hostname label is not the name", []string{"workload/hostname-is-not-name"}},
		{"a DaemonSet skips nodes and looks healthy", []string{"workload/daemonset-skips", "compile/daemonset-skips"}},
		{"minMember is above replicas or quota", []string{"workload/gang-min-above-replicas", "workload/gang-above-quota", "compile/gang"}},
		{"nobody removes a gate", []string{"workload/gate-unremoved", "cluster/gated-pods"}},
		{"arguments in the wrong place, or of the wrong type", []string{"scheduler/unknown-field", "scheduler/wrong-point", "scheduler/args", "scheduler/idle-args"}},
		{"replicas and placement belong to somebody else", []string{"workload/replicas-owned", "workload/placement-owned"}},
		{"two schedulers share nodes", []string{"cluster/shared-nodes"}},
		{"the autoscaler does not know the profile", []string{"workload/profile-not-autoscaled"}},
		{"a mistyped argument would crash the scheduler", []string{"scheduler/args", "scheduler/invalid"}},
	} {
		t.Run(story.name, func(t *testing.T) {
			t.Parallel()
			for _, id := range story.rules {
				failing, _ := fixture(t, id)
				found := append(failing.compiled, lint.Check(failing.input)...)
				if len(of(id, found)) == 0 {
					t.Errorf("%s finds nothing of it", id)
				}
			}
		})
	}
}
