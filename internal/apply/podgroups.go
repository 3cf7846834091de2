package apply

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// groupFixed are the fields of the API's PodGroup that cannot change
// (k8s.io/api/scheduling/v1beta1, PodGroupSpec).
var groupFixed = []string{"/spec/priorityClassName", "/spec/schedulingConstraints"}

// groupReplacement is the finding on a PodGroup that must be made anew; nil if it
// need not.
func groupReplacement(live, wanted *unstructured.Unstructured) *diag.Finding {
	if wanted.GroupVersionKind().Group != "scheduling.k8s.io" {
		return nil
	}
	for _, at := range groupFixed {
		had, _ := valueAt(live.Object, at)
		wants, _ := valueAt(wanted.Object, at)
		if wants == nil && at == "/spec/priorityClassName" {
			continue // The API server may have filled in the default class.
		}
		if !covers(plain(had), plain(wants), at) {
			return &diag.Finding{
				Rule: "apply/group-replaced", Severity: diag.Warning, Subject: objectRef(wanted),
				Message: fmt.Sprintf("%s changes, which the API allows only by making the group anew; pods that wait for it start to wait again", fieldOfPointer(at)),
			}
		}
	}
	return nil
}
