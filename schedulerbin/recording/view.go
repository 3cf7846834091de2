package recording

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// view is what a scheduler sees at the start of a cycle.
type view struct {
	objects   map[string]Object
	versions  map[string]string
	placed    map[types.UID]string
	waiting   map[types.UID]bool
	nominated map[types.UID]string
	order     []types.UID // the pods of placed, node by node
	lost      bool
}

func newView() *view {
	return &view{
		objects: map[string]Object{}, versions: map[string]string{},
		placed: map[types.UID]string{}, waiting: map[types.UID]bool{}, nominated: map[types.UID]string{},
	}
}

// take returns what the scheduler sees in the cycle, and the hash of it.
func (r *Recorder) take(c *cycle) (*view, string, error) {
	v := newView()
	nodes, err := r.snapshot.NodeInfos().List()
	if err != nil {
		return nil, "", fmt.Errorf("record what the scheduler sees: %w", err)
	}
	for _, pod := range c.pods {
		v.wait(pod)
		r.group(v, pod)
	}
	for _, info := range nodes {
		v.see("Node", "Node/"+info.Node().Name, info.Node())
		for _, p := range info.GetPods() {
			v.placed[p.GetPod().UID] = info.Node().Name
			v.order = append(v.order, p.GetPod().UID)
			v.see("Pod", string(p.GetPod().UID), p.GetPod())
			r.group(v, p.GetPod())
		}
		for _, p := range r.queue.NominatedPodsForNode(info.Node().Name) {
			v.nominated[p.GetPod().UID] = info.Node().Name
			v.wait(p.GetPod())
		}
	}
	others, err := r.seen()
	if err != nil {
		return nil, "", err
	}
	for _, o := range others {
		v.objects[o.Key], v.versions[o.Key] = o, o.of.GetResourceVersion()
	}
	hash, err := r.hasher.Of(nodes, r.queue.NominatedPodsForNode)
	return v, hash, err
}

// nominated returns the node of each pod that is nominated to a node of the view now.
func (r *Recorder) nominated(v *view) map[types.UID]string {
	nominated := map[types.UID]string{}
	for _, o := range v.objects {
		if o.Kind != "Node" {
			continue
		}
		node := o.of.GetName()
		for _, p := range r.queue.NominatedPodsForNode(node) {
			nominated[p.GetPod().UID] = node
		}
	}
	return nominated
}

// group sees the group of the pod, and those of its members that wait.
func (r *Recorder) group(v *view, pod *corev1.Pod) {
	of := pod.Spec.SchedulingGroup
	if of == nil || of.PodGroupName == nil {
		return
	}
	key := "PodGroup/" + pod.Namespace + "/" + *of.PodGroupName
	if _, seen := v.objects[key]; seen {
		return
	}
	group, err := r.snapshot.PodGroups().Get(pod.Namespace, *of.PodGroupName)
	if err != nil {
		return // it is not known, or its pods were placed one by one
	}
	v.see("PodGroup", key, group)
	members, err := r.snapshot.PodGroupStates().Get(pod.Namespace, *of.PodGroupName)
	if err != nil {
		return
	}
	for _, member := range members.UnscheduledPods() {
		v.wait(member)
	}
	for _, member := range members.ScheduledPods() {
		if _, err := r.snapshot.NodeInfos().Get(member.Spec.NodeName); err != nil {
			v.lost = true
		}
	}
}

// wait sees a pod that has no node. The version that is seen first counts: it is
// that of the queue.
func (v *view) wait(pod *corev1.Pod) {
	if v.waiting[pod.UID] {
		return
	}
	v.waiting[pod.UID] = true
	v.see("Pod", string(pod.UID), pod)
}

// see notes that the object is there.
func (v *view) see(kind, key string, object metav1.Object) {
	v.objects[key] = Object{Key: key, Kind: kind, of: object}
	v.versions[key] = object.GetResourceVersion()
	if kind == "PodGroup" {
		// Those that the scheduler makes up itself have no version of the API's.
		v.versions[key] += fmt.Sprint(object.GetUID(), "/", object.GetAnnotations(), groupSize(object))
	}
}

// since writes into the line what v has and before had not.
func (v *view) since(before *view, line *Cycle) error {
	for _, key := range slices.Sorted(maps.Keys(v.objects)) {
		if known, ok := before.versions[key]; ok && known == v.versions[key] {
			continue
		}
		object := v.objects[key]
		data, err := json.Marshal(object.of)
		if err != nil {
			return fmt.Errorf("record %s: %w", key, err)
		}
		object.Object = data
		line.Put = append(line.Put, object)
	}
	for _, key := range slices.Sorted(maps.Keys(before.objects)) {
		if _, ok := v.objects[key]; ok {
			continue
		}
		if before.objects[key].Kind == "Pod" {
			continue
		}
		line.Gone = append(line.Gone, key)
	}
	line.Placed = map[types.UID]string{}
	for uid, node := range v.placed {
		if before.placed[uid] != node {
			line.Placed[uid] = node
		}
	}
	for uid := range before.placed {
		if _, still := v.placed[uid]; !still {
			line.Placed[uid] = ""
		}
	}
	line.Waiting = slices.Sorted(maps.Keys(v.waiting))
	line.Nominated = v.nominated
	return nil
}
