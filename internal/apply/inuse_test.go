package apply

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// removals are the ways in which a class of ours is let go of, each with its
// options.
var removals = map[string]func(*lab, *Applier) (*ChangeSet, diag.Findings, RunOptions){
	"deleted": func(l *lab, a *Applier) (*ChangeSet, diag.Findings, RunOptions) {
		changes, findings, err := a.PrepareDelete(l.Context(), l.state())
		if err != nil {
			l.Fatal(err)
		}
		return changes, findings, RunOptions{Forget: true}
	},
	"pruned": func(l *lab, a *Applier) (*ChangeSet, diag.Findings, RunOptions) {
		changes, findings := l.prepare(a)
		return changes, findings, RunOptions{}
	},
}

// pinned keeps pods on the nodes of their own test.
const pinned = `nodeSelector: {zone-of: "NAMESPACE"}`

func (l *lab) pods(name string) []corev1.Pod {
	l.Helper()
	list, err := l.client.Kube.CoreV1().Pods(l.namespace).List(l.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		l.Fatal(err)
	}
	return list.Items
}

func (l *lab) hasClass(name string) bool {
	l.Helper()
	_, err := l.client.Kube.SchedulingV1().PriorityClasses().Get(l.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		l.Fatal(err)
	}
	return err == nil
}

// TestClassesOutlastThePodsOfAnOldRevision holds up a rollout, lets go of the
// class that the pods of the old revision name, and kills such a pod: its
// controller must be able to make it anew.
func TestClassesOutlastThePodsOfAnOldRevision(t *testing.T) {
	t.Parallel()
	held := map[string]struct{ manifest, hold, release string }{
		"partition": {
			workloadManifest("StatefulSet", "db", "  serviceName: x\n  replicas: 2\n  podManagementPolicy: Parallel\n", pinned),
			`{"spec":{"updateStrategy":{"rollingUpdate":{"partition":2}}}}`, `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}`,
		},
		"on-delete": {
			workloadManifest("StatefulSet", "db", "  serviceName: x\n  replicas: 2\n  podManagementPolicy: Parallel\n", pinned),
			`{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}`, `{"spec":{"updateStrategy":{"type":"RollingUpdate"}}}`,
		},
		"paused": {deployment("db", pinned), `{"spec":{"paused":true}}`, `{"spec":{"paused":false}}`},
	}
	for way, remove := range removals {
		for what, test := range held {
			t.Run(way+"/"+what, func(t *testing.T) {
				t.Parallel()
				l := newLab(t)
				a := l.applier(nil)
				class := l.namespace
				l.twoZones()
				u := l.create(strings.ReplaceAll(test.manifest, "NAMESPACE", l.namespace))
				r := l.request(a, matching(func(f *workload.PodFields) { f.PriorityClassName = class }, "db"))
				r.Plan.Objects = []compiler.Object{{Object: &schedulingv1.PriorityClass{
					TypeMeta:   metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"},
					ObjectMeta: metav1.ObjectMeta{Name: class}, Value: 1000,
				}}}
				changes, findings, err := a.Prepare(t.Context(), r)
				if err != nil || findings.HasErrors() {
					t.Fatal(findings, err)
				}
				if _, findings, err := a.Run(t.Context(), changes, RunOptions{}); err != nil || findings.HasErrors() {
					t.Fatal(findings, err)
				}
				named := func() (with, all int) {
					for _, pod := range l.pods("db") {
						if pod.DeletionTimestamp == nil {
							all++
							if pod.Spec.PriorityClassName == class {
								with++
							}
						}
					}
					return with, all
				}
				l.eventually("all pods name the class", func(context.Context) bool { with, all := named(); return with == 2 && all == 2 })
				u = l.patch(u, types.MergePatchType, test.hold, "kubectl-edit")

				changes, findings, options := remove(l, a)
				if findings.HasErrors() {
					t.Fatal(findings)
				}
				options.Settle = time.Second
				outcome, more, err := a.Run(t.Context(), changes, options)
				if err != nil || more.HasErrors() {
					t.Fatal(more, err)
				}
				rules := map[string]int{}
				for _, f := range append(findings, more...) {
					rules[f.Rule]++
				}
				if !cmp.Equal(rules, map[string]int{"apply/class-in-use": 1}) || outcome.InUse != 1 {
					t.Errorf("findings %v, outcome %+v", append(findings, more...), outcome)
				}
				if !l.hasClass(class) {
					t.Fatal("the class was deleted under the pods that name it")
				}
				if what == "partition" || what == "paused" {
					victim := l.pods("db")[0]
					if err := l.client.Kube.CoreV1().Pods(l.namespace).Delete(t.Context(), victim.Name, metav1.DeleteOptions{}); err != nil {
						t.Fatal(err)
					}
					l.eventually("the killed pod is made anew", func(context.Context) bool {
						with, all := named()
						for _, pod := range l.pods("db") {
							if pod.UID == victim.UID {
								return false
							}
						}
						return with == 2 && all == 2
					})
				}
				// Again, and nothing has changed: it says so again and writes nothing.
				changes, findings, options = remove(l, a)
				again, _, err := a.Run(t.Context(), changes, options)
				if err != nil || !again.Unchanged || again.InUse != 1 || len(findings) != 1 || findings[0].Rule != "apply/class-in-use" {
					t.Errorf("again: %+v, %v, %v", again, findings, err)
				}
				// When the rollout is done, a later run ends it.
				l.patch(u, types.MergePatchType, test.release, "kubectl-edit")
				l.eventually("no pod names the class", func(context.Context) bool { with, all := named(); return with == 0 && all == 2 })
				l.eventually("a later run deletes the class", func(context.Context) bool {
					changes, _, options := remove(l, a)
					if _, findings, err := a.Run(t.Context(), changes, options); err != nil || findings.HasErrors() {
						t.Fatal(findings, err)
					}
					return !l.hasClass(class)
				})
				if l.state().Exists() != (way == "pruned") {
					t.Errorf("the set exists: %t", l.state().Exists())
				}
			})
		}
	}
}

// TestARunWaitsForPodsThatItReplaces deletes the class in the same run, once the
// rollout that the run caused is over.
func TestARunWaitsForPodsThatItReplaces(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.applier(nil)
	l.twoZones()
	l.create(deployment("web", strings.ReplaceAll(pinned, "NAMESPACE", l.namespace)))
	r := l.request(a, matching(func(f *workload.PodFields) { f.PriorityClassName = l.namespace }, "web"))
	r.Plan.Objects = []compiler.Object{{Object: &schedulingv1.PriorityClass{
		TypeMeta:   metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"},
		ObjectMeta: metav1.ObjectMeta{Name: l.namespace}, Value: 1000,
	}}}
	changes, findings, err := a.Prepare(t.Context(), r)
	if err != nil || findings.HasErrors() {
		t.Fatal(findings, err)
	}
	if _, _, err := a.Run(t.Context(), changes, RunOptions{}); err != nil {
		t.Fatal(err)
	}
	changes, findings, err = a.PrepareDelete(t.Context(), l.state())
	if err != nil || len(findings) > 0 {
		t.Fatal(findings, err)
	}
	outcome, findings, err := a.Run(t.Context(), changes, RunOptions{Forget: true, Settle: time.Minute})
	if err != nil || len(findings) > 0 || outcome.Removed != 1 {
		t.Errorf("outcome %+v, %v, %v", outcome, findings, err)
	}
	if l.state().Exists() || l.hasClass(l.namespace) {
		t.Error("something is left")
	}
}

// TestLabelsOutlastThePodsThatRequireThem lets go of a pool while pods of an old
// revision of a workload that the set placed still ask its label of their nodes; a
// stranger's pod, which asks for it too, keeps nothing.
func TestLabelsOutlastThePodsThatRequireThem(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.applier(nil)
	l.labelled(l.namespace, nil)
	effect := l.gpuPool(l.namespace)
	effect.Taint, effect.Labels = nil, map[string]string{"example.com/class": l.namespace}
	l.twoZones()
	web := l.create(deployment("web", ""))
	r := l.request(a, matching(func(f *workload.PodFields) { f.NodeSelector = map[string]string{"example.com/class": l.namespace} }, "web"))
	r.Plan.Nodes = []compiler.NodeEffect{effect}
	changes, findings, err := a.Prepare(t.Context(), r)
	if err != nil || findings.HasErrors() {
		t.Fatal(findings, err)
	}
	if _, findings, err := a.Run(t.Context(), changes, RunOptions{}); err != nil || findings.HasErrors() {
		t.Fatal(findings, err)
	}
	asking := func() (n int) {
		for _, pod := range l.pods("web") {
			if pod.Spec.NodeSelector["example.com/class"] != "" {
				n++
			}
		}
		return n
	}
	l.eventually("pods ask for the label", func(context.Context) bool { return asking() > 0 })
	before := l.marks(l.namespace)
	web = l.patch(web, types.MergePatchType, `{"spec":{"paused":true}}`, "kubectl-edit")
	changes, findings, err = a.PrepareDelete(t.Context(), l.state())
	if err != nil || len(findings) != 1 || findings[0].Rule != "apply/label-in-use" || !strings.Contains(findings[0].Message, l.namespace+"/web") {
		t.Fatal(findings, err)
	}
	if outcome, _, err := a.Run(t.Context(), changes, RunOptions{Forget: true}); err != nil || outcome.InUse != 1 {
		t.Fatal(outcome, err)
	}
	if after := l.marks(l.namespace); after != before || !l.state().Exists() {
		t.Errorf("the node has %q, had %q", after, before)
	}
	l.create(`{apiVersion: v1, kind: Pod, metadata: {name: stranger}, spec: {nodeSelector: {example.com/class: "` + l.namespace + `"}, containers: [{name: main, image: example.com/main:1}]}}`)
	l.patch(web, types.MergePatchType, `{"spec":{"paused":false}}`, "kubectl-edit")
	l.eventually("no pod of the workload asks for it", func(context.Context) bool { return asking() == 0 })
	l.delete(a)
	if after := l.marks(l.namespace); after == before || l.state().Exists() {
		t.Errorf("the node still has %q", after)
	}
}
