// Package state says in one short text what a scheduler saw: the hash of its
// snapshot and of what is nominated. Two schedulers with the same hash had the same
// nodes with the same pods before them, and so must decide alike.
//
// The package must not know who compares hashes, nor how objects came into the
// snapshot.
package state

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// Hasher hashes the snapshots of one scheduler. It remembers what it has hashed of
// each node, so that a snapshot costs what has changed in it. It may be used from
// one goroutine.
type Hasher struct {
	nodes map[string]hashed
}

// hashed is the hash of a node at one generation of it.
type hashed struct {
	generation int64
	sum        [sha256.Size]byte
}

// Of returns the hash of the nodes, in whatever order they come, with their pods,
// and of the pods that nominated returns for each node's name. What counts of nodes
// and pods is all of them but the resource version and who manages which field.
func (h *Hasher) Of(nodes []fwk.NodeInfo, nominated func(node string) []fwk.PodInfo) (string, error) {
	known := h.nodes
	h.nodes = make(map[string]hashed, len(nodes))
	sorted := slices.SortedFunc(slices.Values(nodes), func(a, b fwk.NodeInfo) int {
		return strings.Compare(a.Node().Name, b.Node().Name)
	})
	whole := sha256.New()
	for _, node := range sorted {
		name := node.Node().Name
		sum, ok := known[name]
		if !ok || sum.generation != node.GetGeneration() {
			of, err := ofNode(node)
			if err != nil {
				return "", err
			}
			sum = hashed{node.GetGeneration(), of}
		}
		h.nodes[name] = sum
		whole.Write(sum.sum[:])
		var uids []string
		for _, pod := range nominated(name) {
			uids = append(uids, string(pod.GetPod().UID))
		}
		slices.Sort(uids)
		fmt.Fprintln(whole, name, uids)
	}
	return hex.EncodeToString(whole.Sum(nil)[:16]), nil
}

// ofNode hashes the node and its pods.
func ofNode(info fwk.NodeInfo) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	node := *info.Node()
	bare(&node.ObjectMeta)
	node.TypeMeta = metav1.TypeMeta{}
	if err := write(h, node); err != nil {
		return sum, fmt.Errorf("hash node %s: %w", node.Name, err)
	}
	pods := slices.SortedFunc(slices.Values(info.GetPods()), func(a, b fwk.PodInfo) int {
		return strings.Compare(string(a.GetPod().UID), string(b.GetPod().UID))
	})
	for _, p := range pods {
		pod := *p.GetPod()
		bare(&pod.ObjectMeta)
		pod.TypeMeta = metav1.TypeMeta{}
		if err := write(h, pod); err != nil {
			return sum, fmt.Errorf("hash pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	h.Sum(sum[:0])
	return sum, nil
}

// bare takes away what the API server counts and nothing is decided by.
func bare(meta *metav1.ObjectMeta) {
	meta.ResourceVersion, meta.ManagedFields = "", nil
}

func write[T corev1.Node | corev1.Pod](h hash.Hash, object T) error {
	return json.NewEncoder(h).Encode(object)
}
