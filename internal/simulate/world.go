package simulate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/trim"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate/engine"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate/store"
)

// Ref names a workload: what a person would call the owner of pods, so the
// Deployment and not its ReplicaSets.
type Ref struct {
	// Kind has the group where it is not one of Kubernetes' own: "Rollout.argoproj.io".
	Kind, Namespace, Name string
}

// String is "Kind namespace/name".
func (r Ref) String() string { return r.Kind + " " + r.Namespace + "/" + r.Name }

// Compare orders by namespace, kind and name.
func (r Ref) Compare(o Ref) int {
	return strings.Compare(r.Namespace+"\x00"+r.Kind+"\x00"+r.Name, o.Namespace+"\x00"+o.Kind+"\x00"+o.Name)
}

// podName names a pod.
type podName = types.NamespacedName

// World is a simulated cluster with its controllers. Make one with NewWorld and
// end it with Close. It may be used from one goroutine.
type World struct {
	engine  *engine.Engine
	now     time.Time
	serves  map[string]bool // scheduler names
	classes map[string]*schedulingv1.PriorityClass
	usual   *schedulingv1.PriorityClass // of pods that name none
	// volumeClass is the StorageClass of claims that name none; claimTemplates are for
	// devices.
	volumeClass    *storagev1.StorageClass
	claimTemplates map[podName]*resourcev1.ResourceClaimTemplate
	nodes          map[string]*corev1.Node
	budgets        map[string][]*policyv1.PodDisruptionBudget // by namespace
	owners         map[types.UID]*owner
	byRef          map[Ref]*owner // those that nobody controls
	// before is where each pod was, "" for nowhere yet; pods are those of now.
	before map[podName]*corev1.Pod
	pods   map[podName]*owner // nil: nobody's
	made   int
	order  map[podName]int // when each pod that was made was, by made
	// restarts counts those that there were.
	restarts int
	grown    map[string]string // nodes that Grow added, and their pools

	last        map[podName]engine.Attempt
	evicted     []engine.Eviction
	stuck       []Stuck
	assumptions map[string]bool

	at   Progress
	hear func(Progress) // nil: nobody
	cut  bool           // somebody ended it before its end
}

// NewWorld returns the world of the snapshot. Nothing has been scheduled in it: the
// pods that wait do so still. The error is one of the profiles in the options, or
// of an object that cannot be read.
func NewWorld(ctx context.Context, s *snapshot.Snapshot, o engine.Options) (*World, error) {
	if o.Now.IsZero() {
		o.Now = s.Taken
	}
	w := &World{
		now:    o.Now,
		serves: map[string]bool{}, classes: map[string]*schedulingv1.PriorityClass{}, nodes: map[string]*corev1.Node{}, budgets: map[string][]*policyv1.PodDisruptionBudget{},
		owners: map[types.UID]*owner{}, byRef: map[Ref]*owner{}, claimTemplates: map[podName]*resourcev1.ResourceClaimTemplate{},
		before: map[podName]*corev1.Pod{}, pods: map[podName]*owner{}, grown: map[string]string{}, order: map[podName]int{},
		last: map[podName]engine.Attempt{}, assumptions: map[string]bool{},
	}
	o.Cycle = w.cycle
	e, err := engine.New(ctx, o)
	if err != nil {
		return nil, err
	}
	w.engine = e
	for _, p := range o.Profiles {
		w.serves[p.SchedulerName] = true
	}
	if err := w.load(s); err != nil {
		e.Close()
		return nil, err
	}
	return w, nil
}

// Close ends the world.
func (w *World) Close() { w.engine.Close() }

// load puts all objects of the snapshot into the engine: what pods depend on before
// the pods, and pods that are placed before those that wait.
func (w *World) load(s *snapshot.Snapshot) error {
	for _, c := range s.PriorityClasses {
		w.classes[c.Name] = c
	}
	w.usual = snapshot.DefaultPriorityClass(s.PriorityClasses)
	w.volumeClass = snapshot.DefaultStorageClass(s.StorageClasses)
	for _, t := range s.ResourceClaimTemplates {
		w.claimTemplates[keyOf(t)] = t
	}
	for _, n := range s.Nodes {
		w.nodes[n.Name] = n
	}
	for _, b := range s.PodDisruptionBudgets {
		w.budgets[b.Namespace] = append(w.budgets[b.Namespace], b)
	}
	p := putter{engine: w.engine}
	putAll(&p, s.Namespaces)
	putAll(&p, s.Services)
	putAll(&p, s.StorageClasses)
	putAll(&p, s.CSIDrivers)
	putAll(&p, s.CSINodes)
	putAll(&p, s.CSIStorageCapacities)
	putAll(&p, s.VolumeAttachments)
	putAll(&p, s.PersistentVolumes)
	putAll(&p, s.PersistentVolumeClaims)
	putAll(&p, s.DeviceClasses)
	putAll(&p, s.ResourceSlices)
	putAll(&p, s.ResourceClaims)
	putAll(&p, s.PriorityClasses)
	putAll(&p, s.PodDisruptionBudgets)
	putAll(&p, s.ReplicationControllers)
	putAll(&p, s.ReplicaSets)
	putAll(&p, s.StatefulSets)
	putAll(&p, s.Nodes)
	putAll(&p, s.PodGroups)
	putAll(&p, s.CRDPodGroups)
	w.loadOwners(s)
	// The scheduler is told of no pod that has ended: its node has the room again.
	pods := slices.DeleteFunc(inOrder(s.Pods), trim.Ended)
	for _, pod := range pods {
		w.before[keyOf(pod)] = pod
		w.pods[keyOf(pod)] = w.ownerOf(pod)
		if o := w.ownerOf(pod); o != nil {
			o.pods[keyOf(pod)] = true
		}
	}
	for _, placed := range []bool{true, false} {
		for _, pod := range pods {
			if (pod.Spec.NodeName != "") == placed {
				copied := *pod
				if !placed && p.err == nil {
					p.err = w.equip(&copied)
				}
				p.put(&copied)
			}
		}
	}
	return p.err
}

// inOrder returns the pods as the scheduler would have come across them: the
// oldest first.
func inOrder(pods []*corev1.Pod) []*corev1.Pod {
	sorted := slices.Clone(pods)
	slices.SortStableFunc(sorted, func(a, b *corev1.Pod) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(keyOf(a).String(), keyOf(b).String())
	})
	return sorted
}

// putter puts objects until one fails.
type putter struct {
	engine *engine.Engine
	err    error
}

func (p *putter) put(o store.Object) {
	if p.err == nil {
		if err := p.engine.Put(o); err != nil {
			p.err = fmt.Errorf("put %s/%s into the simulated cluster: %w", o.GetNamespace(), o.GetName(), err)
		}
	}
}

// deepCopier is an object that is copied before it is put: the engine writes into
// what it is given, and a snapshot is used more than once.
type deepCopier[T any] interface {
	store.Object
	DeepCopy() T
}

func putAll[T deepCopier[T]](p *putter, objects []T) {
	for _, o := range objects {
		p.put(o.DeepCopy())
	}
}

func keyOf(o metav1.Object) podName {
	return podName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// settle lets the scheduler work, and controllers make anew what was evicted,
// until nothing moves.
func (w *World) settle(ctx context.Context) error {
	for {
		err := w.engine.Settle(ctx)
		w.noteProvisions()
		for _, a := range w.engine.Attempts() {
			w.last[keyOf(a.Pod)] = a
		}
		evictions := w.engine.Evictions()
		w.evicted = append(w.evicted, evictions...)
		for _, e := range evictions {
			if err := w.replace(e.Victim); err != nil {
				return err
			}
		}
		w.cut = w.cut || ctx.Err() != nil
		if err != nil || len(evictions) == 0 {
			return err
		}
	}
}

// sortedNodes returns the nodes by name.
func (w *World) sortedNodes() []*corev1.Node {
	nodes := make([]*corev1.Node, 0, len(w.nodes))
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		nodes = append(nodes, w.nodes[name])
	}
	return nodes
}

// assume notes what the outcome rests on.
func (w *World) assume(format string, args ...any) {
	w.assumptions[fmt.Sprintf(format, args...)] = true
}

// loadOwners takes in the controllers of pods.
func (w *World) loadOwners(s *snapshot.Snapshot) {
	addOwners(w, s.Deployments, func(d *appsv1.Deployment) *owner { return ownerOfDeployment(d) })
	addOwners(w, s.ReplicaSets, func(rs *appsv1.ReplicaSet) *owner {
		return &owner{kind: "ReplicaSet", template: &rs.Spec.Template, replicas: deref(rs.Spec.Replicas)}
	})
	addOwners(w, s.ReplicationControllers, func(rc *corev1.ReplicationController) *owner {
		return &owner{kind: "ReplicationController", template: rc.Spec.Template, replicas: deref(rc.Spec.Replicas)}
	})
	addOwners(w, s.StatefulSets, func(sts *appsv1.StatefulSet) *owner {
		return &owner{kind: "StatefulSet", template: &sts.Spec.Template, replicas: deref(sts.Spec.Replicas)}
	})
	addOwners(w, s.DaemonSets, func(ds *appsv1.DaemonSet) *owner {
		return &owner{kind: "DaemonSet", template: &ds.Spec.Template}
	})
	addOwners(w, s.CronJobs, func(*batchv1.CronJob) *owner { return &owner{kind: "CronJob"} })
	addOwners(w, s.Jobs, func(j *batchv1.Job) *owner {
		return &owner{kind: "Job", template: &j.Spec.Template, replicas: deref(j.Spec.Parallelism)}
	})
	for _, u := range s.Custom {
		w.addOwner(u, &owner{kind: u.GetKind() + "." + u.GroupVersionKind().Group})
	}
	for _, o := range w.owners {
		if o.parent = w.owners[o.controller]; o.parent == nil {
			w.byRef[o.ref()] = o
		}
	}
}

func addOwners[T metav1.Object](w *World, objects []T, ownerOf func(T) *owner) {
	for _, object := range objects {
		w.addOwner(object, ownerOf(object))
	}
}

func deref(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

// Try says what the scheduler would make of the pod now; nothing comes of it.
func (w *World) Try(ctx context.Context, pod *corev1.Pod) (engine.Trial, error) {
	return w.engine.Try(ctx, pod)
}

// Pod returns the pod as it is now, and false if there is none.
func (w *World) Pod(namespace, name string) (*corev1.Pod, bool) {
	return w.engine.Pod(podName{Namespace: namespace, Name: name})
}

// Became says what has become of the pod, and false if there is none.
func (w *World) Became(namespace, name string) (Pod, bool) {
	pod, ok := w.Pod(namespace, name)
	if !ok {
		return Pod{}, false
	}
	return w.pod(keyOf(pod), pod), true
}

// Serves reports whether a scheduler serves the name.
func (w *World) Serves(scheduler string) bool { return w.serves[scheduler] }

// SchedulerNames are the names that are served, sorted.
func (w *World) SchedulerNames() []string { return slices.Sorted(maps.Keys(w.serves)) }

// Owners returns what names the workload that a pod of the snapshot belongs to.
func Owners(s *snapshot.Snapshot) func(*corev1.Pod) Ref {
	return ownersOf(s).WorkloadOf
}

// ownersOf returns a world that knows the owners in the snapshot, and has no scheduler.
func ownersOf(s *snapshot.Snapshot) *World {
	w := &World{owners: map[types.UID]*owner{}, byRef: map[Ref]*owner{}}
	w.loadOwners(s)
	return w
}
