package fidelity_test

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
)

// testCase is a cluster, and what happens to it.
type testCase struct {
	namespace string
	labels    map[string]string // of the namespace
	nodes     []*corev1.Node
	services  []*corev1.Service
	budgets   []*policyv1.PodDisruptionBudget
	volumes   []*corev1.PersistentVolume
	claims    []*corev1.PersistentVolumeClaim
	capacity  []*storagev1.CSIStorageCapacity
	groups    []*unstructured.Unstructured
	steps     []step
}

// step is one thing that happens. One field is set.
type step struct {
	create []*corev1.Pod
	remove string // a pod
	open   string // a pod whose gates go
	change func(*corev1.Node)
	node   string       // that change changes
	add    *corev1.Node // a node that comes
	lose   string       // a node that goes, with its pods
	wait   bool         // until nothing moves
}

// The zones and node labels of cases.
var (
	zones    = []string{"zone-a", "zone-b", "zone-c"}
	tiers    = []string{"gold", "silver"}
	apps     = []string{"web", "db", "batch"}
	tierKey  = "fidelity.example/tier"
	taintKey = "fidelity.example/dedicated"
)

// generator makes cases. The same seed makes the same ones.
type generator struct {
	*rand.Rand
	c    *testCase
	pods int
}

// generate returns the case of the number, and of the seed. What it is called begins
// with the name: two tests must not have the same, because namespaces go slowly.
func generate(name string, seed uint64, number int) *testCase {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, uint64(number)))}
	g.c = &testCase{namespace: fmt.Sprintf("%s-%d", name, number)}
	if g.may(2) {
		g.c.labels = map[string]string{"team": "a"}
	}
	for i := range 3 + g.IntN(10) {
		g.c.nodes = append(g.c.nodes, g.node(i))
	}
	if g.may(3) {
		g.c.services = append(g.c.services, g.service(g.one(apps)))
	}
	if g.may(4) {
		g.c.budgets = append(g.c.budgets, g.budget(g.one(apps)))
	}
	theme := g.IntN(len(themes))
	total := 5 + g.IntN(36)
	for g.pods < total {
		themes[theme](g)
		switch g.IntN(10) {
		case 0:
			g.disturb()
		case 1, 2:
			g.c.steps = append(g.c.steps, step{wait: true})
		case 3:
			theme = g.IntN(len(themes))
		}
	}
	return g.c
}

// may is true once in n times.
func (g *generator) may(n int) bool { return g.IntN(n) == 0 }

func (g *generator) one(of []string) string { return of[g.IntN(len(of))] }

// node returns node i of the case.
func (g *generator) node(i int) *corev1.Node {
	name := fmt.Sprintf("%s-n%02d", g.c.namespace, i)
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(int64(1+g.IntN(4)), resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(int64(1+g.IntN(4))<<30, resource.BinarySI),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
		corev1.ResourcePods:             *resource.NewQuantity(int64(3+g.IntN(20)), resource.DecimalSI),
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		caseLabel: g.c.namespace,
	}, Annotations: map[string]string{}}}
	if !g.may(10) {
		n.Labels[corev1.LabelTopologyZone] = g.one(zones)
	}
	if g.may(2) {
		n.Labels[tierKey] = g.one(tiers)
	}
	n.Spec.Taints = []corev1.Taint{{Key: caseLabel, Value: g.c.namespace, Effect: corev1.TaintEffectNoSchedule}}
	if g.may(6) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: taintKey, Value: g.one(tiers), Effect: corev1.TaintEffectNoSchedule})
	}
	if g.may(8) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "fidelity.example/old", Effect: corev1.TaintEffectPreferNoSchedule})
	}
	n.Spec.Unschedulable = g.may(15)
	if g.may(4) {
		capacity["nvidia.com/gpu"] = *resource.NewQuantity(int64(1+g.IntN(3)), resource.DecimalSI)
		n.Annotations[args.NodeGPUMemory] = []string{"24Gi", "24Gi,24Gi", "16Gi,80Gi"}[g.IntN(3)]
	}
	if g.may(3) {
		n.Labels["cache/warm-for"] = g.one([]string{"imagenet", "vocab"})
	}
	if g.may(8) {
		n.Labels["cache/drained"] = "true"
	}
	n.Status = corev1.NodeStatus{
		Capacity: capacity, Allocatable: capacity,
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}},
	}
	return n
}

func (g *generator) service(app string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.c.namespace, Name: app},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": app}, Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

func (g *generator) budget(app string) *policyv1.PodDisruptionBudget {
	least := intstr.FromInt32(int32(g.IntN(3)))
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.c.namespace, Name: app},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &least, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
	}
}

// disturb has something else happen than pods that come.
func (g *generator) disturb() {
	node := g.c.nodes[g.IntN(len(g.c.nodes))].Name
	s := step{node: node}
	switch g.IntN(6) {
	case 0:
		s.change = func(n *corev1.Node) { n.Spec.Unschedulable = !n.Spec.Unschedulable }
	case 1:
		tier := g.one(tiers)
		s.change = func(n *corev1.Node) { n.Labels[tierKey] = tier }
	case 2:
		taint := corev1.Taint{Key: taintKey, Value: g.one(tiers), Effect: corev1.TaintEffectNoSchedule}
		s.change = func(n *corev1.Node) {
			for i := range n.Spec.Taints {
				if n.Spec.Taints[i].Key == taint.Key {
					n.Spec.Taints[i] = taint
					return
				}
			}
			n.Spec.Taints = append(n.Spec.Taints, taint)
		}
	case 3:
		s = step{add: g.node(len(g.c.nodes))}
		g.c.nodes = append(g.c.nodes, s.add)
	case 4:
		s = step{lose: node}
	case 5:
		if g.pods == 0 {
			return
		}
		s = step{remove: fmt.Sprintf("p%02d", g.IntN(g.pods))}
	}
	g.c.steps = append(g.c.steps, s)
}
