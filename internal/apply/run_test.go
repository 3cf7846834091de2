package apply

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

func containsField(fields, name string) bool { return strings.Contains(fields, `"f:`+name+`"`) }

func TestNothingToDoWritesNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.applier(nil)
	u := l.create(deployment("web"))
	policies := matching(all(tolerate("gpu"), require("class", "gpu")), "web")
	if got := l.apply(a, policies); got.Revision != 1 || got.Updated != 1 {
		t.Fatalf("first run: %+v", got)
	}
	before := l.get(u)
	log := &requestLog{}
	if got := l.apply(l.applier(log.wrap), policies); !got.Unchanged || got.Revision != 1 {
		t.Errorf("second run: %+v", got)
	}
	if writes := log.writes(); len(writes) > 0 {
		t.Errorf("the second run wrote: %v", writes)
	}
	if d := cmp.Diff(ourEntries(before), ourEntries(l.get(u))); d != "" {
		t.Errorf("managedFields (-before +now):\n%s", d)
	}
	if n := len(l.state().Revisions); n != 1 {
		t.Errorf("%d revisions, want 1", n)
	}
}

// ourEntries are our entries in the object's managedFields.
func ourEntries(u *unstructured.Unstructured) []metav1.ManagedFieldsEntry {
	return slices.DeleteFunc(u.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager != FieldManager })
}

func TestConflictsNameFieldOwnerAndLine(t *testing.T) {
	t.Parallel()
	for _, owner := range []string{"kubectl-client-side-apply", "helm"} {
		t.Run(owner, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			a := l.applier(nil)
			u := l.create(deployment("web", "tolerations: [{key: theirs, operator: Exists}]"), owner)
			other := l.create(deployment("free"), owner)
			changes, findings := l.prepare(a, matching(tolerate("gpu"), "web", "free"))
			want := []Conflict{{Subject: "Deployment " + l.namespace + "/web", Field: ".spec.template.spec.tolerations", Owner: owner}}
			for i := range changes.Conflicts {
				if len(changes.Conflicts[i].Origins) != 1 || changes.Conflicts[i].Origins[0].Range.Start.Line != 7 {
					t.Errorf("origins are %v", changes.Conflicts[i].Origins)
				}
				changes.Conflicts[i].Origins = nil
			}
			if d := cmp.Diff(want, changes.Conflicts); d != "" {
				t.Errorf("conflicts (-want +got):\n%s", d)
			}
			if !findings.HasErrors() {
				t.Error("a conflict must be an error")
			}
			if got := findings[0].String(); !strings.HasPrefix(got, `placement/test.cue:7:3: policy "test": Deployment `) {
				t.Errorf("finding is %q", got)
			}
			if l.get(u).GetResourceVersion() != u.GetResourceVersion() && tolerationKeys(l.get(u)) != "theirs" {
				t.Error("a refused run wrote")
			}
			_ = other
			a.ForceConflicts = true
			l.apply(a, matching(tolerate("gpu"), "web", "free"))
			if keys := tolerationKeys(l.get(u)); keys != "theirs,gpu" {
				t.Errorf("forced, the tolerations are %q", keys)
			}
		})
	}
}

func TestTwoSetsDoNotFight(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.applier(nil)
	u := l.create(deployment("web"))
	l.apply(a, matching(tolerate("gpu"), "web"))
	second := *l
	second.set = Set{Name: l.set.Name + "-b", Namespace: l.namespace}
	_, findings := second.prepare(a, matching(tolerate("other"), "web"))
	if len(findings) != 1 || findings[0].Rule != "apply/other-set" || !strings.Contains(findings[0].Message, `"`+l.set.Name+`"`) {
		t.Errorf("findings are %v", findings)
	}
	if keys := tolerationKeys(l.get(u)); keys != "gpu" {
		t.Errorf("tolerations are %q", keys)
	}
	// The second set does not touch what it does not match, and takes nothing of
	// the first away.
	second.apply(a)
	if keys := tolerationKeys(l.get(u)); keys != "gpu" {
		t.Errorf("tolerations are %q", keys)
	}
}

func TestReplicasAreNotOurs(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.applier(nil)
	u := l.create(deployment("web"))
	l.patch(u, types.MergePatchType, `{"spec":{"replicas":5}}`, "horizontal-pod-autoscaler")
	l.apply(a, matching(tolerate("gpu"), "web"))
	if n, _ := valueAt(l.get(u).Object, "/spec/replicas"); n != int64(5) {
		t.Errorf("replicas are %v, want the 5 that the autoscaler set", n)
	}
	l.patch(u, types.MergePatchType, `{"spec":{"replicas":3}}`, "horizontal-pod-autoscaler")
	l.delete(a)
	now := l.get(u)
	if n, _ := valueAt(now.Object, "/spec/replicas"); n != int64(3) {
		t.Errorf("replicas are %v, want the 3 that the autoscaler set", n)
	}
	if owners := fieldOwners(now.Object, "/spec/replicas", FieldManager); !cmp.Equal(owners, []string{"horizontal-pod-autoscaler"}) {
		t.Errorf("replicas are owned by %v", owners)
	}
}

func TestStrippedAnnotationIsNoticedAndRestored(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.applier(nil)
	u := l.create(deployment("web"))
	policies := matching(tolerate("gpu"), "web")
	l.apply(a, policies)
	strip := `{"metadata":{"annotations":{"kubectl-sched.github.io/placement":null}}}`
	l.patch(u, types.MergePatchType, strip, "somebody")
	status, err := a.Status(t.Context(), l.state())
	if err != nil {
		t.Fatal(err)
	}
	if len(status.Workloads) != 1 || len(status.Workloads[0].Drifts) != 1 || !strings.Contains(status.Workloads[0].Drifts[0].Message, "stripped") {
		t.Errorf("status is %+v", status.Workloads)
	}
	if got := l.apply(a, policies); got.Updated != 1 {
		t.Errorf("the run did not restore the annotation: %+v", got)
	}
	if got := l.apply(a, policies); !got.Unchanged {
		t.Errorf("the run after it: %+v", got)
	}
	l.patch(u, types.MergePatchType, strip, "somebody")
	l.delete(a)
	l.sameObject(u)
}

func TestRecreatedWorkload(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.applier(nil)
	u := l.create(deployment("web"))
	policies := matching(tolerate("gpu"), "web")
	l.apply(a, policies)
	changes, _ := l.prepare(a, matching(all(tolerate("gpu"), require("class", "gpu")), "web"))
	if err := l.client.Kube.AppsV1().Deployments(l.namespace).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// The object is gone between the dry run and the write: it is not made again.
	_, findings, err := a.Run(t.Context(), changes, RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(findings) != 1 || !strings.HasSuffix(findings[0].String(), "/web: it was deleted meanwhile") {
		t.Errorf("findings are %v: writing into an object that is gone must be an error, of that object alone", findings)
	}
	list, err := l.client.Kube.AppsV1().Deployments(l.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) > 0 {
		t.Fatal("the run created a workload")
	}
	u2 := l.create(deployment("web"))
	status, err := a.Status(t.Context(), l.state())
	if err != nil {
		t.Fatal(err)
	}
	if !status.Drifted() {
		t.Error("a workload that was made anew is drift")
	}
	l.apply(a, policies)
	if keys := tolerationKeys(l.get(u)); keys != "gpu" {
		t.Errorf("tolerations are %q", keys)
	}
	l.delete(a)
	l.sameObject(u2)
}

func TestKeptObjectsAreRefused(t *testing.T) {
	t.Parallel()
	for name, patch := range map[string]string{
		"argo-annotation": `{"metadata":{"annotations":{"argocd.argoproj.io/tracking-id":"shop:apps/Deployment:shop/web"}}}`,
		"flux-label":      `{"metadata":{"labels":{"kustomize.toolkit.fluxcd.io/name":"shop"}}}`,
		"helm-release":    `{"metadata":{"annotations":{"meta.helm.sh/release-name":"shop"}}}`,
		"controller":      `{"metadata":{"ownerReferences":[{"apiVersion":"example.com/v1","kind":"Shop","name":"shop","uid":"00000000-0000-0000-0000-000000000001","controller":true}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			a := l.applier(nil)
			u := l.create(deployment("web"))
			l.create(deployment("free"))
			l.patch(u, types.MergePatchType, patch, "setup")
			_, findings := l.prepare(a, matching(tolerate("gpu"), "web", "free"))
			if len(findings) != 1 || findings[0].Rule != "apply/owned" || !findings.HasErrors() {
				t.Fatalf("findings are %v", findings)
			}
			a.SkipOwned = true
			if got := l.apply(a, matching(tolerate("gpu"), "web", "free")); got.Updated != 1 {
				t.Errorf("skipping it, the run wrote %+v", got)
			}
			if keys := tolerationKeys(l.get(u)); keys != "" {
				t.Errorf("it was written: tolerations %q", keys)
			}
		})
	}
}

func TestImmutableTemplatesWaitForTheNextRun(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.applier(nil)
	l.create(`apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: "example.com/main:1"}]}}}
`)
	l.create("apiVersion: v1\nkind: Pod\nmetadata: {name: bare}\nspec: {containers: [{name: main, image: \"example.com/main:1\"}]}\n")
	changes, findings := l.prepare(a, matching(tolerate("gpu"), "once", "bare"))
	if findings.HasErrors() {
		t.Errorf("findings are %v", findings)
	}
	for _, w := range changes.Workloads {
		if w.Action != NextRun {
			t.Errorf("%s: action is %s", w.Workload.Ref(), w.Action)
		}
	}
	if !changes.Empty() {
		t.Error("there is nothing to write")
	}
}

func TestScope(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.applier(nil)
	l.create(deployment("web"))
	l.scope.Namespaces = []string{l.namespace, "somewhere-else"}
	l.apply(a, matching(tolerate("gpu"), "web"))

	other := *l
	other.scope.Folders = []string{"elsewhere"}
	r := other.request(a)
	if _, findings, err := a.Prepare(t.Context(), r); err != nil || !findings.HasErrors() || findings[0].Rule != "apply/other-scope" {
		t.Errorf("another folder: %v, %v", findings, err)
	}
	wider := *l
	wider.scope.Namespaces = nil
	if _, findings, err := a.Prepare(t.Context(), Request{State: l.state(), Scope: wider.scope, Plan: r.Plan}); err != nil || !findings.HasErrors() {
		t.Errorf("more namespaces: %v, %v", findings, err)
	}
	narrow := *l
	narrow.scope.Namespaces = []string{"somewhere-else"}
	changes, findings := narrow.prepare(a)
	if findings.HasErrors() || len(findings) != 1 || findings[0].Rule != "apply/not-pruned" {
		t.Errorf("fewer namespaces: %v", findings)
	}
	if !changes.Empty() {
		t.Error("fewer namespaces: something of the others would be pruned")
	}
}

func TestUndo(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.applier(nil)
	web, db := l.create(deployment("web")), l.create(deployment("db"))
	l.apply(a, matching(tolerate("one"), "web"))
	l.apply(a, matching(tolerate("two"), "web", "db"))
	undo := func(to int) {
		t.Helper()
		state := l.state()
		r, err := state.UndoTarget(to)
		if err != nil {
			t.Fatal(err)
		}
		changes, findings, err := a.PrepareUndo(t.Context(), state, r)
		if err != nil || findings.HasErrors() {
			t.Fatal(findings, err)
		}
		if _, findings, err := a.Run(t.Context(), changes, RunOptions{}); err != nil || findings.HasErrors() {
			t.Fatal(findings, err)
		}
	}
	undo(0)
	if got := tolerationKeys(l.get(web)); got != "one" {
		t.Errorf("web tolerates %q", got)
	}
	l.sameObject(db)
	undo(2)
	if got := tolerationKeys(l.get(web)) + "/" + tolerationKeys(l.get(db)); got != "two/two" {
		t.Errorf("they tolerate %q", got)
	}
	if latest := l.state().Latest(); latest.Number != 4 || latest.Cause != "undo to revision 2" || latest.State != Complete {
		t.Errorf("latest revision is %+v", latest)
	}
	l.delete(a)
	l.sameObject(web)
	l.sameObject(db)
	if l.state().Exists() {
		t.Error("the state is still there")
	}
}

func TestPartlySharedSpreadConstraints(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.applier(nil)
	theirs := "topologySpreadConstraints: [{topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, maxSkew: 1, labelSelector: {matchLabels: {app: web}}}]"
	u := l.create(deployment("web", theirs))
	spread := matching(func(f *workload.PodFields) {
		zone := f.TopologySpreadConstraints[0]
		zone.TopologyKey = "topology.kubernetes.io/zone"
		f.TopologySpreadConstraints = append(f.TopologySpreadConstraints[:1:1], zone)
	}, "web")
	// Their constraint and ours have different keys: no conflict, nothing forced.
	l.apply(a, spread)
	list, _ := valueAt(l.get(u).Object, "/spec/template/spec/topologySpreadConstraints")
	if n := len(list.([]any)); n != 2 {
		t.Fatalf("%d constraints, want 2", n)
	}
	if got := l.apply(a, spread); !got.Unchanged {
		t.Errorf("a second run: %+v", got)
	}
	l.delete(a)
	l.sameObject(u)
}
