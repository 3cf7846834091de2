package lint

import "github.com/kubectl-sched/kubectl-sched/policy/diag"

// testRules are those of policy tests, which `kubectl sched test` runs.
func testRules() []Rule {
	return []Rule{
		{ID: "test/error", Severity: diag.Error, Doc: "A test cannot be run or judged as it is written.", Fix: "Correct the test as the message says."},
		{ID: "test/failed", Severity: diag.Error, Doc: "What a test expects is not what happens.", Fix: "Correct the policies, or what the test expects."},
		{ID: "test/unknown-name", Severity: diag.Error, Doc: "A test speaks of a workload, pool, domain, policy or rule that is not there.", Fix: "Correct the name, or add what it is to mean to the test."},
		{ID: "test/untested-policy", Severity: diag.Warning, Doc: "No workload of any test that was run is selected by a policy.", Fix: "Write a test with a workload that it selects."},
	}
}
