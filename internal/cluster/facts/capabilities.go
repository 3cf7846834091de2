package facts

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
)

// Capabilities returns what the cluster of the snapshot can express, and what is in
// it. What the snapshot is missing stays unknown.
func Capabilities(s *snapshot.Snapshot) capability.Capabilities {
	caps := capability.Capabilities{Cluster: s.Cluster, Minor: minor(s.Version)}
	missing := map[string]bool{}
	for _, m := range s.Missing {
		missing[m.Resource] = true
	}
	caps.NodesKnown, caps.NamespacesKnown = true, true
	caps.Nodes = []capability.Node{}
	for _, n := range s.Nodes {
		caps.Nodes = append(caps.Nodes, capability.Node{Name: n.Name, Labels: n.Labels, Taints: n.Spec.Taints, Unschedulable: n.Spec.Unschedulable})
	}
	caps.Namespaces = map[string]map[string]string{}
	for _, n := range s.Namespaces {
		caps.Namespaces[n.Name] = n.Labels
	}
	if !missing["persistentvolumes"] {
		caps.Volumes = volumes(s.PersistentVolumes)
	}
	if !missing["priorityclasses.scheduling.k8s.io"] {
		caps.PriorityClasses = map[string]int32{}
		for _, c := range s.PriorityClasses {
			caps.PriorityClasses[c.Name] = c.Value
		}
		if c := snapshot.DefaultPriorityClass(s.PriorityClasses); c != nil {
			caps.DefaultPriorityClass = c.Name
		}
	}
	caps.NodePools = capability.WithNodePools(nil, nodePools(s.NodePools))
	caps.NodePoolsKnown = len(s.NodePools) > 0 || s.Serves("nodepools.karpenter.sh")
	caps.PodGroups, caps.Gangs = gangs(s)
	for _, scheduler := range s.Schedulers {
		if scheduler.Ready {
			caps.Schedulers = append(caps.Schedulers, capability.Scheduler{
				Name: scheduler.Name, Bundled: scheduler.Bundled, ProfilesKnown: len(scheduler.Profiles) > 0, Profiles: scheduler.Profiles,
			})
		}
	}
	caps.SchedulersKnown = !missing["deployments.apps"]
	return caps
}

// minor returns the 37 of v1.37.2, 0 if the version is not known.
func minor(version string) int {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) < 2 {
		return 0
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil {
		return 0
	}
	return n
}

func volumes(all []*corev1.PersistentVolume) map[string]capability.Volume {
	bound := map[string]capability.Volume{}
	for _, v := range all {
		if v.Status.Phase == corev1.VolumeBound && v.Spec.ClaimRef != nil {
			bound[v.Spec.ClaimRef.Namespace+"/"+v.Spec.ClaimRef.Name] = capability.Volume{Name: v.Name, Affinity: v.Spec.NodeAffinity}
		}
	}
	return bound
}

func nodePools(all []*unstructured.Unstructured) []capability.NodePool {
	var pools []capability.NodePool
	for _, u := range all {
		if pool, err := capability.ReadNodePool(u.Object); err == nil {
			pools = append(pools, pool)
		}
	}
	return pools
}

// gangs returns the best form of PodGroups that the cluster of the snapshot knows, and
// the least number of members of each.
func gangs(s *snapshot.Snapshot) (capability.PodGroupForm, map[string]int32) {
	least := map[string]int32{}
	switch {
	case len(s.PodGroups) > 0 || s.Serves("podgroups.scheduling.k8s.io"):
		for _, g := range s.PodGroups {
			if g.Spec.SchedulingPolicy.Gang != nil {
				least[g.Namespace+"/"+g.Name] = g.Spec.SchedulingPolicy.Gang.MinCount
			}
		}
		return capability.PodGroupAPI, least
	case len(s.CRDPodGroups) > 0 || s.Serves("podgroups.scheduling.x-k8s.io"):
		for _, g := range s.CRDPodGroups {
			n, _, _ := unstructured.NestedInt64(g.Object, "spec", "minMember")
			least[g.GetNamespace()+"/"+g.GetName()] = int32(n)
		}
		return capability.PodGroupCRD, least
	case s.Served != nil:
		return capability.PodGroupLabels, least
	}
	return "", nil
}
