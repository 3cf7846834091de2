package simulate

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/controller"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
)

// owner is a controller's object: something that has pods, or that has others
// which have pods.
type owner struct {
	object     metav1.Object
	kind       string
	controller types.UID
	parent     *owner
	// template makes pods; nil where the kind is not known, or has none of its own.
	template *corev1.PodTemplateSpec
	replicas int32
	pods     map[podName]bool
}

// addOwner takes in an object.
func (w *World) addOwner(object metav1.Object, o *owner) {
	o.object, o.pods = object, map[podName]bool{}
	if c := metav1.GetControllerOf(object); c != nil {
		o.controller = c.UID
	}
	w.owners[object.GetUID()] = o
}

func ownerOfDeployment(d *appsv1.Deployment) *owner {
	return &owner{kind: "Deployment", replicas: deref(d.Spec.Replicas)}
}

// ref names the owner.
func (o *owner) ref() Ref {
	return Ref{Kind: o.kind, Namespace: o.object.GetNamespace(), Name: o.object.GetName()}
}

// root is the owner that nobody controls.
func (o *owner) root() *owner {
	for o.parent != nil {
		o = o.parent
	}
	return o
}

// Workload is a workload of a snapshot, and how many pods it asks for at once. That
// is 0 where it does not say, as a DaemonSet.
type Workload struct {
	Ref
	Replicas int32
}

// Workloads returns the workloads of the snapshot that nobody controls, sorted.
func Workloads(s *snapshot.Snapshot) []Workload {
	var list []Workload
	for ref, o := range ownersOf(s).byRef {
		list = append(list, Workload{ref, o.replicas})
	}
	slices.SortFunc(list, func(a, b Workload) int { return a.Compare(b.Ref) })
	return list
}

// ownerOf returns the controller of the pod, nil if it has none that is known.
func (w *World) ownerOf(pod *corev1.Pod) *owner {
	c := metav1.GetControllerOf(pod)
	if c == nil {
		return nil
	}
	return w.owners[c.UID]
}

// WorkloadOf names the workload that the pod belongs to: the pod itself if it is
// nobody's.
func (w *World) WorkloadOf(pod *corev1.Pod) Ref {
	if o := w.ownerOf(pod); o != nil {
		return o.root().ref()
	}
	if c := metav1.GetControllerOf(pod); c != nil {
		return Ref{Kind: c.Kind, Namespace: pod.Namespace, Name: c.Name}
	}
	return Ref{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}
}

// children are the owners that o controls, the oldest first.
func (w *World) children(o *owner) []*owner {
	var children []*owner
	for _, c := range w.owners {
		if c.parent == o {
			children = append(children, c)
		}
	}
	slices.SortFunc(children, func(a, b *owner) int {
		at, bt := a.object.GetCreationTimestamp(), b.object.GetCreationTimestamp()
		return cmp.Or(at.Compare(bt.Time), cmp.Compare(a.object.GetName(), b.object.GetName()))
	})
	return children
}

// living returns the pods of the owner that are there, by name.
func (w *World) living(o *owner) []*corev1.Pod {
	pods := make([]*corev1.Pod, 0, len(o.pods))
	for _, name := range slices.SortedFunc(maps.Keys(o.pods), func(a, b podName) int { return cmp.Compare(a.String(), b.String()) }) {
		if pod, ok := w.engine.Pod(name); ok {
			pods = append(pods, pod)
		}
	}
	return pods
}

// placed counts the pods of the owner that are on a node.
func (w *World) placed(o *owner) int32 {
	n := int32(0)
	for _, pod := range w.living(o) {
		if pod.Spec.NodeName != "" {
			n++
		}
	}
	return n
}

// create makes a pod of the owner's template, as its controller and the API
// server's admission would, with a name of its own ("" has one made up), and has
// it wait to be scheduled.
func (w *World) create(o *owner, name string, edit func(*corev1.Pod)) error {
	object, ok := o.object.(runtime.Object)
	if !ok {
		return nil
	}
	version, kind := appsv1.SchemeGroupVersion.String(), o.kind
	switch kind {
	case "Job":
		version = "batch/v1"
	case "ReplicationController":
		version = "v1"
	}
	yes := true
	pod, err := controller.GetPodFromTemplate(o.template, object, &metav1.OwnerReference{
		APIVersion: version, Kind: kind, Name: o.object.GetName(), UID: o.object.GetUID(), Controller: &yes,
	})
	if err != nil {
		return err
	}
	if name == "" {
		name = w.newName(o)
	}
	pod.Namespace, pod.Name, pod.GenerateName = o.object.GetNamespace(), name, ""
	pod.UID = types.UID("simulated/" + pod.Namespace + "/" + name + "/" + strconv.Itoa(w.made))
	pod.CreationTimestamp = metav1.NewTime(w.now)
	pod.Status.Phase = corev1.PodPending
	w.made++
	if edit != nil {
		edit(pod)
	}
	w.admit(pod)
	o.pods[keyOf(pod)], w.pods[keyOf(pod)] = true, o
	w.order[keyOf(pod)] = w.made
	delete(w.last, keyOf(pod))
	if err := w.equip(pod); err != nil {
		return err
	}
	return w.engine.Put(pod)
}

// newName makes up the name of the next pod of the owner. It goes by the workload
// and not by the revision, so that the seed decides alike for both sides of a
// change.
func (w *World) newName(o *owner) string {
	base := o.root().object.GetName()
	for n := 0; ; n++ {
		name := base + "-new-" + strconv.Itoa(n)
		if _, taken := w.pods[podName{Namespace: o.object.GetNamespace(), Name: name}]; !taken {
			return name
		}
	}
}

// remove takes a pod away.
func (w *World) remove(pod *corev1.Pod) error {
	if o := w.pods[keyOf(pod)]; o != nil {
		delete(o.pods, keyOf(pod))
	}
	delete(w.pods, keyOf(pod))
	if err := w.engine.Remove(pod); err != nil {
		return err
	}
	return w.release(pod)
}

// replace has the controller of a pod that is gone make another one. A pod that is
// nobody's stays gone, as does one of a controller that is not simulated.
func (w *World) replace(pod *corev1.Pod) error {
	o := w.pods[keyOf(pod)]
	delete(w.pods, keyOf(pod))
	if err := w.release(pod); err != nil || o == nil {
		return err
	}
	delete(o.pods, keyOf(pod))
	switch {
	case o.template == nil:
		w.assume("pods of %s are not made anew: what its controller does is not known", o.kind)
		return nil
	case o.kind == "DaemonSet":
		return w.replaceDaemon(o, pod)
	case o.kind == "StatefulSet":
		return w.create(o, pod.Name, ordinal(o, pod))
	case int(o.replicas) <= len(o.pods):
		return nil
	}
	return w.create(o, "", nil)
}
