package preview

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	resourcehelper "k8s.io/component-helpers/resource"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate"
)

// Cannot is why a pool does not help a pod.
type Cannot struct {
	Pool string
	Why  []string
}

// autoscaler says of each pool that can get nodes why that does not help the pod.
func (x *explainer) autoscaler(ctx context.Context, pod *corev1.Pod) ([]Cannot, error) {
	var all []Cannot
	for _, pool := range x.request.Pools {
		c := Cannot{Pool: pool.Name}
		if object := x.nodePool(pool.Name); object != nil {
			c.Why = overLimits(object, pod)
		} else if pool.Limit > 0 {
			c.Why = []string{fmt.Sprintf("it may get no more than %d nodes", pool.Limit)}
		}
		blockers, err := x.world.Offer(ctx, pod, pool.Template)
		if err != nil {
			return nil, err
		}
		for _, b := range blockers {
			c.Why = append(c.Why, fmt.Sprintf("a new node would not take it: %s (%s)", strings.Join(b.Reasons, ", "), b.Plugin))
		}
		if len(c.Why) > 0 {
			all = append(all, c)
		}
	}
	for _, object := range x.request.Snapshot.NodePools {
		// Of a pool without nodes there is no template: what it says of itself is all.
		if slices.ContainsFunc(x.request.Pools, func(p simulate.Pool) bool { return p.Name == object.GetName() }) {
			continue
		}
		if why := offers(object, pod); len(why) > 0 {
			all = append(all, Cannot{Pool: object.GetName(), Why: why})
		}
	}
	return all, nil
}

// nodePool returns Karpenter's NodePool of the name, or nil.
func (x *explainer) nodePool(name string) *unstructured.Unstructured {
	for _, u := range x.request.Snapshot.NodePools {
		if u.GetName() == name {
			return u
		}
	}
	return nil
}

// customProfile says what an autoscaler does not know of the profile: it simulates
// with kube-scheduler's default plugins (kubernetes/autoscaler#4518).
func (x *explainer) customProfile(ctx context.Context, pod *corev1.Pod) (string, error) {
	if pod.Spec.SchedulerName == corev1.DefaultSchedulerName || len(x.request.Pools)+len(x.request.Snapshot.NodePools) == 0 {
		return "", nil
	}
	stock := pod.DeepCopy()
	stock.Spec.SchedulerName = corev1.DefaultSchedulerName
	t, err := x.world.Try(ctx, stock)
	if err != nil {
		return "", err
	}
	if t.Feasible > 0 {
		return fmt.Sprintf("an autoscaler adds no nodes for it: by kube-scheduler's default plugins, which it simulates with, the pod fits node %s; what profile %q asks beyond them it does not know. Ask for it with a node label or a resource, or give cluster-autoscaler the profile with --scheduler-config-file", t.Node, pod.Spec.SchedulerName), nil
	}
	return fmt.Sprintf("an autoscaler simulates with kube-scheduler's default plugins: what profile %q asks beyond them it does not know, so a node that it adds need not help", pod.Spec.SchedulerName), nil
}

// overLimits says which limits of the NodePool leave no room for the pod.
func overLimits(pool *unstructured.Unstructured, pod *corev1.Pod) []string {
	limits, used := quantities(pool, "spec", "limits"), quantities(pool, "status", "resources")
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	requests["nodes"] = *resource.NewQuantity(1, resource.DecimalSI)
	var why []string
	for _, name := range sortedResources(limits) {
		needs, ok := requests[name]
		if !ok {
			continue
		}
		total, limit, taken := used[name].DeepCopy(), limits[name], used[name]
		if total.Add(needs); total.Cmp(limit) > 0 {
			why = append(why, fmt.Sprintf("its limit of %s %s leaves no room: %s are used, and the pod needs %s", limit.String(), name, taken.String(), needs.String()))
		}
	}
	return why
}

// RoomFor returns how many more nodes like the template the limits of the NodePool
// allow, and false where it has none.
func RoomFor(pool *unstructured.Unstructured, template *corev1.Node) (int, bool) {
	limits, used := quantities(pool, "spec", "limits"), quantities(pool, "status", "resources")
	most, limited := int64(0), false
	for name, limit := range limits {
		each := template.Status.Capacity[name]
		if name == "nodes" {
			each = *resource.NewQuantity(1, resource.DecimalSI)
		}
		if each.MilliValue() <= 0 {
			continue
		}
		left, taken := limit.DeepCopy(), used[name]
		left.Sub(taken)
		n := max(0, left.MilliValue()/each.MilliValue())
		if !limited || n < most {
			most, limited = n, true
		}
	}
	return int(most), limited
}

// quantities reads a map of resources; what cannot be read is left out.
func quantities(u *unstructured.Unstructured, path ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	values, _, _ := unstructured.NestedMap(u.Object, path...)
	for name, value := range values {
		if q, err := resource.ParseQuantity(fmt.Sprint(value)); err == nil {
			list[corev1.ResourceName(name)] = q
		}
	}
	return list
}

// offers says why no node of a NodePool that has none would take the pod: its limits,
// taints that the pod does not tolerate, and labels that its nodes do not have.
func offers(object *unstructured.Unstructured, pod *corev1.Pod) []string {
	why := overLimits(object, pod)
	pool, err := capability.ReadNodePool(object.Object)
	if err != nil {
		return append(why, err.Error())
	}
	for _, taint := range pool.Taints {
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && !corev1helpers.TolerationsTolerateTaint(logr.Discard(), pod.Spec.Tolerations, &taint, false) {
			why = append(why, fmt.Sprintf("its nodes have the taint %s, which the pod does not tolerate", taint.ToString()))
		}
	}
	for _, r := range required(pod) {
		if !offered(pool, r) {
			why = append(why, fmt.Sprintf("the pod requires %s, which none of its nodes has", strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Key, r.Operator, strings.Join(r.Values, ",")))))
		}
	}
	return why
}

// required are the node labels that the pod cannot do without: its node selector,
// and its required affinity where that has one term.
func required(pod *corev1.Pod) []corev1.NodeSelectorRequirement {
	var all []corev1.NodeSelectorRequirement
	for key, value := range pod.Spec.NodeSelector {
		all = append(all, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}})
	}
	slices.SortFunc(all, func(a, b corev1.NodeSelectorRequirement) int { return strings.Compare(a.Key, b.Key) })
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		if terms := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms; len(terms) == 1 {
			all = append(all, terms[0].MatchExpressions...)
		}
	}
	return all
}

// offered reports whether a node of the pool can meet the requirement. Labels that
// the pool says nothing of are open where the provider gives them.
func offered(pool capability.NodePool, want corev1.NodeSelectorRequirement) bool {
	var values []string
	said := false
	if v, ok := pool.Labels[want.Key]; ok {
		values, said = []string{v}, true
	}
	for _, r := range pool.Requirements {
		if r.Key != want.Key {
			continue
		}
		if r.Operator != corev1.NodeSelectorOpIn {
			return true // not a list of values: nobody knows which
		}
		values, said = r.Values, true
	}
	if !said {
		return want.Operator == corev1.NodeSelectorOpDoesNotExist || want.Operator == corev1.NodeSelectorOpNotIn || byProvider(want.Key)
	}
	selector, err := nodeaffinity.NewNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{want}}}})
	if err != nil {
		return true
	}
	return slices.ContainsFunc(values, func(value string) bool {
		node := &corev1.Node{}
		node.Labels = map[string]string{want.Key: value}
		return selector.Match(node)
	})
}

// byProvider reports whether nodes get the label from the kubelet or the cloud.
func byProvider(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") && domain != "node-restriction.kubernetes.io" || strings.HasPrefix(domain, "karpenter.")
}
