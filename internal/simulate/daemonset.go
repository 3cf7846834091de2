package simulate

import (
	"context"
	"strconv"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	appsapi "k8s.io/kubernetes/pkg/apis/apps/v1"
	"k8s.io/kubernetes/pkg/controller/daemon"
	daemonutil "k8s.io/kubernetes/pkg/controller/daemon/util"
)

// rolloutDaemonSet has the set become what ds says: it leaves the nodes that are
// not its own any more, comes to those that are now, and is replaced on the others.
func (w *World) rolloutDaemonSet(ctx context.Context, ds *appsv1.DaemonSet) error {
	appsapi.SetObjectDefaults_DaemonSet(ds)
	o := w.adopt(ds, &owner{kind: "DaemonSet", template: &ds.Spec.Template})
	on := map[string]*corev1.Pod{}
	for _, pod := range w.living(o) {
		on[target(pod)] = pod
	}
	var replaced []*corev1.Node
	for _, node := range w.sortedNodes() {
		pod := on[node.Name]
		run, stay := daemon.NodeShouldRunDaemonPod(logr.Discard(), node, ds)
		switch {
		case pod == nil && run:
			if _, err := w.createDaemon(o, node.Name); err != nil {
				return err
			}
		case pod != nil && !stay:
			if err := w.remove(pod); err != nil {
				return err
			}
		case pod != nil && run:
			replaced = append(replaced, node)
		}
	}
	if err := w.settle(ctx); err != nil {
		return err
	}
	if ds.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		w.assume("%s updates its pods when they are deleted: they stay as they are", o.ref())
		return nil
	}
	surge, err := daemonutil.SurgeCount(ds, len(replaced))
	if err != nil {
		return err
	}
	batch, err := daemonutil.UnavailableCount(ds, len(replaced))
	if err != nil {
		return err
	}
	if surge > 0 {
		batch = surge
	}
	return w.replaceDaemons(ctx, o, replaced, on, max(1, batch), surge > 0)
}

// replaceDaemons replaces the set's pods on the nodes, so many at a time: a node is
// begun when there are fewer than that on which the new pod is not ready. With a surge
// a new pod comes before the old one goes.
func (w *World) replaceDaemons(ctx context.Context, o *owner, nodes []*corev1.Node, on map[string]*corev1.Pod, most int, surge bool) error {
	unready := 0
	for len(nodes) > 0 {
		if unready >= most {
			w.stuck = append(w.stuck, Stuck{Workload: o.ref(), Placed: w.placed(o), Wanted: int32(len(o.pods)), At: w.unplaced(o)})
			return nil
		}
		begun := nodes[:min(most-unready, len(nodes))]
		nodes = nodes[len(begun):]
		made := make([]podName, len(begun))
		for i, node := range begun {
			if !surge {
				if err := w.remove(on[node.Name]); err != nil {
					return err
				}
			}
			var err error
			if made[i], err = w.createDaemon(o, node.Name); err != nil {
				return err
			}
		}
		if err := w.settle(ctx); err != nil {
			return err
		}
		for i, node := range begun {
			pod, ok := w.engine.Pod(made[i])
			switch {
			case !ok || pod.Spec.NodeName == "":
				unready++
			case surge:
				if err := w.remove(on[node.Name]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// unplaced is the name of the first pod of the owner that is nowhere.
func (w *World) unplaced(o *owner) string {
	for _, pod := range w.living(o) {
		if pod.Spec.NodeName == "" {
			return pod.Name
		}
	}
	return ""
}

// createDaemon makes the set's pod for one node, and returns its name.
func (w *World) createDaemon(o *owner, node string) (podName, error) {
	name := podName{Namespace: o.object.GetNamespace(), Name: o.object.GetName() + "-" + node}
	for n := 2; ; n++ {
		if _, taken := w.pods[name]; !taken {
			break
		}
		name.Name = o.object.GetName() + "-" + node + "-" + strconv.Itoa(n)
	}
	return name, w.create(o, name.Name, func(pod *corev1.Pod) {
		daemonutil.AddOrUpdateDaemonPodTolerations(&pod.Spec)
		pod.Spec.Affinity = daemonutil.ReplaceDaemonSetPodNodeNameNodeAffinity(pod.Spec.Affinity, node)
	})
}

// replaceDaemon has the set come back to the node that the pod was on, if it is
// still there and the set's.
func (w *World) replaceDaemon(o *owner, pod *corev1.Pod) error {
	if node := w.nodes[target(pod)]; node != nil {
		return w.comeTo(o, node)
	}
	return nil
}

// comeTo makes the set's pod for the node, if it is the set's.
func (w *World) comeTo(o *owner, node *corev1.Node) error {
	ds, ok := o.object.(*appsv1.DaemonSet)
	if !ok {
		return nil
	}
	if run, _ := daemon.NodeShouldRunDaemonPod(logr.Discard(), node, ds); !run {
		return nil
	}
	_, err := w.createDaemon(o, node.Name)
	return err
}

// target is the node that a DaemonSet's pod is for.
func target(pod *corev1.Pod) string {
	if pod.Spec.NodeName != "" {
		return pod.Spec.NodeName
	}
	name, err := daemonutil.GetTargetNodeName(pod)
	if err != nil {
		return ""
	}
	return name
}

// Skip is a node on which a DaemonSet runs no pod.
type Skip struct {
	Node *corev1.Node
	// Taint is what its pods do not tolerate; empty where they want another node.
	Taint string
}

// Skipped returns the nodes that the DaemonSet does not count among its own, by name,
// and false where there is no such set. It looks healthy without them.
func (w *World) Skipped(r Ref) ([]Skip, bool) {
	o := w.byRef[r]
	if o == nil {
		return nil, false
	}
	ds, ok := o.object.(*appsv1.DaemonSet)
	if !ok {
		return nil, false
	}
	var skipped []Skip
	tolerant := daemon.NewPod(ds.DeepCopy(), "")
	for _, node := range w.sortedNodes() {
		if run, _ := daemon.NodeShouldRunDaemonPod(logr.Discard(), node, ds); run {
			continue
		}
		skip := Skip{Node: node}
		taint, found := corev1helpers.FindMatchingUntoleratedTaint(logr.Discard(), node.Spec.Taints, tolerant.Spec.Tolerations, func(t *corev1.Taint) bool {
			return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
		}, false)
		if found {
			skip.Taint = taint.ToString()
		}
		skipped = append(skipped, skip)
	}
	return skipped, true
}
