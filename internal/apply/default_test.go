package apply

import (
	"encoding/json"
	"testing"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// TestNobodysChoice holds that the default scheduler's name, which the API server
// fills in, is nobody's, unless somebody said it by server-side apply.
func TestNobodysChoice(t *testing.T) {
	t.Parallel()
	const pointer = "/spec/template/spec/schedulerName"
	for name, test := range map[string]struct {
		scheduler, manager, operation string
		pointer                       string
		want                          bool
	}{
		"filled in for who created it":    {"default-scheduler", "kubectl-create", "Update", pointer, true},
		"said by server-side apply":       {"default-scheduler", "flux", "Apply", pointer, false},
		"applied by us":                   {"default-scheduler", "kubectl-sched", "Apply", pointer, true},
		"another scheduler":               {"volcano", "kubectl-create", "Update", pointer, false},
		"another field of the same value": {"default-scheduler", "kubectl-create", "Update", "/spec/template/spec/priorityClassName", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var object map[string]any
			text := `{"metadata": {"managedFields": [{"manager": "` + test.manager + `", "operation": "` + test.operation + `", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
				"fieldsV1": {"f:spec": {"f:template": {"f:spec": {"f:schedulerName": {}, "f:priorityClassName": {}}}}}}]},
				"spec": {"template": {"spec": {"schedulerName": "` + test.scheduler + `", "priorityClassName": "` + test.scheduler + `"}}}}`
			if err := json.Unmarshal([]byte(text), &object); err != nil {
				t.Fatal(err)
			}
			if got := nobodysChoice(&workload.Workload{Object: object}, test.pointer, "kubectl-sched"); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
