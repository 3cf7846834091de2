package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
)

// simulateName is what the rows of simulations begin with.
const simulateName = "simulate: "

// The cluster that is simulated: pods of so many workloads, in turn.
const (
	simulatedNodes     = 5000
	simulatedBound     = 20_000
	simulatedNew       = 10_000
	simulatedWorkloads = 50
)

// simulated are the loads: what each pod asks for, and how many seconds placing the
// new ones may take, reading the snapshot included.
var simulated = []struct {
	name    string
	seconds float64
	edit    func(*corev1.PodSpec, *metav1.LabelSelector)
}{
	{"node-local", 10, func(*corev1.PodSpec, *metav1.LabelSelector) {}},
	{"zone spread", 30, func(s *corev1.PodSpec, of *metav1.LabelSelector) {
		s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 5, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: of}}
	}},
	{"soft spread", 30, func(s *corev1.PodSpec, of *metav1.LabelSelector) {
		for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelHostname} {
			s.TopologySpreadConstraints = append(s.TopologySpreadConstraints, corev1.TopologySpreadConstraint{MaxSkew: 3, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: of})
		}
	}},
	{"hostname anti-affinity", 30, func(s *corev1.PodSpec, of *metav1.LabelSelector) {
		s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: of, TopologyKey: corev1.LabelHostname}}}}
	}},
	{"preferred affinity", 30, func(s *corev1.PodSpec, of *metav1.LabelSelector) {
		s.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
			Weight: 50, PodAffinityTerm: corev1.PodAffinityTerm{LabelSelector: of, TopologyKey: corev1.LabelTopologyZone},
		}}}}
	}},
}

// leastSimulated is how many times the pods a second of the running scheduler must be
// simulated.
const leastSimulated = 3

// simulateRows are what placing many pods takes, every node scored, against reading
// the snapshot alone. The pods a second are those of the whole command, and are compared
// with those of the running scheduler, which scores a tenth of the nodes.
func simulateRows(ctx context.Context, dir, plugin string) ([]row, error) {
	running, err := runningSchedulerRate(ctx, dir)
	if err != nil {
		return nil, err
	}
	var rows []row
	for i, load := range simulated {
		file := filepath.Join(dir, fmt.Sprintf("simulated-%d.snapshot", i))
		if err := writeSimulated(file, load.edit); err != nil {
			return nil, err
		}
		rows = append(rows, row{
			name:     fmt.Sprintf(simulateName+"%d pods on %d nodes, %s", simulatedNew, simulatedNodes, load.name),
			baseline: "reading the snapshot (show)",
			runs:     1, maxSeconds: load.seconds, maxMiB: 2048,
			pods: simulatedNew, running: running, leastTimes: leastSimulated,
			a: []string{plugin, "simulate", "--pending", "--snapshot", file},
			b: []string{plugin, "snapshot", "show", file},
		})
	}
	return rows, nil
}

// writeSimulated writes the snapshot of one load.
func writeSimulated(file string, edit func(*corev1.PodSpec, *metav1.LabelSelector)) error {
	s := &snapshot.Snapshot{Namespaces: []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "default"}}}}
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("128Gi"), corev1.ResourcePods: resource.MustParse("110")}
	for i := range simulatedNodes {
		name := fmt.Sprintf("node-%05d", i)
		s.Nodes = append(s.Nodes, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: fmt.Sprintf("z%d", i%3)}},
			Status:     corev1.NodeStatus{Capacity: room, Allocatable: room},
		})
	}
	for i := range simulatedBound + simulatedNew {
		s.Pods = append(s.Pods, simulatedPod(i, edit))
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := snapshot.Write(f, s, "bench"); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

func simulatedPod(i int, edit func(*corev1.PodSpec, *metav1.LabelSelector)) *corev1.Pod {
	labels := map[string]string{"app": fmt.Sprintf("app-%d", i%simulatedWorkloads)}
	name := fmt.Sprintf("pod-%06d", i)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Labels: labels},
		Spec: corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName, RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{
			Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("1Gi")}},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	edit(&p.Spec, &metav1.LabelSelector{MatchLabels: labels})
	if i < simulatedBound {
		p.Spec.NodeName, p.Status.Phase = fmt.Sprintf("node-%05d", i*7919%simulatedNodes), corev1.PodRunning
	}
	return p
}
