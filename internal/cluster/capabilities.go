package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Capabilities reads what the cluster can express and what is in it. A kind
// that may not be listed is a Warning and stays unknown in the result; a
// cluster that does not answer is an Error.
func (c *Client) Capabilities(ctx context.Context) (capability.Capabilities, diag.Findings) {
	var caps capability.Capabilities
	minor, err := c.Minor(ctx)
	if err != nil {
		return caps, diag.Findings{{Rule: "input/cluster", Severity: diag.Error, Message: err.Error()}}
	}
	caps.Minor = minor

	var findings diag.Findings
	var denied unread
	read := func(err error, what, consequence string) bool {
		switch {
		case apierrors.IsForbidden(err):
			denied.kinds = append(denied.kinds, what)
			denied.consequences = append(denied.consequences, consequence)
		case err != nil:
			findings = append(findings, unreadable(what, consequence, err))
		}
		return err == nil
	}
	nodes, err := c.nodes(ctx)
	if read(err, "nodes", "what depends on which nodes there are is not checked") {
		caps.Nodes, caps.NodesKnown = nodes, true
	}
	namespaces, err := c.namespaces(ctx)
	if read(err, "namespaces", "labels of namespaces are not known") {
		caps.Namespaces, caps.NamespacesKnown = namespaces, true
	}
	volumes, err := c.volumes(ctx)
	if read(err, "persistentvolumes", "whether a bound volume contradicts a policy is not checked") {
		caps.Volumes = volumes
	}
	classes, byDefault, err := c.priorityClasses(ctx)
	if read(err, "priorityclasses", "whether a priority class exists is not checked") {
		caps.PriorityClasses, caps.DefaultPriorityClass = classes, byDefault
	}
	pools, served, err := c.nodePools(ctx)
	if read(err, "nodepools", "whether Karpenter can make the nodes that policies ask for is not checked") {
		caps.NodePools, caps.NodePoolsKnown = pools, served
	}
	schedulers, err := c.schedulers(ctx)
	switch {
	case err == nil:
		caps.Schedulers, caps.SchedulersKnown = schedulers, true
	case !apierrors.IsForbidden(err):
		// Where it is forbidden, policies that need a scheduler say so, and others do
		// not mind.
		findings = append(findings, unreadable("deployments", "whether the bundled scheduler runs is not known", err))
	}
	return caps, append(findings, denied.finding()...)
}

// unread are the kinds that may not be listed, and what that leaves unchecked.
type unread struct{ kinds, consequences []string }

// finding says it all in one Warning; none if there is nothing to say.
func (u unread) finding() diag.Findings {
	if len(u.kinds) == 0 {
		return nil
	}
	return diag.Findings{{
		Rule: "apply/cannot-read", Severity: diag.Warning,
		Message: fmt.Sprintf("you may not list %s, so %s", strings.Join(u.kinds, ", "), strings.Join(u.consequences, "; ")),
	}}
}

func (c *Client) nodes(ctx context.Context) ([]capability.Node, error) {
	nodes := []capability.Node{}
	err := eachPaged(ctx, c.Kube.CoreV1().Nodes().List, func(o runtime.Object) error {
		n := o.(*corev1.Node)
		nodes = append(nodes, capability.Node{Name: n.Name, Labels: n.Labels, Taints: n.Spec.Taints, Unschedulable: n.Spec.Unschedulable})
		return nil
	})
	slices.SortFunc(nodes, func(a, b capability.Node) int { return cmp.Compare(a.Name, b.Name) })
	return nodes, err
}

func (c *Client) namespaces(ctx context.Context) (map[string]map[string]string, error) {
	namespaces := map[string]map[string]string{}
	err := eachPaged(ctx, c.Kube.CoreV1().Namespaces().List, func(o runtime.Object) error {
		n := o.(*corev1.Namespace)
		namespaces[n.Name] = n.Labels
		return nil
	})
	return namespaces, err
}

func (c *Client) volumes(ctx context.Context) (map[string]capability.Volume, error) {
	volumes := map[string]capability.Volume{}
	err := eachPaged(ctx, c.Kube.CoreV1().PersistentVolumes().List, func(o runtime.Object) error {
		v := o.(*corev1.PersistentVolume)
		if v.Status.Phase == corev1.VolumeBound && v.Spec.ClaimRef != nil {
			volumes[v.Spec.ClaimRef.Namespace+"/"+v.Spec.ClaimRef.Name] = capability.Volume{Name: v.Name, Affinity: v.Spec.NodeAffinity}
		}
		return nil
	})
	return volumes, err
}

// priorityClasses returns the values of the classes, and the name of the one
// that is the default: of several, the one of the lowest value, as the API
// server's admission has it.
func (c *Client) priorityClasses(ctx context.Context) (classes map[string]int32, byDefault string, err error) {
	classes = map[string]int32{}
	err = eachPaged(ctx, c.Kube.SchedulingV1().PriorityClasses().List, func(o runtime.Object) error {
		p := o.(*schedulingv1.PriorityClass)
		classes[p.Name] = p.Value
		if p.GlobalDefault && (byDefault == "" || p.Value < classes[byDefault]) {
			byDefault = p.Name
		}
		return nil
	})
	return classes, byDefault, err
}
