package adopt

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/compiler/admission"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
)

// fieldManager is the name under which apply writes fields.
const fieldManager = "kubectl-sched"

// untouchable says why nothing of an object is imported; empty for what is.
func untouchable(w *workload.Workload) string {
	if w.Record != nil || w.Annotations[ownership.Annotation] != "" {
		return fmt.Sprintf("kubectl sched has placed it already (annotation %s): its policies say it", ownership.Annotation)
	}
	marks := strings.TrimSuffix(admission.Annotation(""), admission.DefaultSet)
	for key := range w.Annotations {
		if strings.HasPrefix(key, marks) {
			return fmt.Sprintf("an admission policy of kubectl sched has placed it already (annotation %s…)", marks)
		}
	}
	if slices.Contains(w.Source.Managers, fieldManager) {
		return fmt.Sprintf("kubectl sched has placed it already (field manager %s): its policies say it", fieldManager)
	}
	if owner := controllerOf(w); owner != "" {
		return fmt.Sprintf("%s keeps it and would write its fields back: say it in that object, or on the admission surface", owner)
	}
	return ""
}

// controllerOf names the object that controls the workload, as its owner
// references say; empty if there is none.
func controllerOf(w *workload.Workload) string {
	if kind, name, ok := strings.Cut(w.Controller, "/"); ok {
		return kind + " " + name
	}
	refs, _ := workload.Lookup(w.Object, "metadata", "ownerReferences")
	list, _ := refs.([]any)
	for _, r := range list {
		if ref, _ := r.(map[string]any); ref["controller"] == true {
			return fmt.Sprintf("%v %v", ref["kind"], ref["name"])
		}
	}
	return ""
}
