// Package snapshot is what scheduling depends on in a cluster, at one moment, as
// a plain value: captured from a live cluster, read from a file, or written by
// hand as YAML. The simulator, lint and review start from it, so that they give
// the same answer tomorrow and on a laptop without a cluster.
//
// The package must not know what anybody concludes from a snapshot: it neither
// schedules nor lints.
package snapshot

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Snapshot is the state of one cluster that scheduling depends on. Every list is
// sorted by namespace and name, so that equal clusters give equal snapshots.
// Objects hold only the fields that scheduling reads. Those that come from a file
// share parts: to change one, copy it first.
type Snapshot struct {
	// Taken is when the capture began, in UTC. It is zero where a person wrote the
	// snapshot, which therefore has no age.
	Taken time.Time
	// Cluster is the name of the cluster: the context that it was captured from.
	Cluster string
	// Version is the version of the API server, as v1.37.2, or empty.
	Version string
	// Anonymized says that names and values were replaced.
	Anonymized bool
	// Served are the kinds that not every cluster has and this one does, whether there
	// are any or not, as "podgroups.scheduling.x-k8s.io", sorted: of others it is known
	// that there are none. Nil where nobody knows, as in most that a person wrote.
	Served []string
	// Missing are the kinds that could not be read: of those the snapshot does not
	// know whether there are any.
	Missing []Missing

	Nodes      []*corev1.Node
	Pods       []*corev1.Pod
	Namespaces []*corev1.Namespace
	Services   []*corev1.Service

	PersistentVolumes      []*corev1.PersistentVolume
	PersistentVolumeClaims []*corev1.PersistentVolumeClaim
	StorageClasses         []*storagev1.StorageClass
	CSIDrivers             []*storagev1.CSIDriver
	CSINodes               []*storagev1.CSINode
	CSIStorageCapacities   []*storagev1.CSIStorageCapacity
	VolumeAttachments      []*storagev1.VolumeAttachment

	PriorityClasses      []*schedulingv1.PriorityClass
	PodDisruptionBudgets []*policyv1.PodDisruptionBudget
	ResourceQuotas       []*corev1.ResourceQuota

	// The owners of pods, with their replicas and strategies. Custom holds the
	// workloads of other kinds.
	Deployments            []*appsv1.Deployment
	ReplicaSets            []*appsv1.ReplicaSet
	StatefulSets           []*appsv1.StatefulSet
	DaemonSets             []*appsv1.DaemonSet
	Jobs                   []*batchv1.Job
	CronJobs               []*batchv1.CronJob
	ReplicationControllers []*corev1.ReplicationController
	Custom                 []*unstructured.Unstructured

	// PodGroups are those of the API itself; CRDPodGroups and ElasticQuotas are
	// those of scheduling.x-k8s.io.
	PodGroups     []*schedulingv1beta1.PodGroup
	CRDPodGroups  []*unstructured.Unstructured
	ElasticQuotas []*unstructured.Unstructured

	ResourceSlices         []*resourcev1.ResourceSlice
	ResourceClaims         []*resourcev1.ResourceClaim
	ResourceClaimTemplates []*resourcev1.ResourceClaimTemplate
	DeviceClasses          []*resourcev1.DeviceClass

	// NodeMetrics are those of metrics.k8s.io, NodePools those of karpenter.sh.
	NodeMetrics []*unstructured.Unstructured
	NodePools   []*unstructured.Unstructured

	// Schedulers are the schedulers that are known to run in the cluster.
	Schedulers []Scheduler
}

// Missing is a kind that whoever took the snapshot could not read.
type Missing struct {
	// Resource is the kind's resource and group, as "poddisruptionbudgets.policy".
	Resource string `json:"resource"`
	// Reason is why, in the API server's words.
	Reason string `json:"reason"`
}

// Scheduler is one scheduler that runs in the cluster.
type Scheduler struct {
	// Name says which one it is, as the Deployment's namespace and name.
	Name string `json:"name"`
	// Bundled says that it is the scheduler of this project.
	Bundled bool `json:"bundled,omitempty"`
	// Ready says that one of its replicas holds the lease and answers.
	Ready bool `json:"ready,omitempty"`
	// Configuration is its KubeSchedulerConfiguration in YAML, or empty where it
	// cannot be read through the API.
	Configuration string `json:"configuration,omitempty"`
	// Profiles are the scheduler names that it serves, sorted.
	Profiles []string `json:"profiles,omitempty"`
}
