package main

import (
	"fmt"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/lint"
)

// areas are the headings of the rules, in the order of the page.
var areas = []struct{ name, title string }{
	{"workload", "Workloads and the objects around them"},
	{"policy", "Policies and pools"},
	{"cluster", "Clusters"},
	{"scheduler", "The configuration of schedulers"},
	{"test", "Tests of policies"},
	{"compile", "What policies come to"},
	{"guard", "Guards of dedicated pools"},
	{"nodes", "The nodes of pools"},
	{"apply", "Applying"},
	{"gates", "Gates"},
	{"snapshot", "Snapshots"},
	{"ignore", "What is to be ignored"},
	{"baseline", "What is known already"},
	{"input", "Reading"},
	{"output", "Writing"},
}

// needed says what a rule must know.
var needed = map[lint.Needs]string{
	"":           "found by the command that reads, compiles or applies",
	lint.Files:   "needs files alone",
	lint.Nodes:   "needs the nodes of a cluster",
	lint.Cluster: "needs a snapshot, or a live cluster",
}

// findings documents every rule that a finding can have.
func findings() (string, error) {
	var b strings.Builder
	b.WriteString("# The rules of findings\n\n" +
		"Everything that a command finds has a rule. `kubectl sched lint` runs all that need no more than there is: files alone, " +
		"with `--snapshot` or `--with-cluster` the nodes, pods, quotas and budgets of a cluster too. " +
		"The severity is the gravest that a finding of the rule has.\n")
	rules := lint.Documented()
	for _, area := range areas {
		fmt.Fprintf(&b, "\n## %s\n", area.title)
		for i, r := range rules {
			if r.Area() != area.name {
				continue
			}
			fmt.Fprintf(&b, "\n### %s\n\n%s, %s.\n\n%s\n\nWhat to do: %s\n", r.ID, r.Severity, needed[r.Needs], r.Doc, r.Fix)
			rules[i].ID = ""
		}
	}
	for _, r := range rules {
		if r.ID != "" {
			return "", fmt.Errorf("the rule %s has an area without a heading", r.ID)
		}
	}
	return b.String(), nil
}
