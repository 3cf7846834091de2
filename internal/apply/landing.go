package apply

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/trim"
)

// Landing is how many pods of one workload are in one place.
type Landing struct {
	Workload string
	// Zone and Pool are those of the nodes; empty where they have none.
	Zone, Pool string
	// Node is the node's name; empty for pods that have none yet.
	Node string
	// Pods are in the place, Ready of them ready.
	Pods, Ready int
}

// zoneLabel is the label that nodes carry their zone in.
const zoneLabel = corev1.LabelTopologyZone

// Landings says where the pods of the workloads are now, sorted by workload,
// zone, pool and node; pods without a node come last. Pods that are being
// deleted do not count. poolOf names the pool of a node; it may be nil.
func (a *Applier) Landings(ctx context.Context, changes []*WorkloadChange, poolOf func(node string) string) ([]Landing, error) {
	in, err := a.surroundings(ctx, changes)
	if err != nil {
		return nil, err
	}
	return in.landings(changes, poolOf), nil
}

// surroundings are the pods of workloads and the nodes that they may be on.
type surroundings struct {
	pods  map[types.UID][]*corev1.Pod
	nodes map[string]*corev1.Node
}

// surroundings reads the pods in the namespaces of the workloads, and the nodes.
func (a *Applier) surroundings(ctx context.Context, changes []*WorkloadChange) (surroundings, error) {
	var namespaces []string
	for _, c := range changes {
		namespaces = append(namespaces, c.Workload.Namespace)
	}
	slices.Sort(namespaces)
	pods, err := a.Client.PodsByOwner(ctx, slices.Compact(namespaces))
	if err != nil {
		return surroundings{}, fmt.Errorf("list pods: %w", err)
	}
	nodes, err := a.nodesByName(ctx)
	return surroundings{pods: pods, nodes: nodes}, err
}

// landings counts the pods of the workloads by place; see Landings.
func (in surroundings) landings(changes []*WorkloadChange, poolOf func(node string) string) []Landing {
	refs := map[types.UID]string{}
	for _, c := range changes {
		refs[types.UID(c.Workload.UID)] = c.Workload.Ref()
	}
	type place struct{ workload, node string }
	counts := map[place]*Landing{}
	for uid, ref := range refs {
		for _, pod := range in.pods[uid] {
			if pod.DeletionTimestamp != nil || trim.Ended(pod) {
				continue
			}
			key := place{ref, pod.Spec.NodeName}
			l := counts[key]
			if l == nil {
				l = &Landing{Workload: ref, Node: pod.Spec.NodeName}
				if node := in.nodes[pod.Spec.NodeName]; node != nil {
					l.Zone = node.Labels[zoneLabel]
				}
				if poolOf != nil && l.Node != "" {
					l.Pool = poolOf(l.Node)
				}
				counts[key] = l
			}
			l.Pods++
			if ready(pod) {
				l.Ready++
			}
		}
	}
	landings := make([]Landing, 0, len(counts))
	for l := range maps.Values(counts) {
		landings = append(landings, *l)
	}
	slices.SortFunc(landings, func(a, b Landing) int {
		return cmp.Or(cmp.Compare(a.Workload, b.Workload), boolOrder(a.Node == "", b.Node == ""),
			cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Node, b.Node))
	})
	return landings
}

func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func (a *Applier) nodesByName(ctx context.Context) (map[string]*corev1.Node, error) {
	list, err := a.listNodes(ctx)
	if err != nil {
		return nil, err
	}
	nodes := make(map[string]*corev1.Node, len(list))
	for _, node := range list {
		nodes[node.Name] = node
	}
	return nodes, nil
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
