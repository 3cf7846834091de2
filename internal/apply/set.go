// Package apply brings a Plan into a live cluster, and takes it out again.
//
// It maps a Plan and the state of a set to a ChangeSet (what would change, found
// by server-side dry run), and a ChangeSet to writes: server-side apply of
// placement fields on workloads that exist, objects of our own making
// (PriorityClasses, admission policies), taints of pools that are managed live.
// Its invariants: no workload is ever created or deleted; what is ours in
// somebody else's object is recorded in that object by the same write;
// everything that was there before us can be put back; and a run may stop after
// any request and be run again.
//
// Results are data. The package must not know flags, terminals or how a
// ChangeSet is printed.
package apply

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// FieldManager is the name under which a set is written unless the user says
// otherwise.
const FieldManager = "kubectl-sched"

// DefaultNamespace is where the state of a set lives unless the user says
// otherwise. A set mostly spans the namespaces of several teams; kube-system is
// the one namespace that every cluster has and that no tenant may write, so that
// nobody can edit what another's objects go back to. Who may write only one
// namespace keeps the state there.
const DefaultNamespace = "kube-system"

// Set names a set: what is applied together, pruned together and undone
// together.
type Set struct {
	// Name is a DNS label.
	Name string
	// Namespace is where the state is; never empty.
	Namespace string
}

// Validate says what is wrong with the names, if anything is.
func (s Set) Validate() error {
	if s.Name == "" {
		return fmt.Errorf("a set needs a name; give one with --set NAME")
	}
	if len(validation.IsDNS1123Label(s.Name)) > 0 {
		return badName("set name %q: %s", s.Name, labelRule)
	}
	if len(validation.IsDNS1123Label(s.Namespace)) > 0 {
		return badName("namespace of set %q: %q: %s", s.Name, s.Namespace, labelRule)
	}
	if n := len(s.Label()); n > validation.LabelValueMaxLength {
		return badName("set name %q: with its namespace %q it has %d characters, and a label holds %d; take a shorter name", s.Name, s.Namespace, n, validation.LabelValueMaxLength)
	}
	return nil
}

// labelRule says what names of sets and namespaces must be.
const labelRule = "it must be lower-case letters, digits and \"-\", begin and end with a letter or digit, and be at most 63 characters long"

func badName(format string, args ...any) diag.Findings {
	return diag.Findings{{Rule: "apply/bad-name", Severity: diag.Error, Message: fmt.Sprintf(format, args...)}}
}

// Label is the value of ownership.SetLabel on the objects of the set. Sets in
// different namespaces may have the same name, so the namespace is in it unless
// it is the usual one.
func (s Set) Label() string {
	if s.Namespace == DefaultNamespace {
		return s.Name
	}
	return s.Name + "." + s.Namespace
}

// setOfLabel is the inverse of Set.Label.
func setOfLabel(label string) Set {
	name, namespace, ok := strings.Cut(label, ".")
	if !ok {
		namespace = DefaultNamespace
	}
	return Set{Name: name, Namespace: namespace}
}

// parentName is the name of the ConfigMap that stands for the set.
func (s Set) parentName() string { return "kubectl-sched." + s.Name }

// revisionName is the name of the ConfigMap with the first part of a revision.
func (s Set) revisionName(number, part int) string {
	name := fmt.Sprintf("%s.v%d", s.parentName(), number)
	if part > 0 {
		name = fmt.Sprintf("%s.%d", name, part)
	}
	return name
}

// The labels and annotations of the ApplySet specification (KEP 3659).
const (
	applySetID         = "applyset.kubernetes.io/id"
	applySetPartOf     = "applyset.kubernetes.io/part-of"
	applySetTooling    = "applyset.kubernetes.io/tooling"
	applySetGroupKinds = "applyset.kubernetes.io/contains-group-kinds"
)

// ApplySetID is the identity of the set as an ApplySet, computed from its parent
// as the specification has it. The objects of our own making carry it.
func (s Set) ApplySetID() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{s.parentName(), s.Namespace, "ConfigMap", ""}, ".")))
	return fmt.Sprintf("applyset-%s-v1", base64.RawURLEncoding.EncodeToString(sum[:]))
}
