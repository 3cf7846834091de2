// Package admission writes the objects by which the API server itself gives pods
// their placement: it maps conditional wishes (which pods, which fields) to a
// MutatingAdmissionPolicy, its companions and their bindings.
//
// Everything of a set is in one mutation of one object, so that no pod gets half
// of an old and half of a new set, and no order of policies can matter. The
// expressions carry out the compiler's own rules of merging: a pod under
// admission gets what its template would get by render. The package must not
// know what an intent is, where a policy was written, or how objects reach a
// cluster.
package admission

import (
	"slices"
	"strings"
)

// DefaultSet is the set that objects are named after where none is named.
const DefaultSet = "placement"

// RoleLabel is the label on each of our objects, bindings included, that says
// what it is for: one of the Role constants.
const RoleLabel = "kubectl-sched.github.io/admission"

// The roles of our objects. A role has a policy and a binding of the same name.
const (
	// RolePlace is the MutatingAdmissionPolicy that places pods and the templates
	// of DaemonSets.
	RolePlace = "place"
	// RoleUnmark is the MutatingAdmissionPolicy that takes marks away which a user
	// wrote himself.
	RoleUnmark = "unmark"
	// RoleAudit is the ValidatingAdmissionPolicy that notes in the audit log which
	// policies placed a pod; without the other two (observe), which would.
	RoleAudit = "audit"
)

// ContentAnnotation is the annotation on each of our policies with the content
// that its marks name: ten hexadecimal digits that change with every change of
// what the set does to pods.
const ContentAnnotation = "kubectl-sched.github.io/content"

// ExpiresAnnotation is the annotation on the place policy with the first day
// (UTC, "2006-01-02") on which an exception that is compiled in ends: an
// admission policy has no clock, so the set must be applied again then.
const ExpiresAnnotation = "kubectl-sched.github.io/expires"

// The keys of the audit annotations of the ValidatingAdmissionPolicy. In an audit
// event they stand behind the policy's name and a slash.
const (
	AuditPolicies = "policies"
	AuditContent  = "content"
	// AuditPending is there only for pods that the set would change and has not:
	// all of them under observe, otherwise those that the place policy failed on.
	AuditPending = "pending"
)

const (
	annotationPrefix = "admission.kubectl-sched.github.io/"
	domain           = "kubectl-sched.github.io"
)

// Name returns the name of the policy of a role, and of its binding. Set is the
// set's label value, DefaultSet if empty.
func Name(set, role string) string {
	if set == "" {
		set = DefaultSet
	}
	return set + "." + role + "." + domain
}

// Annotation returns the key of the annotation that marks the pods, and the
// DaemonSets, that the set placed. Set is as for Name.
func Annotation(set string) string {
	if set == "" {
		set = DefaultSet
	}
	return annotationPrefix + set
}

// Mark is what the annotation of a pod says.
type Mark struct {
	// Content is the ContentAnnotation of the policy that placed the pod.
	Content string
	// Policies are the policies in force for the pod, sorted.
	Policies []string
}

// ParseMark reads the value of the annotation that marks pods; false if it is
// none that we wrote.
func ParseMark(value string) (Mark, bool) {
	content, policies, ok := strings.Cut(value, " ")
	if !ok || content == "" || policies == "" {
		return Mark{}, false
	}
	return Mark{Content: content, Policies: strings.Split(policies, ",")}, true
}

// String returns the value of the annotation.
func (m Mark) String() string {
	return m.Content + " " + strings.Join(slices.Sorted(slices.Values(m.Policies)), ",")
}
