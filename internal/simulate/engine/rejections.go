package engine

import (
	"cmp"
	"slices"
	"strings"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// verdict is what makes two rejections the same.
type verdict struct {
	plugin  string
	code    fwk.Code
	reasons string
}

// rejections groups why the nodes other than the feasible ones are not fit.
func (c *chooser) rejections(feasible []fwk.NodeInfo, diagnosis framework.Diagnosis) []Rejection {
	nodes, err := c.snapshot.ListNodesInPlacement()
	if err != nil {
		return nil // there are none
	}
	fit := make(map[string]bool, len(feasible))
	for _, node := range feasible {
		fit[node.Node().Name] = true
	}
	var groups []Rejection
	index := map[verdict]int{}
	for _, node := range nodes {
		name := node.Node().Name
		if fit[name] {
			continue
		}
		status := diagnosis.NodeToStatus.Get(name)
		v := verdict{status.Plugin(), status.Code(), strings.Join(status.Reasons(), "\n")}
		at, ok := index[v]
		if !ok {
			at = len(groups)
			index[v] = at
			groups = append(groups, Rejection{Plugin: v.plugin, Reasons: status.Reasons(), Unresolvable: v.code == fwk.UnschedulableAndUnresolvable})
		}
		groups[at].Nodes = append(groups[at].Nodes, name)
	}
	slices.SortStableFunc(groups, func(a, b Rejection) int {
		return cmp.Or(cmp.Compare(a.Plugin, b.Plugin), slices.Compare(a.Reasons, b.Reasons))
	})
	return groups
}
