// Package naming finds workloads by what a test calls them: "name", "kind/name" or
// "namespace/kind/name".
//
// It must not know what is said of them.
package naming

import "strings"

// Workload is what a workload is told by.
type Workload struct{ Kind, Namespace, Name string }

// Is reports whether said is a name of the workload.
func (w Workload) Is(said string) bool {
	parts := strings.Split(said, "/")
	last := len(parts) - 1
	return len(parts) <= 3 && parts[last] == w.Name &&
		(last < 1 || spoken(parts[last-1]) == spoken(w.Kind)) &&
		(last < 2 || parts[last-2] == w.Namespace)
}

// spoken is a kind as people write it. Folding case is something else: there are
// letters that are not equal to their own lower case by it.
func spoken(kind string) string { return strings.ToLower(kind) }

// Shortest returns a name of each workload that is as long as it must be to be of that
// one alone.
func Shortest(workloads []Workload) []string {
	all := make([]string, len(workloads))
	for i, w := range workloads {
		short := w.Name
		if !only(workloads, short) {
			short = spoken(w.Kind) + "/" + w.Name
		}
		if !only(workloads, short) {
			short = w.Namespace + "/" + short
		}
		all[i] = short
	}
	return all
}

// only reports whether no two workloads are called so.
func only(workloads []Workload, said string) bool {
	found := 0
	for _, w := range workloads {
		if w.Is(said) {
			found++
		}
	}
	return found < 2
}
