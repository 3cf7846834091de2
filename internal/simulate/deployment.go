package simulate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appsapi "k8s.io/kubernetes/pkg/apis/apps/v1"
	"k8s.io/kubernetes/pkg/controller"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
	labelsutil "k8s.io/kubernetes/pkg/util/labels"
)

// rolloutDeployment has the deployment become what d says, under its own strategy.
func (w *World) rolloutDeployment(ctx context.Context, d *appsv1.Deployment) error {
	w.keepReplicas(Ref{"Deployment", d.Namespace, d.Name}, &d.Spec.Replicas)
	appsapi.SetObjectDefaults_Deployment(d)
	o := w.adopt(d, ownerOfDeployment(d))
	revision := w.revision(o, d)
	var old []*owner
	for _, child := range w.children(o) {
		if child != revision {
			old = append(old, child)
		}
	}
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		for _, rs := range old {
			if err := w.resize(rs, 0); err != nil {
				return err
			}
		}
		return w.resizeAndSettle(ctx, revision, deref(d.Spec.Replicas))
	}
	ready := w.readinessOf(revision)
	for {
		moved, err := w.rollDeployment(ctx, d, revision, ready.count(), old)
		if err != nil {
			return err
		}
		if !moved && !ready.next(deref(d.Spec.Replicas)) {
			w.finishDeployment(o, d, revision, old)
			return nil
		}
	}
}

// readiness has the pods of a new revision become ready one by one, in the order in
// which they were made, and only when the controller has nothing left to do: it is
// faster than any pod.
type readiness struct {
	world *World
	owner *owner
	ready map[podName]bool
}

// readinessOf returns the readiness of the owner's pods: those that are placed already
// are ready.
func (w *World) readinessOf(o *owner) *readiness {
	r := &readiness{world: w, owner: o, ready: map[podName]bool{}}
	for _, pod := range w.living(o) {
		if pod.Spec.NodeName != "" {
			r.ready[keyOf(pod)] = true
		}
	}
	return r
}

// count is how many of the pods are ready.
func (r *readiness) count() int32 { return int32(len(r.ready)) }

// manyReplicas is how many times a rollout waits for pods at most; in larger ones
// several become ready at once.
const manyReplicas = 250

// next has the next pods of so many in all become ready, and reports whether there were
// any.
func (r *readiness) next(of int32) bool {
	var placed []*corev1.Pod
	for name := range r.owner.pods {
		if pod, ok := r.world.engine.Pod(name); ok && pod.Spec.NodeName != "" && !r.ready[name] {
			placed = append(placed, pod)
		}
	}
	slices.SortFunc(placed, func(a, b *corev1.Pod) int { return cmp.Compare(r.world.order[keyOf(a)], r.world.order[keyOf(b)]) })
	chunk := 1 + int(of)/manyReplicas
	for _, pod := range placed[:min(chunk, len(placed))] {
		r.ready[keyOf(pod)] = true
	}
	return len(placed) > 0
}

// rollDeployment takes one turn of a rolling update: as many new pods as the surge
// allows, then as few old ones as must be kept. So many of the new pods are ready. The
// numbers are those of the deployment controller's rolling.go.
func (w *World) rollDeployment(ctx context.Context, d *appsv1.Deployment, revision *owner, ready int32, old []*owner) (moved bool, err error) {
	sets := []*appsv1.ReplicaSet{w.replicaSet(revision)}
	for _, rs := range old {
		sets = append(sets, w.replicaSet(rs))
	}
	wanted, err := deploymentutil.NewRSNewReplicas(d, sets, sets[0])
	if err != nil {
		return false, err
	}
	if wanted != revision.replicas {
		moved = true
		if err := w.resizeAndSettle(ctx, revision, wanted); err != nil {
			return moved, err
		}
	}
	if len(old) == 0 {
		return moved, nil
	}
	total := int32(0)
	for _, rs := range append([]*owner{revision}, old...) {
		total += rs.replicas
	}
	least := deref(d.Spec.Replicas) - deploymentutil.MaxUnavailable(*d)
	spare := total - least - (revision.replicas - ready)
	if spare <= 0 {
		return moved, nil
	}
	// Pods that are nowhere go first: nothing is lost with them.
	for _, rs := range old {
		if n := min(rs.replicas-w.placed(rs), spare); n > 0 {
			spare, moved = spare-n, true
			if err := w.resize(rs, rs.replicas-n); err != nil {
				return moved, err
			}
		}
	}
	available := ready
	for _, rs := range old {
		available += w.placed(rs)
	}
	surplus := available - least
	for _, rs := range old {
		if n := min(rs.replicas, surplus); n > 0 {
			surplus, moved = surplus-n, true
			if err := w.resize(rs, rs.replicas-n); err != nil {
				return moved, err
			}
		}
	}
	return moved, w.settle(ctx)
}

// finishDeployment notes a rollout that has come to a halt before its end.
func (w *World) finishDeployment(o *owner, d *appsv1.Deployment, revision *owner, old []*owner) {
	left := int32(0)
	for _, rs := range old {
		left += rs.replicas
	}
	if placed := w.placed(revision); left > 0 || placed < deref(d.Spec.Replicas) {
		w.stuck = append(w.stuck, Stuck{
			Workload: o.ref(), Placed: placed, Wanted: deref(d.Spec.Replicas), Old: left,
			MaxSurge: deploymentutil.MaxSurge(*d), MaxUnavailable: deploymentutil.MaxUnavailable(*d),
		})
	}
}

// revision returns the owner of the new template's pods: the ReplicaSet that is
// there for it, or a new one.
func (w *World) revision(o *owner, d *appsv1.Deployment) *owner {
	var sets []*appsv1.ReplicaSet
	of := map[*appsv1.ReplicaSet]*owner{}
	for _, child := range w.children(o) {
		if rs, ok := child.object.(*appsv1.ReplicaSet); ok {
			// Some have all defaults, and what is in a snapshot may have none.
			rs = rs.DeepCopy()
			appsapi.SetObjectDefaults_ReplicaSet(rs)
			sets, of[rs] = append(sets, rs), child
		}
	}
	same := d.DeepCopy()
	appsapi.SetObjectDefaults_Deployment(same)
	if rs := deploymentutil.FindNewReplicaSet(same, sets); rs != nil {
		return of[rs]
	}
	hash := controller.ComputeHash(&d.Spec.Template, d.Status.CollisionCount)
	template := *d.Spec.Template.DeepCopy()
	template.Labels = labelsutil.CloneAndAddLabel(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Namespace, Name: d.Name + "-" + hash, UID: types.UID("simulated/" + string(d.UID) + "/" + hash),
			Labels: template.Labels, CreationTimestamp: metav1.NewTime(w.now),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{
			Selector: labelsutil.CloneSelectorAndAddLabel(d.Spec.Selector, appsv1.DefaultDeploymentUniqueLabelKey, hash),
			Template: template,
		},
	}
	made := &owner{kind: "ReplicaSet", template: &rs.Spec.Template, parent: o}
	w.addOwner(rs, made)
	return made
}

// replicaSet returns the owner's object with the replicas of now.
func (w *World) replicaSet(o *owner) *appsv1.ReplicaSet {
	replicas, placed := o.replicas, w.placed(o)
	rs := &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Replicas: &replicas}}
	rs.Status.Replicas, rs.Status.AvailableReplicas = int32(len(o.pods)), placed
	return rs
}

// resizeAndSettle is resize, and lets the scheduler place what is new.
func (w *World) resizeAndSettle(ctx context.Context, o *owner, replicas int32) error {
	if err := w.resize(o, replicas); err != nil {
		return err
	}
	return w.settle(ctx)
}

// resize makes or takes away pods of the owner until it has so many.
func (w *World) resize(o *owner, replicas int32) error {
	o.replicas = replicas
	for int(replicas) > len(o.pods) {
		if err := w.create(o, "", nil); err != nil {
			return err
		}
	}
	if surplus := len(o.pods) - int(replicas); surplus > 0 {
		for _, pod := range w.dispensable(o)[:surplus] {
			if err := w.remove(pod); err != nil {
				return err
			}
		}
	}
	return nil
}

// dispensable returns the pods of the owner, ordered as the ReplicaSet controller
// gives them up.
func (w *World) dispensable(o *owner) []*corev1.Pod {
	pods := w.living(o)
	related := pods
	if o.parent != nil {
		related = nil
		for _, sibling := range w.children(o.parent) {
			related = append(related, w.living(sibling)...)
		}
	}
	on := map[string]int{}
	for _, pod := range related {
		on[pod.Spec.NodeName]++
	}
	ranks := make([]int, len(pods))
	for i, pod := range pods {
		ranks[i] = on[pod.Spec.NodeName]
	}
	sort.Stable(controller.ActivePodsWithRanks{Pods: pods, Rank: ranks, Now: metav1.NewTime(w.now)})
	return pods
}

// adopt returns the owner of the object's UID or name, with the new object.
func (w *World) adopt(object metav1.Object, fresh *owner) *owner {
	fresh.object = object
	known := w.byRef[fresh.ref()]
	if known == nil {
		if object.GetUID() == "" {
			object.SetUID(types.UID(fmt.Sprint("simulated/", fresh.ref())))
		}
		w.addOwner(object, fresh)
		w.byRef[fresh.ref()] = fresh
		return fresh
	}
	object.SetUID(known.object.GetUID())
	object.SetCreationTimestamp(known.object.GetCreationTimestamp())
	known.object, known.template, known.replicas = object, fresh.template, fresh.replicas
	return known
}
