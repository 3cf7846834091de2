package trim

import (
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
)

// metadataFields are kept of every kind; annotations are sorted out by their keys.
func metadataFields() []string {
	return []string{"metadata.{name,namespace,uid,labels,annotations,ownerReferences,creationTimestamp,deletionTimestamp}"}
}

const (
	containerFields = "{name,image,resources,restartPolicy," +
		"ports.{containerPort,hostPort,hostIP,protocol}," + // NodePorts
		"restartPolicyRules.action,volumeMounts.bindMountOptions}" // NodeDeclaredFeatures

	// claimSpecFields are what VolumeBinding, VolumeZone and VolumeRestrictions read of
	// a claim.
	claimSpecFields = "{accessModes,selector,resources,volumeName,storageClassName,volumeMode,volumeAttributesClassName}"

	// sourceFields are the volumes of the tree that VolumeRestrictions compares, and
	// that NodeVolumeLimits and VolumeBinding translate to CSI.
	sourceFields = "gcePersistentDisk.{pdName,partition,readOnly},awsElasticBlockStore.{volumeID,partition,readOnly}," +
		"azureDisk.{diskName,diskURI,kind,readOnly},azureFile.{shareName,readOnly},cinder.{volumeID,readOnly}," +
		"vsphereVolume.{volumePath},portworxVolume.{volumeID,readOnly}"

	// podSpecFields are what the scheduler and its plugins read of a pod's spec, and
	// that the controllers need to make and end pods as they do.
	podSpecFields = "{containers." + containerFields + ",initContainers." + containerFields +
		",volumes.{name,persistentVolumeClaim,ephemeral.volumeClaimTemplate.{metadata.labels,spec." + claimSpecFields + "}," +
		"iscsi.{iqn,lun,readOnly},rbd.{monitors,image,pool,readOnly},csi.{driver,readOnly}," + sourceFields + "}" +
		",affinity,nodeName,nodeSelector,tolerations,topologySpreadConstraints" +
		",hostNetwork,hostUsers,overhead,resources,resourceClaims,restartPolicy,terminationGracePeriodSeconds" +
		",priority,priorityClassName,preemptionPolicy,schedulerName,schedulingGates,schedulingGroup}"

	templateFields = "template.{metadata.{labels,annotations},spec." + podSpecFields + "}"

	// statusFields are what a resize in place leaves to be counted.
	statusFields = "{name,resources,allocatedResources}"

	conditionFields = "conditions.{type,status,reason,lastTransitionTime}"

	deviceClaimFields = "devices.{requests,constraints}"

	jobSpecFields = "{parallelism,completions,completionMode,suspend,selector,podReplacementPolicy,managedBy,backoffLimit," + templateFields + "}"
)

// kindFields lists, for each kind, what is kept besides the metadata. Read were the
// plugins, the cache and preemption of pkg/scheduler of Kubernetes 1.37.2,
// component-helpers (resource, nodedeclaredfeatures, storage), csi-translation-lib,
// dynamic-resource-allocation, and what the controllers of the workloads need of
// them to replace pods.
func kindFields() map[reflect.Type][]string {
	return map[reflect.Type][]string{
		reflect.TypeFor[corev1.Node](): {
			"spec.{taints,unschedulable,podPreemptionPolicy}",
			"status.{capacity,allocatable,images,declaredFeatures,volumesAttached.name," + conditionFields + "}",
		},
		reflect.TypeFor[corev1.Pod](): {
			"spec." + podSpecFields,
			"status.{phase,nominatedNodeName,startTime,resources,allocatedResources,resourceClaimStatuses,extendedResourceClaimStatus," +
				"nodeAllocatableResourceClaimStatuses,containerStatuses." + statusFields + ",initContainerStatuses." + statusFields + "," + conditionFields + "}",
		},
		reflect.TypeFor[corev1.Namespace](): nil,
		reflect.TypeFor[corev1.Service]():   {"spec.selector"}, // what default spread counts

		reflect.TypeFor[corev1.PersistentVolume](): {
			"spec.{capacity,accessModes,claimRef.{kind,namespace,name,uid},storageClassName,volumeMode,volumeAttributesClassName,nodeAffinity," +
				"persistentVolumeReclaimPolicy,csi.{driver,volumeHandle,readOnly},iscsi.{iqn,lun,readOnly},rbd.{monitors,image,pool,readOnly}," + sourceFields + "}",
			"status.phase",
		},
		reflect.TypeFor[corev1.PersistentVolumeClaim](): {"spec." + claimSpecFields, "status.phase"},
		reflect.TypeFor[storagev1.StorageClass]():       {"provisioner", "reclaimPolicy", "volumeBindingMode", "allowedTopologies"},
		reflect.TypeFor[storagev1.CSIDriver]():          {"spec.{attachRequired,storageCapacity,preventPodSchedulingIfMissing}"},
		reflect.TypeFor[storagev1.CSINode]():            {"spec.drivers.{name,topologyKeys,allocatable}"},
		reflect.TypeFor[storagev1.CSIStorageCapacity](): {"nodeTopology", "storageClassName", "capacity", "maximumVolumeSize"},
		reflect.TypeFor[storagev1.VolumeAttachment]():   {"spec.{attacher,nodeName,source.persistentVolumeName}", "status.attached"},
		reflect.TypeFor[schedulingv1.PriorityClass]():   {"value", "globalDefault", "preemptionPolicy"},
		reflect.TypeFor[policyv1.PodDisruptionBudget](): {"spec", "status.{disruptedPods,disruptionsAllowed,currentHealthy,desiredHealthy,expectedPods}"},
		reflect.TypeFor[corev1.ResourceQuota]():         {"spec", "status"},
		reflect.TypeFor[schedulingv1beta1.PodGroup]():   {"spec", "status.{" + conditionFields + ",resourceClaimStatuses}"},
		reflect.TypeFor[resourcev1.ResourceSlice]():     {"spec"},
		reflect.TypeFor[resourcev1.DeviceClass]():       {"spec.{selectors,extendedResourceName}"},
		reflect.TypeFor[resourcev1.ResourceClaim](): {
			"spec." + deviceClaimFields,
			"status.{reservedFor,allocation.{devices.results,nodeSelector,allocationTimestamp}}",
		},
		reflect.TypeFor[resourcev1.ResourceClaimTemplate](): {"spec.{metadata.labels,spec." + deviceClaimFields + "}"},

		reflect.TypeFor[appsv1.Deployment](): {
			"spec.{replicas,selector,strategy,minReadySeconds,paused," + templateFields + "}",
			"status.{replicas,updatedReplicas,readyReplicas,availableReplicas}",
		},
		reflect.TypeFor[appsv1.ReplicaSet](): {
			"spec.{replicas,selector,minReadySeconds," + templateFields + "}",
			"status.{replicas,readyReplicas,availableReplicas}",
		},
		reflect.TypeFor[appsv1.StatefulSet](): {
			"spec.{replicas,selector,serviceName,podManagementPolicy,updateStrategy,minReadySeconds,ordinals," + templateFields +
				",volumeClaimTemplates.{metadata.{name,labels},spec." + claimSpecFields + "}}",
			"status.{replicas,readyReplicas,currentReplicas,updatedReplicas,availableReplicas,currentRevision,updateRevision}",
		},
		reflect.TypeFor[appsv1.DaemonSet](): {
			"spec.{selector,updateStrategy,minReadySeconds," + templateFields + "}",
			"status.{currentNumberScheduled,numberMisscheduled,desiredNumberScheduled,numberReady,updatedNumberScheduled,numberAvailable}",
		},
		reflect.TypeFor[batchv1.Job](): {
			"spec." + jobSpecFields,
			"status.{startTime,active,succeeded,failed,ready,conditions.{type,status}}",
		},
		reflect.TypeFor[batchv1.CronJob](): {
			"spec.{schedule,timeZone,concurrencyPolicy,suspend,jobTemplate.{metadata.{labels,annotations},spec." + jobSpecFields + "}}",
		},
		reflect.TypeFor[corev1.ReplicationController](): {
			"spec.{replicas,selector,minReadySeconds," + templateFields + "}",
			"status.{replicas,readyReplicas,availableReplicas}",
		},
	}
}
