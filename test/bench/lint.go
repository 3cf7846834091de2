package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
)

// What is linted, and in how many seconds.
const (
	lintName      = "lint: 100 policies, 1,000 manifests, 1,000 nodes"
	lintPolicies  = 100
	lintManifests = 1000
	lintNodes     = 1000
	lintPods      = 10_000
	lintSeconds   = 2
)

// lintRows is what lint of a large repository against a large cluster takes. Each
// manifest has placement of its own and a budget, so that every rule has to look.
func lintRows(dir, plugin, self string) ([]row, error) {
	linted := filepath.Join(dir, "linted")
	if err := generate(linted, lintPolicies, lintManifests, 0); err != nil {
		return nil, err
	}
	if err := placeByHand(filepath.Join(linted, "manifests")); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "linted.snapshot")
	if err := writeLinted(file); err != nil {
		return nil, err
	}
	return []row{{
		name:     lintName,
		baseline: "CUE alone + YAML decode and encode",
		runs:     5, maxSeconds: lintSeconds,
		a: []string{plugin, "lint", "-p", linted + "/placement", "-f", linted + "/manifests", "-R", "--snapshot", file},
		b: []string{self, "baseline", linted + "/placement", linted + "/manifests"},
	}}, nil
}

// placeByHand adds placement and a budget to each manifest below the folder.
func placeByHand(dir string) error {
	n := 0
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		n++
		_, rest, _ := strings.Cut(string(data), "\n  name: ")
		name, rest, _ := strings.Cut(rest, "\n")
		_, rest, _ = strings.Cut(rest, "namespace: ")
		namespace, _, _ := strings.Cut(rest, "\n")
		keys := ", matchLabelKeys: [pod-template-hash]"
		if n%10 == 0 {
			keys = "" // one in ten has something to find
		}
		text := strings.Replace(string(data), "      tolerations:\n", fmt.Sprintf(handText, name, n%7, keys), 1) + fmt.Sprintf(budgetText, name, namespace)
		return os.WriteFile(path, []byte(text), 0o644)
	})
}

const handText = `      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
              - matchExpressions: [{key: kubernetes.io/os, operator: In, values: [linux]}]
          preferredDuringSchedulingIgnoredDuringExecution:
            - {weight: 60, preference: {matchExpressions: [{key: example.com/row, operator: In, values: [r%[2]d]}]}}
            - {weight: 40, preference: {matchExpressions: [{key: example.com/row, operator: In, values: [r1, r2]}]}}
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app.kubernetes.io/name: %[1]s}}}
      topologySpreadConstraints:
        - {topologyKey: topology.kubernetes.io/zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app.kubernetes.io/name: %[1]s}}%[3]s}
      tolerations:
`

const budgetText = `---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  maxUnavailable: 1
  selector: {matchLabels: {app.kubernetes.io/name: %[1]s}}
`

// writeLinted writes the snapshot of the cluster.
func writeLinted(file string) error {
	s := &snapshot.Snapshot{}
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("128Gi"), corev1.ResourcePods: resource.MustParse("110")}
	for i := range lintNodes {
		name := fmt.Sprintf("node-%05d", i)
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{
				corev1.LabelHostname: name, corev1.LabelTopologyZone: fmt.Sprintf("z%d", i%3), corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
				"example.com/row": fmt.Sprintf("r%d", i%7),
			}},
			Status: corev1.NodeStatus{Capacity: room, Allocatable: room},
		}
		if i%10 == 0 {
			node.Spec.Taints = []corev1.Taint{{Key: "example.com/maintenance", Effect: corev1.TaintEffectNoSchedule}}
		}
		s.Nodes = append(s.Nodes, node)
	}
	for i := range lintManifests / 2 {
		s.Namespaces = append(s.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("team-%d", i)}})
	}
	for i := range lintPods {
		p := simulatedPod(i, func(*corev1.PodSpec, *metav1.LabelSelector) {})
		p.Namespace = fmt.Sprintf("team-%d", i%(lintManifests/2))
		p.Spec.NodeName, p.Status.Phase = fmt.Sprintf("node-%05d", i%lintNodes), corev1.PodRunning
		s.Pods = append(s.Pods, p)
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
