package policytest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// pods is a number of pods with its noun.
func pods(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}

// are is a number with its verb.
func are(n int) string {
	switch n {
	case 0:
		return "none is"
	case 1:
		return "1 is"
	}
	return fmt.Sprintf("%d are", n)
}

// do is are for what pods do.
func do(n int) string {
	if n == 1 {
		return "1 does"
	}
	return fmt.Sprintf("%d do", n)
}

// counted says how many there are in each domain.
func counted(counts map[string]int) string {
	var parts []string
	for _, domain := range slices.Sorted(maps.Keys(counts)) {
		name := domain
		if name == "" {
			name = "in none"
		}
		parts = append(parts, fmt.Sprintf("%s: %d", name, counts[domain]))
	}
	if len(parts) == 0 {
		return "nowhere"
	}
	return strings.Join(parts, ", ")
}

// listed joins up to three.
func listed(parts []string) string {
	const most = 3
	if len(parts) > most {
		parts = append(slices.Clone(parts[:most]), fmt.Sprintf("and %d more", len(parts)-most))
	}
	return strings.Join(parts, "; ")
}

// named joins names, or says that there is none.
func named(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// fromLines relates the lines that something comes from.
func fromLines(origins []compiler.Origin) []diag.Related {
	var related []diag.Related
	seen := map[compiler.Origin]bool{}
	for _, o := range origins {
		if seen[o] {
			continue
		}
		seen[o] = true
		what := "a pool asks for it here"
		if o.Policy != "" {
			what = fmt.Sprintf("policy %q asks for it here", o.Policy)
		}
		related = append(related, diag.Related{Range: o.Range, Message: what})
	}
	return related
}
