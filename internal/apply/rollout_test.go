package apply

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
		case Checked, Waiting: // neither begins nor ends one
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
	a := l.applier(nil)
	l.create(deployment("web"))
	changes, _ := l.prepare(a, matching(require("no-such", "label"), "web"))
	if _, findings, err := a.Run(t.Context(), changes, RunOptions{}); err != nil || findings.HasErrors() {
		t.Fatal(findings, err)
	}
	findings, err := a.WaitFor(t.Context(), changes.Restarting(), 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if len(findings) != 1 || findings[0].Rule != "apply/rollout" {
		t.Errorf("findings are %v", findings)
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
