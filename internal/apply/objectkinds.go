package apply

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// objectKind is a kind that policies make objects of.
type objectKind struct {
	schema.GroupVersionKind
	// since is the Kubernetes version from which on it is served by default.
	since string
}

// objectKinds returns the kinds in the order in which their objects are written:
// what is named by others comes before them, and a policy before what puts it in
// force. Objects are deleted in the opposite order.
//
// A mutation and a group of pods name priority classes, so these come first; and
// pods get their placement before anything judges it.
func objectKinds() []objectKind {
	admission := func(kind, since string) objectKind {
		return objectKind{schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind}, since}
	}
	return []objectKind{
		{schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"}, "1.14"},
		// Served where the API server is told to, and where somebody installed them.
		{schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1beta1", Kind: podGroup}, ""},
		{schema.GroupVersionKind{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Kind: podGroup}, ""},
		admission("MutatingAdmissionPolicy", "1.36"),
		admission("ValidatingAdmissionPolicy", "1.30"),
		admission("MutatingAdmissionPolicyBinding", "1.36"),
		admission("ValidatingAdmissionPolicyBinding", "1.30"),
	}
}

// The kinds that are not like the others.
const (
	priorityClass   = "PriorityClass"
	podGroup        = "PodGroup"
	mutatingPolicy  = "MutatingAdmissionPolicy"
	mutatingBinding = "MutatingAdmissionPolicyBinding"
	validating      = "ValidatingAdmissionPolicy"
	validatingBind  = "ValidatingAdmissionPolicyBinding"
)

// kindOrder is the place of a kind among the writes; unknown kinds come last.
func kindOrder(gk schema.GroupKind) int {
	kinds := objectKinds()
	if i := slices.IndexFunc(kinds, func(k objectKind) bool { return k.GroupKind() == gk }); i >= 0 {
		return i
	}
	return len(kinds)
}

// servedSince is the version from which on the kind is served; empty if that is
// not known.
func servedSince(gk schema.GroupKind) string {
	for _, k := range objectKinds() {
		if k.GroupKind() == gk {
			return k.since
		}
	}
	return ""
}

// writeOrder compares objects by the order in which they are written.
func writeOrder(a, b ObjectChange) int {
	return cmp.Or(
		cmp.Compare(kindOrder(a.Kind.GroupKind()), kindOrder(b.Kind.GroupKind())),
		cmp.Compare(a.Kind.String(), b.Kind.String()),
		cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name),
	)
}
