package apply

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// nobodysChoice reports whether the field at the JSON pointer has the value that the
// API server fills in, and nobody said it by server-side apply. Who creates or
// updates an object owns such fields without having named them, so that to take one
// over takes nothing from anybody. Of the fields that placement is about,
// schedulerName alone is filled in (pkg/apis/core/v1, SetDefaults_PodSpec).
func nobodysChoice(w *workload.Workload, pointer string, manager string) bool {
	if !strings.HasSuffix(pointer, "/"+string(workload.SchedulerName)) {
		return false
	}
	value, _ := valueAt(w.Object, pointer)
	if value != corev1.DefaultSchedulerName {
		return false
	}
	var path workload.Path
	for _, step := range splitPointer(pointer) {
		path = append(path, step)
	}
	return !slices.ContainsFunc(cluster.FieldAppliers(w.Object, path), func(owner string) bool { return owner != manager })
}
