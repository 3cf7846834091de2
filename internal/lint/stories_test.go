package lint_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-sched/kubectl-sched/internal/lint"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// TestStories holds that what people have reported elsewhere is found: the fixtures
// of the rules begin with the situations, and say where they come from. The rows that are
// not here are of what happens in a running scheduler, but for 21, which is TestStoryOfAnEmptyTest.
func TestStories(t *testing.T) {
	t.Parallel()
	for _, story := range []struct {
		row   int // of the list of situations
		name  string
		rules []string
	}{
		{1, "a spread without a selector constrains nothing", []string{"workload/spread-no-selector"}},
		{2, "a rolling restart ends uneven", []string{"workload/spread-rollout"}},
		{3, "a tainted control plane counts as a domain", []string{"workload/spread-tainted-nodes"}},
		{4, "one zone exists so far", []string{"workload/spread-one-domain", "workload/min-domains", "compile/pending-for-domains"}},
		{5, "the topology key is missing on nodes", []string{"workload/topology-missing"}},
		{6, "anti-affinity leaves a rollout no node", []string{"workload/rollout-deadlock", "compile/rollout-deadlock"}},
		{7, "a lone preference loses to other scores", []string{"workload/lone-preference"}},
		{8, "two terms were meant as AND", []string{"workload/terms-are-alternatives"}},
		{9, "the hostname label is not the name", []string{"workload/hostname-is-not-name"}},
		{10, "a DaemonSet skips nodes and looks healthy", []string{"workload/daemonset-skips", "compile/daemonset-skips"}},
		{14, "minMember is above replicas or quota", []string{"workload/gang-min-above-replicas", "workload/gang-above-quota", "compile/gang"}},
		{15, "nobody removes a gate", []string{"workload/gate-unremoved", "cluster/gated-pods"}},
		{16, "arguments in the wrong place, or of the wrong type", []string{"scheduler/unknown-field", "scheduler/wrong-point", "scheduler/args", "scheduler/idle-args"}},
		{17, "replicas and placement belong to somebody else", []string{"workload/replicas-owned", "workload/placement-owned"}},
		{18, "two schedulers share nodes", []string{"cluster/shared-nodes"}},
		{19, "the autoscaler does not know the profile", []string{"workload/profile-not-autoscaled"}},
		{22, "a mistyped argument would crash the scheduler", []string{"scheduler/args", "scheduler/invalid"}},
	} {
		t.Run(fmt.Sprintf("%d %s", story.row, story.name), func(t *testing.T) {
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

// TestStoryOfAnEmptyTest is row 21: a policy test that names what is not there, or that
// expects nothing, is an error wherever tests are read or run; the scripts of the command
// hold what it says. Here it is held that there are rules for both, and that they stop.
func TestStoryOfAnEmptyTest(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"policy/empty-test", "test/unknown-name", "policy/unread-test"} {
		at := slices.IndexFunc(lint.Documented(), func(r lint.Rule) bool { return r.ID == id })
		if at < 0 {
			t.Fatalf("there is no rule %s", id)
		}
		if r := lint.Documented()[at]; id != "policy/unread-test" && r.Severity != diag.Error {
			t.Errorf("%s is no error", id)
		}
	}
	script, err := os.ReadFile("../../cmd/kubectl-sched/cli/testdata/script/test_errors.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range []string{"policy/empty-test", "test/unknown-name"} {
		if !strings.Contains(string(script), "["+rule+"]") && !strings.Contains(string(script), rule) {
			t.Errorf("no script of the command shows %s", rule)
		}
	}
}
