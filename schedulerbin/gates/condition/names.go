package condition

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// Prefix is what the names of our gates begin with. Other gates are not ours
	// to touch.
	Prefix = "gates.kubectl-sched.github.io/"
	// ApprovedPrefix is, with the rest of a gate's name, the annotation with the
	// name of the user who approved the gate.
	ApprovedPrefix = "approved." + Prefix
	// DeniedPrefix is the same for the user who denied the gate.
	DeniedPrefix = "denied." + Prefix

	// Reporter is what the events about gates are reported by.
	Reporter = "placement-scheduler"
	// EventGate is the annotation of an event with the gate that it is about.
	EventGate = "kubectl-sched.github.io/gate"
	// EventWhy is the one with what keeps that gate shut, or opened it.
	EventWhy = "kubectl-sched.github.io/why"
)

// Ours reports whether the gate of that name is one of ours.
func Ours(gate string) bool { return strings.HasPrefix(gate, Prefix) }

// Name returns the full name of a gate, which is also the key of the annotation
// with its condition. short is what users call it ("quota").
func Name(short string) (string, error) {
	name := Prefix + short
	if said := validation.IsQualifiedName(name); len(said) > 0 {
		return "", fmt.Errorf("gate %q: it cannot be the name of a gate: %s", short, strings.Join(said, "; "))
	}
	return name, nil
}

// Short returns what users call the gate.
func Short(gate string) string { return strings.TrimPrefix(gate, Prefix) }

// ApprovedBy returns who approved the gate, by the annotations of its pod; empty if
// nobody did.
func ApprovedBy(annotations map[string]string, gate string) string {
	return annotations[ApprovedPrefix+Short(gate)]
}

// DeniedBy returns who denied the gate, by the annotations of its pod; empty if
// nobody did.
func DeniedBy(annotations map[string]string, gate string) string {
	return annotations[DeniedPrefix+Short(gate)]
}
