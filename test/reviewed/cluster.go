package reviewed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
)

var zones = []string{"eu-1a", "eu-1b", "eu-1c"}

// pools are the node pools: what share of the nodes each has, and what a node has.
var pools = []struct {
	name, label, value string
	percent            int
	cpu, memory        string
}{
	{"general", "example.com/pool", "general", 60, "16", "64Gi"},
	{"spot", "karpenter.sh/capacity-type", "spot", 25, "16", "64Gi"},
	{"memory", "example.com/pool", "memory", 15, "16", "128Gi"},
}

// nodes returns the nodes by pool.
func (c Case) nodes() (all []*corev1.Node, byPool map[string][]*corev1.Node) {
	byPool = map[string][]*corev1.Node{}
	for _, p := range pools {
		for i := range max(c.Nodes*p.percent/100, len(zones)) {
			zone := zones[i%len(zones)]
			name := fmt.Sprintf("%s-%s-%03d", p.name, zone[3:], i/len(zones))
			room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(p.cpu), corev1.ResourceMemory: resource.MustParse(p.memory), corev1.ResourcePods: resource.MustParse("110")}
			n := &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{
					corev1.LabelHostname: name, corev1.LabelTopologyZone: zone, corev1.LabelTopologyRegion: "eu-1",
					corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", p.label: p.value,
				}},
				Status: corev1.NodeStatus{Capacity: room, Allocatable: room},
			}
			all, byPool[p.name] = append(all, n), append(byPool[p.name], n)
		}
	}
	return all, byPool
}

// writeSnapshot writes the cluster, in which the compiled manifests run.
func (c Case) writeSnapshot(workloads []workload, compiled []byte) error {
	s := &snapshot.Snapshot{Taken: time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC), Cluster: "prod-eu", Version: "v1.37.2"}
	var byPool map[string][]*corev1.Node
	s.Nodes, byPool = c.nodes()
	pool := map[string]string{}
	for _, w := range workloads {
		pool[w.namespace+"/"+w.name] = w.tier.pool
	}
	for _, name := range namespaces {
		s.Namespaces = append(s.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}}})
	}
	at := map[string]int{}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(compiled), 4096)
	for {
		d := &appsv1.Deployment{}
		err := documents.Decode(d)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("what compile wrote: %w", err)
		}
		if d.Kind != "Deployment" {
			continue
		}
		d.UID = types.UID(d.Namespace + "-" + d.Name)
		nodes := pool[d.Namespace+"/"+d.Name]
		c.run(s, d, byPool[nodes], at[nodes])
		at[nodes] += int(*d.Spec.Replicas)
	}
	f, err := os.Create(c.Snapshot())
	if err != nil {
		return err
	}
	return errors.Join(snapshot.Write(f, s, "test"), f.Close())
}

// run adds the Deployment with its ReplicaSet and pods, which go to the nodes in turn
// from the first on. Two pods in nine go to the next node of the same zone, so that
// zones are not quite even.
func (c Case) run(s *snapshot.Snapshot, d *appsv1.Deployment, nodes []*corev1.Node, first int) {
	d.TypeMeta = metav1.TypeMeta{}
	s.Deployments = append(s.Deployments, d)
	hash := fmt.Sprintf("%08x", len(s.Deployments)*2654435761%(1<<32))
	template := *d.Spec.Template.DeepCopy()
	template.Labels = maps.Clone(template.Labels)
	template.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	controlled := true
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Namespace, Name: d.Name + "-" + hash, UID: d.UID + types.UID("-"+hash), Labels: template.Labels,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: d.Name, UID: d.UID, Controller: &controlled}},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: d.Spec.Replicas, Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template},
	}
	s.ReplicaSets = append(s.ReplicaSets, set)
	if template.Labels["tier"] == "web" {
		one := intstr.FromInt32(1)
		s.PodDisruptionBudgets = append(s.PodDisruptionBudgets, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name},
			Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one, Selector: d.Spec.Selector},
		})
	}
	for i := range int(*d.Spec.Replicas) {
		name := fmt.Sprintf("%s-%05x", set.Name, i*7919%(1<<20))
		on := first + i
		if i%9 > 6 {
			on += len(zones) - i%len(zones)
		}
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: d.Namespace, Name: name, UID: types.UID(name), Labels: template.Labels,
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set.Name, UID: set.UID, Controller: &controlled}},
			},
			Spec:   *template.Spec.DeepCopy(),
			Status: corev1.PodStatus{Phase: corev1.PodRunning},
		}
		pod.Spec.NodeName = nodes[on%len(nodes)].Name
		s.Pods = append(s.Pods, pod)
	}
}
