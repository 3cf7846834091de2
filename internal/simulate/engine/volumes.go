package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	volumehelper "k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"
	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"

	"github.com/kubectl-sched/kubectl-sched/internal/simulate/store"
)

// Provision is a volume that stands in for one which the cluster would provision.
type Provision struct {
	// Claim is what it was made for, and Class the name of its StorageClass.
	Claim types.NamespacedName
	Class string
	// Keys are the node labels whose values on the first pod's node say from where it
	// can be reached; none where it can be from everywhere.
	Keys []string
	// From says where the keys come from.
	From TopologySource
}

// TopologySource is what says from where a new volume can be reached.
type TopologySource string

// The sources.
const (
	// FromDriver are the topology keys that the driver has registered on the node.
	FromDriver TopologySource = "CSINode"
	// FromClass are the allowed topologies of the StorageClass.
	FromClass TopologySource = "StorageClass"
	// FromZone is the guess that nothing else speaks against: the zone and the region
	// of the node.
	FromZone TopologySource = "zone"
	// FromNothing is a volume that is made before there is a pod.
	FromNothing TopologySource = "nothing"
)

// volumes bind claims to volumes in the place of VolumeBinding's PreBind, which waits
// for the controllers of a cluster, and of those controllers. Which volume a claim
// is bound to, and whether one is provisioned, upstream's own binder says.
type volumes struct {
	binder volumebinding.SchedulerVolumeBinder
	// profiles are those that bind volumes.
	profiles map[string]bool
	made     []Provision
	// free counts the volumes that came without a claim.
	free int64
}

// newVolumes returns the volumes of an engine with the profiles. The claims of pods
// are written to client.
func newVolumes(ctx context.Context, client kubernetes.Interface, factory informers.SharedInformerFactory, profiles []config.KubeSchedulerProfile) (*volumes, error) {
	v := &volumes{profiles: map[string]bool{}}
	for _, p := range profiles {
		v.profiles[p.SchedulerName] = acting(p.Plugins, names.VolumeBinding) != nil
	}
	core, storage := factory.Core().V1(), factory.Storage().V1()
	var err error
	v.binder, err = volumebinding.NewVolumeBinder(klog.FromContext(ctx), client, feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate),
		core.Pods(), core.Nodes(), storage.CSINodes(), core.PersistentVolumeClaims(), core.PersistentVolumes(), storage.StorageClasses(),
		volumebinding.CapacityCheck{CSIDriverInformer: storage.CSIDrivers(), CSIStorageCapacityInformer: storage.CSIStorageCapacities()},
		0, // nobody is waited for
	)
	return v, err
}

// bind writes what becomes of the pod's claims on the node.
func (v *volumes) bind(ctx context.Context, pod *corev1.Pod, node *corev1.Node) error {
	if !v.profiles[pod.Spec.SchedulerName] || !claims(pod) {
		return nil
	}
	logger := klog.FromContext(ctx)
	wanted, err := v.binder.GetPodVolumeClaims(logger, pod)
	if err != nil {
		return err
	}
	found, reasons, err := v.binder.FindPodVolumes(logger, pod, wanted, node)
	if err != nil {
		return err
	}
	if len(reasons) > 0 {
		return nil // pods that were placed at once wanted the same volume: upstream has one of them wait for it
	}
	if bound, err := v.binder.AssumePodVolumes(logger, pod, node.Name, found); bound || err != nil {
		return err
	}
	if err := v.binder.BindPodVolumes(ctx, pod, found); err != nil && !wait.Interrupted(err) {
		return err
	}
	return nil
}

// tell makes a volume that is free a few bytes larger than its equals: of those
// upstream takes whichever a map gives first.
func (v *volumes) tell(volume *corev1.PersistentVolume) {
	size, ok := volume.Spec.Capacity[corev1.ResourceStorage]
	if v == nil || volume.Spec.ClaimRef != nil || !ok {
		return
	}
	v.free++
	size.Add(*resource.NewQuantity(v.free, resource.DecimalSI))
	volume.Spec.Capacity = maps.Clone(volume.Spec.Capacity)
	volume.Spec.Capacity[corev1.ResourceStorage] = size
}

// claims reports whether the pod has volumes that are claimed.
func claims(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil })
}

// bindVolumes binds the claims of the pods that were bound. What comes of it is
// among the writes.
func (e *Engine) bindVolumes(ctx context.Context, bound []binding) error {
	if e.volumes == nil {
		return nil
	}
	for _, b := range bound {
		node, ok := e.Node(b.node)
		if !ok {
			continue // lost while the pod was on its way
		}
		if err := e.volumes.bind(ctx, b.pod, node); err != nil {
			return fmt.Errorf("bind the volumes of pod %s/%s: %w", b.pod.Namespace, b.pod.Name, err)
		}
	}
	return nil
}

// Provisions returns the volumes that were made since the last call, in order.
func (e *Engine) Provisions() []Provision {
	if e.volumes == nil {
		return nil
	}
	made := e.volumes.made
	e.volumes.made = nil
	return made
}

// ProvisionNow provisions for a claim that does not wait for its first pod. Nobody
// knows where the volume would be: every node can reach it.
func (e *Engine) ProvisionNow(claim *corev1.PersistentVolumeClaim) error {
	if e.volumes == nil {
		return e.Put(claim)
	}
	return e.join(e.provision(claim, nil), claim)
}

// control does for an object that the binder wrote what the controller of volumes
// and the provisioner of its class would, and reports whether there was anything to do.
func (e *Engine) control(object store.Object) (done bool, err error) {
	switch o := object.(type) {
	case *corev1.PersistentVolume:
		if ref := o.Spec.ClaimRef; ref != nil && o.Status.Phase != corev1.VolumeBound {
			if claim, ok := store.Get(e.store, &corev1.PersistentVolumeClaim{}, ref.Namespace, ref.Name); ok {
				return true, e.join(o, claim)
			}
		}
	case *corev1.PersistentVolumeClaim:
		if on, ok := e.Node(o.Annotations[volumehelper.AnnSelectedNode]); ok && o.Spec.VolumeName == "" {
			return true, e.join(e.provision(o, on), o)
		}
	}
	return false, nil
}

// join binds the volume and the claim to each other.
func (e *Engine) join(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) error {
	volume.Status.Phase = corev1.VolumeBound
	bound := claim.DeepCopy()
	bound.Spec.VolumeName = volume.Name
	metav1.SetMetaDataAnnotation(&bound.ObjectMeta, volumehelper.AnnBindCompleted, "yes")
	metav1.SetMetaDataAnnotation(&bound.ObjectMeta, volumehelper.AnnBoundByController, "yes")
	bound.Status.Phase, bound.Status.Capacity, bound.Status.AccessModes = corev1.ClaimBound, volume.Spec.Capacity, volume.Spec.AccessModes
	if err := e.Put(volume); err != nil {
		return err
	}
	return e.Put(bound)
}

// provision returns the volume that stands in for the one that would be made for the
// claim, whose first pod is on the node; nil where there is none yet.
func (e *Engine) provision(claim *corev1.PersistentVolumeClaim, node *corev1.Node) *corev1.PersistentVolume {
	name := volumehelper.GetPersistentVolumeClaimClass(claim)
	class, ok := store.Get(e.store, &storagev1.StorageClass{}, "", name)
	if !ok {
		class = &storagev1.StorageClass{}
	}
	keys, from := e.topology(class, node)
	e.volumes.made = append(e.volumes.made, Provision{Claim: types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}, Class: name, Keys: keys, From: from})
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: "pvc-" + string(claim.UID), UID: "simulated/volume/" + claim.UID,
			Annotations: map[string]string{volumehelper.AnnDynamicallyProvisioned: class.Provisioner},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes, VolumeMode: claim.Spec.VolumeMode, StorageClassName: name,
			ClaimRef:               &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: class.Provisioner, VolumeHandle: string(claim.UID)}},
		},
	}
	if len(keys) > 0 {
		var term corev1.NodeSelectorTerm
		for _, key := range keys {
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{node.Labels[key]}})
		}
		volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}}
	}
	return volume
}

// topology returns the keys of the node's labels that say from where a volume of the
// class can be reached which is made for a pod on the node. A driver that has
// registered no keys makes volumes that every node can reach.
func (e *Engine) topology(class *storagev1.StorageClass, node *corev1.Node) ([]string, TopologySource) {
	if node == nil {
		return nil, FromNothing
	}
	var keys []string
	add := func(key string) {
		if _, labelled := node.Labels[key]; labelled && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	if csi, ok := store.Get(e.store, &storagev1.CSINode{}, "", node.Name); ok {
		for _, driver := range csi.Spec.Drivers {
			if driver.Name == class.Provisioner {
				for _, key := range driver.TopologyKeys {
					add(key)
				}
				return keys, FromDriver
			}
		}
	}
	for _, term := range class.AllowedTopologies {
		for _, r := range term.MatchLabelExpressions {
			add(r.Key)
		}
	}
	if len(keys) > 0 {
		return keys, FromClass
	}
	add(corev1.LabelTopologyRegion)
	add(corev1.LabelTopologyZone)
	return keys, FromZone
}
