package sandbox

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"net/netip"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	// PoolAnnotation on a node names the pool that it was made from. It is an
	// annotation, so that no selector sees a label that nobody asked for.
	PoolAnnotation = "sandbox.kubectl-sched.github.io/pool"
	// appliedAnnotation keeps what Nodes last set on a node, so that the next
	// run takes away its own and leaves what others added.
	appliedAnnotation = "sandbox.kubectl-sched.github.io/applied"
)

// nameVariables are the variables of a node name's pattern.
func nameVariables() []string { return []string{"pool", "index", "zone", "region"} }

// applied is what a pool says of one node: all that Nodes writes.
type applied struct {
	Labels        map[string]string   `json:"labels"`
	Annotations   map[string]string   `json:"annotations,omitempty"`
	Taints        []corev1.Taint      `json:"taints,omitempty"`
	Capacity      corev1.ResourceList `json:"capacity"`
	Unschedulable bool                `json:"unschedulable,omitempty"`
}

func (p Pool) variables(index int) map[string]string {
	variables := map[string]string{"pool": p.Name, "index": strconv.Itoa(index), "region": p.Region, "zone": ""}
	if len(p.Zones) > 0 {
		variables["zone"] = p.Zones[index%len(p.Zones)]
	}
	return variables
}

func (p Pool) nodeName(index int) string {
	return expand(cmp.Or(p.NodeName, "{pool}-{index}"), p.variables(index))
}

// expand puts the values of variables into pattern.
func expand(pattern string, variables map[string]string) string {
	for name, value := range variables {
		pattern = strings.ReplaceAll(pattern, "{"+name+"}", value)
	}
	return pattern
}

// wanted returns what the pool says of its node index.
func (p Pool) wanted(index int) applied {
	variables := p.variables(index)
	variables["name"] = p.nodeName(index)
	labels := map[string]string{
		corev1.LabelHostname:   variables["name"],
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: "amd64",
		// A kubelet still sets these, and where they are missing a controller does.
		"beta.kubernetes.io/os":   "linux",
		"beta.kubernetes.io/arch": "amd64",
	}
	if variables["zone"] != "" {
		labels[corev1.LabelTopologyZone] = variables["zone"]
	}
	if p.Region != "" {
		labels[corev1.LabelTopologyRegion] = p.Region
	}
	for _, key := range p.WithoutLabels {
		delete(labels, key)
	}
	for key, value := range p.Labels {
		labels[key] = expand(value, variables)
	}
	annotations := map[string]string{}
	for key, value := range p.Annotations {
		annotations[key] = expand(value, variables)
	}
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("8"),
		corev1.ResourceMemory:           resource.MustParse("32Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
		corev1.ResourcePods:             resource.MustParse("110"),
	}
	maps.Copy(capacity, p.Capacity)
	return applied{Labels: labels, Annotations: annotations, Taints: p.Taints, Capacity: capacity, Unschedulable: p.Unschedulable}
}

// newNode returns node index of pool as a kubelet would register it, already
// Ready, so that one request makes it.
func (p Pool) newNode(index int) (*corev1.Node, error) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: p.nodeName(index)}}
	if err := p.wanted(index).merge(node, p.Name); err != nil {
		return nil, err
	}
	now := metav1.Now()
	healthy := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, LastHeartbeatTime: now, LastTransitionTime: now}
	}
	node.Status.Phase = corev1.NodeRunning
	node.Status.Conditions = []corev1.NodeCondition{
		healthy(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady"),
		healthy(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory"),
		healthy(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure"),
		healthy(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID"),
	}
	node.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: fakeAddress(node.Name)},
		{Type: corev1.NodeHostName, Address: node.Name},
	}
	node.Status.NodeInfo = corev1.NodeSystemInfo{
		Architecture: "amd64", OperatingSystem: "linux", KernelVersion: "fake", OSImage: "fake",
		ContainerRuntimeVersion: "fake", KubeletVersion: "fake",
	}
	return node, nil
}

// fakeAddress returns an address for a node, the same for the same name.
func fakeAddress(name string) string {
	hash := fnv.New32a()
	hash.Write([]byte(name)) // never fails
	sum := hash.Sum32()
	return netip.AddrFrom4([4]byte{172, 16 | byte(sum>>16)&0x0f, byte(sum >> 8), byte(sum)}).String()
}

// isApplied reports whether node says that exactly a was set on it last, by pool.
func (a applied) isApplied(node *corev1.Node, pool string) (bool, error) {
	record, err := json.Marshal(a)
	if err != nil {
		return false, err
	}
	return node.Annotations[appliedAnnotation] == string(record) && node.Annotations[PoolAnnotation] == pool, nil
}

// merge makes node what a says: what an earlier merge set and a does not name is
// taken away, and what others set is left.
func (a applied) merge(node *corev1.Node, pool string) error {
	var before applied
	if record := node.Annotations[appliedAnnotation]; record != "" {
		if err := json.Unmarshal([]byte(record), &before); err != nil {
			return fmt.Errorf("node %s: annotation %s: %w", node.Name, appliedAnnotation, err)
		}
	}
	node.Labels = mergeMap(node.Labels, before.Labels, a.Labels)
	node.Annotations = mergeMap(node.Annotations, before.Annotations, a.Annotations)
	record, err := json.Marshal(a)
	if err != nil {
		return err
	}
	node.Annotations[PoolAnnotation], node.Annotations[appliedAnnotation] = pool, string(record)

	ours := sets.New[string]()
	identity := func(t corev1.Taint) string { return t.Key + ":" + string(t.Effect) }
	for _, taint := range append(append([]corev1.Taint(nil), before.Taints...), a.Taints...) {
		ours.Insert(identity(taint))
	}
	taints := append([]corev1.Taint(nil), a.Taints...)
	for _, taint := range node.Spec.Taints {
		if !ours.Has(identity(taint)) {
			taints = append(taints, taint)
		}
	}
	node.Spec.Taints = taints
	if before.Unschedulable != a.Unschedulable {
		node.Spec.Unschedulable = a.Unschedulable
	}
	node.Status.Capacity, node.Status.Allocatable = a.Capacity, a.Capacity
	return nil
}

// mergeMap returns now without the keys of before and with those of wanted.
func mergeMap(now, before, wanted map[string]string) map[string]string {
	merged := maps.Clone(now)
	if merged == nil {
		merged = map[string]string{}
	}
	for key := range before {
		delete(merged, key)
	}
	maps.Copy(merged, wanted)
	return merged
}
