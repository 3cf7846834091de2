package compiler

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// sortedKeys returns the keys of a map in order, so that no map's own order
// shows in a plan.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}

// quoted lists names for a message, each quoted, at most eight of them.
func quoted(names []string) string {
	const limit = 8
	var parts []string
	for i, n := range names {
		if i == limit {
			return strings.Join(parts, ", ") + fmt.Sprintf(" and %d more", len(names)-limit)
		}
		parts = append(parts, fmt.Sprintf("%q", n))
	}
	return strings.Join(parts, ", ")
}

// number writes a count with its noun.
func number(n int, noun string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s", noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// theNodes names nodes, for any sentence.
func theNodes(names []string) string {
	if len(names) == 1 {
		return fmt.Sprintf("node %q", names[0])
	}
	return "nodes " + quoted(names)
}

// nodesNamed names nodes, for a sentence in the singular.
func nodesNamed(names []string) string {
	if len(names) == 1 {
		return fmt.Sprintf("node %q", names[0])
	}
	return "each of " + quoted(names)
}
