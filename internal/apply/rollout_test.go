package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// twoZones is one node in each of two zones, for the tests' own label.
func (l *lab) twoZones() {
	l.Helper()
	for _, zone := range []string{"a", "b"} {
		name := l.namespace + "-" + zone
		capacity := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("8Gi")}
		_, err := l.client.Kube.CoreV1().Nodes().Create(l.Context(), &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone-of": l.namespace, corev1.LabelTopologyZone: zone}},
			Status:     corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
		}, metav1.CreateOptions{})
		if err != nil {
			l.Fatal(err)
		}
	}
}

func TestWaitEndsWithWherePodsLanded(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.twoZones()
	a := l.applier(nil)
	var names []string
	for i := range 6 {
		name := fmt.Sprintf("web-%d", i)
		names = append(names, name)
		l.create(deployment(name))
	}
	_, err := l.client.Kube.PolicyV1().PodDisruptionBudgets(l.namespace).Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web-3"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	changes, findings := l.prepare(a, matching(require("zone-of", l.namespace), names...))
	if findings.HasErrors() {
		t.Fatal(findings)
	}
	if workloads, pods := changes.Restarts(); workloads != 6 || pods != 12 {
		t.Errorf("it says that %d workloads restart, %d pods", workloads, pods)
	}
	if len(changes.Disruptions) != 1 || changes.Disruptions[0].Name != "web" || !slices.Equal(changes.Disruptions[0].Workloads, []string{"Deployment " + l.namespace + "/web-3"}) {
		t.Errorf("disruptions are %+v", changes.Disruptions)
	}

	// At no time are more than two of them in the middle of a rollout.
	var mu sync.Mutex
	begun, most := map[string]bool{}, 0
	a.Progress = func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		switch e.Kind {
		case Wrote:
			begun[e.Subject] = true
			most = max(most, len(begun))
		case Done:
			delete(begun, e.Subject)
		case Checked, Waiting, Outwaiting: // none begins or ends one
		}
	}
	_, findings, err = a.Run(t.Context(), changes, RunOptions{MaxUnavailable: 2, RolloutTimeout: time.Minute})
	if err != nil || findings.HasErrors() {
		t.Fatal(findings, err)
	}
	if most != 2 || len(begun) != 0 {
		t.Errorf("%d workloads were restarting at a time, and %d are not done", most, len(begun))
	}
	findings, err = a.WaitFor(t.Context(), changes.Restarting(), time.Minute)
	if err != nil || findings.HasErrors() {
		t.Fatal(findings, err)
	}
	landings, err := a.Landings(t.Context(), changes.Placed(), func(string) string { return "pool" })
	if err != nil {
		t.Fatal(err)
	}
	pods := 0
	for _, place := range landings {
		pods += place.Pods
		if place.Node != l.namespace+"-"+place.Zone || place.Zone == "" || place.Pool != "pool" {
			t.Errorf("pods are at %+v", place)
		}
	}
	if pods != 12 {
		t.Errorf("%d pods, want 12: %+v", pods, landings)
	}
}

func TestRolloutThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.twoZones()
	a := l.applier(nil)
	l.create(deployment("web"))
	changes, _ := l.prepare(a, matching(require("no-such", "label"), "web"))
	asked := compiler.Origin{Policy: "nowhere", Range: diag.At(diag.Pos{File: "placement/p.cue", Line: 3, Column: 2})}
	preferred := compiler.Origin{Policy: "would-like", Range: asked.Range}
	affinity := "/spec/template/spec/affinity/nodeAffinity/"
	changes.Workloads[0].Origins = map[string][]compiler.Origin{
		affinity + "requiredDuringSchedulingIgnoredDuringExecution":  {asked},
		affinity + "preferredDuringSchedulingIgnoredDuringExecution": {preferred},
		"/spec/template/spec/tolerations":                            {preferred},
	}
	if _, findings, err := a.Run(t.Context(), changes, RunOptions{}); err != nil || findings.HasErrors() {
		t.Fatal(findings, err)
	}
	var last Event
	a.Progress = func(e Event) { last = e }
	findings, err := a.WaitFor(t.Context(), changes.Restarting(), 6*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if len(findings) != 1 || findings[0].Rule != "apply/rollout" || findings[0].Policy != "nowhere" || findings[0].Range != asked.Range {
		t.Fatalf("findings are %+v", findings)
	}
	for _, want := range []string{"not complete after 6s: ", " has no node, because the scheduler says: 0/", "node affinity/selector"} {
		if !strings.Contains(findings[0].Message, want) {
			t.Errorf("the finding lacks %q: %s", want, findings[0].Message)
		}
	}
	if last.Kind != Waiting || !cmp.Equal(last.Origins, []compiler.Origin{asked}) || !strings.Contains(last.Message, "the scheduler says") {
		t.Errorf("while waiting the last word is %+v", last)
	}
}

func TestRolloutThatFailsEndsTheWait(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.twoZones()
	a := l.applier(nil)
	web := l.create(workloadManifest("Deployment", "web", "  replicas: 1\n  progressDeadlineSeconds: 2\n", "nodeSelector: {zone-of: "+l.namespace+"}"))
	l.create(deployment("patient"))
	l.eventually("the pod from before runs", func(context.Context) bool {
		ready, _, _ := unstructured.NestedInt64(l.get(web).Object, "status", "readyReplicas")
		return ready == 1
	})
	changes, findings := l.prepare(a, matching(require("no-such", "label"), "web", "patient"))
	if findings.HasErrors() {
		t.Fatal(findings)
	}
	if _, findings, err := a.Run(t.Context(), changes, RunOptions{}); err != nil || findings.HasErrors() {
		t.Fatal(findings, err)
	}
	// The other workload's deadline is ten minutes, and so is the wait's.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	findings, err := a.WaitFor(ctx, changes.Restarting(), 10*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	want := "its rollout has failed: exceeded its progress deadline; 1 pod has no node, because the scheduler says: 0/"
	if len(findings) != 1 || !strings.HasPrefix(findings[0].Message, want) {
		t.Errorf("findings are %v, want one of %q", findings, want)
	}
}

// A run that was interrupted while it waited is run again: nothing is left to
// write, and the rollout is still waited for.
func TestWaitGoesOnWithAnEarlierRollout(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.applier(nil)
	l.create(deployment("web"))
	l.create(deployment("other"))
	policies := matching(require("zone-of", l.namespace), "web")
	changes, _ := l.prepare(a, policies)
	if _, findings, err := a.Run(t.Context(), changes, RunOptions{}); err != nil || findings.HasErrors() {
		t.Fatal(findings, err)
	}
	again, _ := l.prepare(a, policies)
	if !again.Empty() || len(again.Restarting()) > 0 {
		t.Fatalf("the second run changes something: %+v", again)
	}
	var told []string
	var once sync.Once
	a.Progress = func(e Event) {
		told = append(told, fmt.Sprintf("%s %s %d/%d", e.Kind, e.Subject, e.Count, e.Total))
		if e.Kind == Waiting {
			once.Do(l.twoZones)
		}
	}
	findings, err := a.WaitFor(t.Context(), again.Waited(), time.Minute)
	if err != nil || findings.HasErrors() {
		t.Fatal(findings, err)
	}
	if len(told) < 2 || told[len(told)-1] != "done Deployment "+l.namespace+"/web 1/1" {
		t.Errorf("it told %q", told)
	}
}

func TestStatusFindsPodsThatBreakTheRule(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.twoZones()
	a := l.applier(nil)
	// With OnDelete the running pods stay where they are, here in zone b.
	policies := matching(require("topology.kubernetes.io/zone", "a"), "mq")
	running := func(u *unstructured.Unstructured) int64 {
		n, _, _ := unstructured.NestedInt64(u.Object, "status", "readyReplicas")
		return n
	}
	db := l.create(workloadManifest("StatefulSet", "mq", "  serviceName: mq\n  replicas: 2\n  podManagementPolicy: Parallel\n  updateStrategy: {type: OnDelete}\n",
		"nodeSelector: {zone-of: "+l.namespace+", topology.kubernetes.io/zone: b}"))
	l.eventually("pods run", func(context.Context) bool { return running(l.get(db)) == 2 })
	changes, findings := l.prepare(a, policies)
	if findings.HasErrors() {
		t.Fatal(findings)
	}
	if n, _ := changes.Restarts(); n != 0 {
		t.Errorf("%d workloads restart, want none: they wait for their pods to be deleted", n)
	}
	if _, findings, err := a.Run(t.Context(), changes, RunOptions{}); err != nil || findings.HasErrors() {
		t.Fatal(findings, err)
	}
	status, err := a.Status(t.Context(), l.state())
	if err != nil {
		t.Fatal(err)
	}
	if len(status.Workloads) != 1 || status.Drifted() {
		t.Fatalf("status is %+v", status)
	}
	if v := status.Workloads[0].Violations; len(v) != 2 || v[0].Node != l.namespace+"-b" {
		t.Errorf("violations are %+v, and pods are at %+v", v, status.Workloads[0].Places)
	}
}
