package e2e

import (
	"maps"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ours is in every name that the plugin puts into objects and field managers.
const ours = "kubectl-sched"

// differs says in what an object is not what it was: another object of the same
// name, another spec, other labels or annotations, or a trace of the plugin.
// What controllers count (generations, revisions) is left out.
func differs(before, now *unstructured.Unstructured) string {
	lines := changes(before, now)
	for _, entry := range now.GetManagedFields() {
		if strings.Contains(entry.Manager, ours) {
			lines = append(lines, "managedFields name "+entry.Manager+": "+entry.FieldsV1.String())
		}
	}
	return strings.Join(lines, "\n")
}

// changes says what of the object itself is not as it was.
func changes(before, now *unstructured.Unstructured) (lines []string) {
	if before.GetUID() != now.GetUID() {
		lines = append(lines, "UID was "+string(before.GetUID())+", is "+string(now.GetUID()))
	}
	for field, pair := range map[string][2]any{
		"spec":        {before.Object["spec"], now.Object["spec"]},
		"labels":      {before.GetLabels(), now.GetLabels()},
		"annotations": {withoutCounters(before.GetAnnotations()), withoutCounters(now.GetAnnotations())},
	} {
		if d := cmp.Diff(pair[0], pair[1]); d != "" {
			lines = append(lines, field+" (-before +now):", d)
		}
	}
	return lines
}

func withoutCounters(annotations map[string]string) map[string]string {
	annotations = maps.Clone(annotations)
	delete(annotations, "deployment.kubernetes.io/revision")
	delete(annotations, "deprecated.daemonset.template.generation")
	if len(annotations) == 0 {
		return nil
	}
	return annotations
}
