package simulate

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Step is one thing that happens to a cluster. Steps are taken one after the
// other; each ends when nothing moves any more.
type Step interface {
	// what says what happens, in the words of a command.
	what() string
	take(ctx context.Context, w *World) error
}

// Take takes the steps. The error is ctx's, or says what of a step cannot be done.
func (w *World) Take(ctx context.Context, steps ...Step) error {
	for _, step := range steps {
		if ctx.Err() != nil {
			w.cut = true
			return context.Cause(ctx)
		}
		w.begin(step.what())
		if err := step.take(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// Pending has the pods that wait be placed, and nothing else happen.
type Pending struct{}

func (Pending) what() string { return "place what waits" }

func (Pending) take(ctx context.Context, w *World) error { return w.settle(ctx) }

// Replay places every pod anew, in the order in which they were made. Pods of
// DaemonSets and those that name their node stay where they are.
type Replay struct{}

func (Replay) what() string { return "place every pod anew" }

func (Replay) take(ctx context.Context, w *World) error {
	var placed []*corev1.Pod
	for name, o := range w.pods {
		pod, ok := w.engine.Pod(name)
		if ok && pod.Spec.NodeName != "" && (o == nil || o.kind != "DaemonSet") && !isMirror(pod) {
			placed = append(placed, pod)
		}
	}
	placed = inOrder(placed)
	for _, pod := range placed {
		if err := w.engine.Remove(pod); err != nil {
			return err
		}
		if err := w.release(pod); err != nil {
			return err
		}
	}
	for _, pod := range placed {
		again := *pod
		again.Spec.NodeName = ""
		again.Status = corev1.PodStatus{Phase: corev1.PodPending}
		if err := w.equip(&again); err != nil {
			return err
		}
		if err := w.engine.Put(&again); err != nil {
			return err
		}
	}
	return w.settle(ctx)
}

// isMirror reports whether the pod is a static one: no scheduler placed it.
func isMirror(pod *corev1.Pod) bool {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror
}

// Rollout has a workload become what the object says, under its own strategy. A
// workload that is not there yet is made.
type Rollout struct{ Object runtime.Object }

func (r Rollout) what() string {
	kind := r.Object.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = reflect.TypeOf(r.Object).Elem().Name()
	}
	if o, ok := r.Object.(metav1.Object); ok {
		return "roll out " + Ref{kind, o.GetNamespace(), o.GetName()}.String()
	}
	return "roll out a " + kind
}

func (r Rollout) take(ctx context.Context, w *World) error {
	switch o := r.Object.DeepCopyObject().(type) {
	case *appsv1.Deployment:
		return w.rolloutDeployment(ctx, o)
	case *appsv1.StatefulSet:
		return w.rolloutStatefulSet(ctx, o)
	case *appsv1.DaemonSet:
		return w.rolloutDaemonSet(ctx, o)
	case *appsv1.ReplicaSet:
		return w.replicate(ctx, o, &owner{kind: "ReplicaSet", template: &o.Spec.Template, replicas: deref(o.Spec.Replicas)})
	case *corev1.ReplicationController:
		return w.replicate(ctx, o, &owner{kind: "ReplicationController", template: o.Spec.Template, replicas: deref(o.Spec.Replicas)})
	case *batchv1.Job:
		return w.replicate(ctx, o, &owner{kind: "Job", template: &o.Spec.Template, replicas: deref(o.Spec.Parallelism)})
	case *batchv1.CronJob:
		w.assume("CronJob %s/%s: the next run will be made from the new template; none is simulated", o.Namespace, o.Name)
		return nil
	case *corev1.Pod:
		return w.standalone(ctx, o)
	}
	w.assume("%s is not rolled out: what its controller does is not known", r.Object.GetObjectKind().GroupVersionKind().Kind)
	return nil
}

// keepReplicas gives an object that leaves the number of its pods to somebody else,
// as an autoscaler, the number that it has.
func (w *World) keepReplicas(r Ref, replicas **int32) {
	if o := w.byRef[r]; *replicas == nil && o != nil {
		n := o.replicas
		*replicas = &n
	}
}

// replicate makes the pods that are missing. Those that are there keep what they
// have: the controller replaces none.
func (w *World) replicate(ctx context.Context, object metav1.Object, fresh *owner) error {
	o := w.adopt(object, fresh)
	if len(o.pods) > 0 {
		w.assume("%s replaces no pods: those that it has stay as they are", o.ref())
	}
	return w.resizeAndSettle(ctx, o, o.replicas)
}

// standalone makes a pod that nobody controls. One that is there stays as it is.
func (w *World) standalone(ctx context.Context, pod *corev1.Pod) error {
	if _, there := w.pods[keyOf(pod)]; there {
		w.assume("Pod %s/%s stays as it is: its placement cannot be changed", pod.Namespace, pod.Name)
		return nil
	}
	pod.UID = types.UID("simulated/" + keyOf(pod).String())
	pod.CreationTimestamp, pod.Status.Phase = metav1.NewTime(w.now), corev1.PodPending
	w.admit(pod)
	w.pods[keyOf(pod)] = nil
	if err := w.equip(pod); err != nil {
		return err
	}
	if err := w.engine.Put(pod); err != nil {
		return err
	}
	return w.settle(ctx)
}

// Scale gives a workload so many replicas.
type Scale struct {
	Workload Ref
	Replicas int32
}

func (s Scale) what() string { return fmt.Sprintf("scale %s to %d", s.Workload, s.Replicas) }

func (s Scale) take(ctx context.Context, w *World) error {
	o := w.byRef[s.Workload]
	if o == nil {
		return fmt.Errorf("there is no %s in the snapshot to scale; %s", s.Workload, w.alike(s.Workload))
	}
	switch object := o.object.(type) {
	case *appsv1.Deployment:
		d := object.DeepCopy()
		d.Spec.Replicas = &s.Replicas
		o.object = d
		return w.resizeAndSettle(ctx, w.revision(o, d), s.Replicas)
	case *appsv1.StatefulSet:
		return w.scaleStatefulSet(ctx, o, object, s.Replicas)
	}
	if o.template == nil || o.kind == "DaemonSet" {
		return fmt.Errorf("%s has no number of replicas that can be simulated", s.Workload)
	}
	return w.resizeAndSettle(ctx, o, s.Replicas)
}

// scaleStatefulSet takes away the pods of the highest ordinals, or adds some.
func (w *World) scaleStatefulSet(ctx context.Context, o *owner, sts *appsv1.StatefulSet, replicas int32) error {
	scaled := sts.DeepCopy()
	scaled.Spec.Replicas = &replicas
	for n := o.replicas - 1; n >= replicas; n-- {
		if pod, ok := w.engine.Pod(ordinalName(sts, n)); ok {
			if err := w.remove(pod); err != nil {
				return err
			}
		}
	}
	_, _, err := w.fillOrdinals(ctx, w.adoptStatefulSet(scaled), scaled)
	return err
}

// alike names workloads of the same name, or says that there is none.
func (w *World) alike(r Ref) string {
	var found []string
	for other := range w.byRef {
		if other.Name == r.Name {
			found = append(found, other.String())
		}
	}
	if len(found) == 0 {
		return "no workload is called " + r.Name
	}
	slices.Sort(found)
	return "there is " + strings.Join(found, ", ")
}

// Lose takes the nodes away with all that runs on them.
type Lose struct{ Nodes []string }

func (l Lose) what() string { return fmt.Sprintf("lose %d nodes", len(l.Nodes)) }

func (l Lose) take(ctx context.Context, w *World) error {
	var lost []*corev1.Pod
	for _, name := range l.Nodes {
		node := w.nodes[name]
		if node == nil {
			return fmt.Errorf("there is no node %q in the snapshot to lose", name)
		}
		lost = append(lost, w.on(name)...)
		delete(w.nodes, name)
		if err := w.engine.Remove(node); err != nil {
			return err
		}
	}
	for _, pod := range lost {
		if err := w.engine.Remove(pod); err != nil {
			return err
		}
	}
	for _, pod := range lost {
		if err := w.replace(pod); err != nil {
			return err
		}
	}
	return w.settle(ctx)
}

// AddNodes adds nodes like the template, and what DaemonSets run on them.
type AddNodes struct {
	Template *corev1.Node
	Count    int
}

func (a AddNodes) what() string { return fmt.Sprintf("add %d nodes", a.Count) }

func (a AddNodes) take(ctx context.Context, w *World) error {
	for range a.Count {
		if _, err := w.addNode(a.Template); err != nil {
			return err
		}
	}
	return w.settle(ctx)
}

// addNode adds one node like the template, with a name of its own.
func (w *World) addNode(template *corev1.Node) (string, error) {
	node := template.DeepCopy()
	for n := 1; ; n++ {
		node.Name = fmt.Sprintf("%s-new-%d", template.Name, n)
		if w.nodes[node.Name] == nil {
			break
		}
	}
	node.UID = types.UID("simulated/node/" + node.Name)
	node.Spec.Unschedulable = false
	node.Labels = maps.Clone(node.Labels)
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	node.Labels[corev1.LabelHostname] = node.Name
	if err := w.putNode(node); err != nil {
		return "", err
	}
	return node.Name, w.daemonsOn(node)
}

// daemonsOn makes the DaemonSets' pods for a node that is new.
func (w *World) daemonsOn(node *corev1.Node) error {
	var sets []*owner
	for _, o := range w.byRef {
		if o.kind == "DaemonSet" {
			sets = append(sets, o)
		}
	}
	slices.SortFunc(sets, func(a, b *owner) int { return a.ref().Compare(b.ref()) })
	for _, o := range sets {
		if err := w.comeTo(o, node); err != nil {
			return err
		}
	}
	return nil
}

// putNode puts the node into the world and the engine.
func (w *World) putNode(node *corev1.Node) error {
	w.nodes[node.Name] = node
	return w.engine.Put(node.DeepCopy())
}
