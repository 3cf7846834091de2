package apply

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// PriorityClasses differ from the other objects of our making in three things:
// one that somebody else made and that is the same will do; value and
// preemptionPolicy cannot be changed; and one that is named must not go.

// strangersClass is the finding on a class that somebody else made.
func strangersClass(wanted, live *unstructured.Unstructured) diag.Finding {
	f := diag.Finding{
		Rule: "apply/class-exists", Severity: diag.Info, Subject: objectRef(live),
		Message: "it was made by somebody else and is the same; it is used as it is",
	}
	if !sameClass(wanted, live) {
		f.Severity = diag.Error
		f.Message = fmt.Sprintf("it exists with value %d and preemptionPolicy %s, made by somebody else, and the policy asks for %d and %s",
			classValue(live), preemption(live), classValue(wanted), preemption(wanted))
		f.Fix = &diag.Fix{Message: "take another name for the class, or name it without a value to use it as it is"}
	}
	return f
}

// replacement is the finding on a change that the API allows only by making the
// object anew; nil if there is none.
func replacement(live, wanted *unstructured.Unstructured) *diag.Finding {
	if wanted.GetKind() == podGroup {
		return groupReplacement(live, wanted)
	}
	if wanted.GetKind() != priorityClass || sameClass(wanted, live) {
		return nil
	}
	return &diag.Finding{
		Rule: "apply/class-replaced", Severity: diag.Warning, Subject: objectRef(wanted),
		Message: fmt.Sprintf("its value goes from %d to %d, which the API allows only by making it anew; running pods keep the old priority", classValue(live), classValue(wanted)),
	}
}

func sameClass(a, b *unstructured.Unstructured) bool {
	return classValue(a) == classValue(b) && preemption(a) == preemption(b)
}

func classValue(class *unstructured.Unstructured) int64 {
	value, _ := class.Object["value"].(int64)
	return value
}

func preemption(class *unstructured.Unstructured) string {
	if policy, ok := class.Object["preemptionPolicy"].(string); ok && policy != "" {
		return policy
	}
	return string(corev1.PreemptLowerPriority)
}
