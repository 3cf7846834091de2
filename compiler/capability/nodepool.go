package capability

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// The group, version and kind of Karpenter's NodePools.
const (
	NodePoolGroup   = "karpenter.sh"
	NodePoolVersion = "v1"
	NodePoolKind    = "NodePool"
)

// NodePool is what is known of a NodePool of Karpenter (karpenter.sh/v1).
type NodePool struct {
	Name string
	// Labels and Taints are those of the nodes that it makes. StartupTaints are
	// taken off a node by somebody else once it is up.
	Labels                map[string]string
	Taints, StartupTaints []corev1.Taint
	Requirements          []NodePoolRequirement
	// Object is the whole object as plain JSON values, without what only a server
	// writes; read only.
	Object map[string]any
	// Source is where its manifest is; invalid for one of the cluster.
	Source diag.Range
}

// NodePoolRequirement narrows what nodes a NodePool makes. It has the operators
// of node affinity, and Gte and Lte besides.
type NodePoolRequirement struct {
	corev1.NodeSelectorRequirement
	// MinValues is how many different values there must be to choose from.
	MinValues *int `json:"minValues,omitempty"`
}

// Normal returns the requirement in the operators of node affinity.
func (r NodePoolRequirement) Normal() corev1.NodeSelectorRequirement {
	out := r.NodeSelectorRequirement
	shift := map[corev1.NodeSelectorOperator]int64{"Gte": -1, "Lte": 1}[r.Operator]
	if shift == 0 || len(r.Values) != 1 {
		return out
	}
	var n int64
	if _, err := fmt.Sscan(r.Values[0], &n); err != nil {
		return out
	}
	out.Operator, out.Values = corev1.NodeSelectorOpGt, []string{fmt.Sprint(n + shift)}
	if shift > 0 {
		out.Operator = corev1.NodeSelectorOpLt
	}
	return out
}

// ReadNodePool returns what is known of the NodePool in the object. Its error
// says what does not fit the kind.
func ReadNodePool(object map[string]any) (NodePool, error) {
	var typed struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Spec struct {
			Template struct {
				Metadata struct {
					Labels map[string]string `json:"labels"`
				} `json:"metadata"`
				Spec struct {
					Taints        []corev1.Taint        `json:"taints"`
					StartupTaints []corev1.Taint        `json:"startupTaints"`
					Requirements  []NodePoolRequirement `json:"requirements"`
				} `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
	}
	data, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(data, &typed)
	}
	if err != nil {
		return NodePool{}, fmt.Errorf("the NodePool does not fit its kind: %w", err)
	}
	template := typed.Spec.Template
	return NodePool{
		Name: typed.Metadata.Name, Labels: template.Metadata.Labels, Taints: template.Spec.Taints,
		StartupTaints: template.Spec.StartupTaints, Requirements: template.Spec.Requirements, Object: withoutServers(object),
	}, nil
}

// serverFields are the fields of an object's metadata that only a server writes.
var serverFields = []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"}

func withoutServers(object map[string]any) map[string]any {
	out := maps.Clone(object)
	delete(out, "status")
	if metadata, ok := out["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		for _, field := range serverFields {
			delete(metadata, field)
		}
		out["metadata"] = metadata
	}
	return out
}

// WithNodePools returns the NodePools of both lists, sorted by name; of two with
// one name the one of above.
func WithNodePools(below, above []NodePool) []NodePool {
	byName := map[string]NodePool{}
	for _, list := range [][]NodePool{below, above} {
		for _, p := range list {
			byName[p.Name] = p
		}
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b NodePool) int { return cmp.Compare(a.Name, b.Name) })
}
