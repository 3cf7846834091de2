package apply

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// ways are the two ways in which everything of ours has to go: a policy stops
// matching, and the whole set is deleted.
var ways = map[string]func(*lab, *Applier){
	"stops-matching": func(l *lab, a *Applier) { l.apply(a) },
	"deleted":        func(l *lab, a *Applier) { l.delete(a) },
}

func TestWithdrawLeavesWorkloadsAsTheyWere(t *testing.T) {
	t.Parallel()
	kinds := map[string]string{
		"plain":       deployment("plain"),
		"affinity":    deployment("affinity", "affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: affinity}}}}]}}"),
		"statefulset": workloadManifest("StatefulSet", "statefulset", "  serviceName: x\n"),
		"daemonset":   workloadManifest("DaemonSet", "daemonset", ""),
		"cronjob": `apiVersion: batch/v1
kind: CronJob
metadata: {name: cronjob}
spec:
  schedule: "0 0 1 1 *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: "example.com/main:1"}]}}}}
`,
	}
	for way, remove := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			a := l.applier(nil)
			var before []*unstructured.Unstructured
			var names []string
			for name, manifest := range kinds {
				before = append(before, l.create(manifest))
				names = append(names, name)
			}
			outcome := l.apply(a, matching(all(tolerate("gpu"), require("class", "gpu"), func(f *workload.PodFields) { f.PriorityClassName = "system-node-critical" }), names...))
			if outcome.Updated != len(kinds) {
				t.Fatalf("updated %d of %d", outcome.Updated, len(kinds))
			}
			remove(l, a)
			for _, u := range before {
				l.sameObject(u)
			}
		})
	}
}

func TestWithdrawPutsBackWhatWasForced(t *testing.T) {
	t.Parallel()
	for way, remove := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			a := l.applier(nil)
			a.ForceConflicts = true
			u := l.create(deployment("web",
				"tolerations: [{key: theirs, operator: Exists}]",
				"priorityClassName: system-cluster-critical",
				"affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}"))
			l.apply(a, matching(all(tolerate("gpu"), require("class", "gpu"), func(f *workload.PodFields) { f.PriorityClassName = "system-node-critical" }), "web"))
			if keys := tolerationKeys(l.get(u)); keys != "theirs,gpu" {
				t.Fatalf("tolerations are %s", keys)
			}
			l.templates(u)
			remove(l, a)
			l.sameObject(u)
			if n := l.templates(u); n != 2 {
				t.Errorf("the pods have seen %d templates, want 2: with us, and without", n)
			}
		})
	}
}

func TestPartOfWhatWasForcedGoesBack(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.applier(nil)
	a.ForceConflicts = true
	u := l.create(deployment("web", "tolerations: [{key: theirs, operator: Exists}]"))
	l.apply(a, matching(all(tolerate("gpu"), require("class", "gpu")), "web"))
	l.templates(u)
	// The policy goes on to require, and does not tolerate any more.
	l.apply(a, matching(require("class", "gpu"), "web"))
	now := l.get(u)
	if keys := tolerationKeys(now); keys != "theirs" {
		t.Errorf("tolerations are %s", keys)
	}
	if n := l.templates(u); n != 3 {
		t.Errorf("the pods have seen %d templates, want 3: at first, and with each of two policies", n)
	}
	if owners := fieldOwners(now.Object, "/spec/template/spec/tolerations", FieldManager); len(owners) > 0 {
		t.Errorf("tolerations are owned by %v", owners)
	}
	if holders := ownedByUs(now, "tolerations"); holders {
		t.Error("we are still named as the owner of the tolerations")
	}
	if outcome := l.apply(a, matching(require("class", "gpu"), "web")); !outcome.Unchanged {
		t.Errorf("a second run changed something: %+v", outcome)
	}
	l.delete(a)
	l.sameObject(u)
}

func TestStrangersFieldsStay(t *testing.T) {
	t.Parallel()
	for way, remove := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			a := l.applier(nil)
			u := l.create(deployment("web"))
			l.apply(a, matching(all(tolerate("gpu"), require("class", "gpu")), "web"))
			// Somebody adds a toleration of their own beside ours.
			l.patch(u, types.JSONPatchType, `[{"op":"add","path":"/spec/template/spec/tolerations/-","value":{"key":"stranger","operator":"Exists"}}]`, "kubectl-edit")
			remove(l, a)
			now := l.get(u)
			if keys := tolerationKeys(now); keys != "stranger" {
				t.Errorf("tolerations are %q, want the stranger's alone", keys)
			}
			if _, ok := valueAt(now.Object, "/spec/template/spec/affinity"); ok {
				t.Error("the affinity was left behind")
			}
			if now.GetUID() != u.GetUID() {
				t.Error("the UID changed")
			}
		})
	}
}

// ownedByUs reports whether our manager owns the field of the pod spec.
func ownedByUs(u *unstructured.Unstructured, field string) bool {
	for _, entry := range u.GetManagedFields() {
		if entry.Manager == FieldManager && entry.FieldsV1 != nil && containsField(entry.FieldsV1.String(), field) {
			return true
		}
	}
	return false
}
