package anonymize

import (
	"reflect"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// typeRules are for values of a type, wherever they are.
func typeRules() map[reflect.Type]rule {
	return map[reflect.Type]rule{
		reflect.TypeFor[metav1.Time]():        keep,
		reflect.TypeFor[metav1.MicroTime]():   keep,
		reflect.TypeFor[resource.Quantity]():  keep,
		reflect.TypeFor[intstr.IntOrString](): keep,

		reflect.TypeFor[types.UID]():           on(func(n *Names, u *types.UID) { *u = n.uid(*u) }),
		reflect.TypeFor[types.NodeName]():      on(func(n *Names, s *types.NodeName) { *s = types.NodeName(n.name(string(*s))) }),
		reflect.TypeFor[corev1.ResourceName](): on(func(n *Names, s *corev1.ResourceName) { *s = corev1.ResourceName(n.resource(string(*s))) }),
		reflect.TypeFor[corev1.UniqueVolumeName](): on(func(n *Names, s *corev1.UniqueVolumeName) {
			*s = corev1.UniqueVolumeName(n.name(string(*s)))
		}),
		reflect.TypeFor[corev1.ResourceList]():                                        on(resources[corev1.ResourceName, resource.Quantity, corev1.ResourceList]),
		reflect.TypeFor[map[corev1.ResourceName]resourcev1.NodeAllocatableResource](): on(resources[corev1.ResourceName, resourcev1.NodeAllocatableResource, map[corev1.ResourceName]resourcev1.NodeAllocatableResource]),

		reflect.TypeFor[metav1.ObjectMeta]():                       on((*Names).metadata),
		reflect.TypeFor[metav1.LabelSelectorRequirement]():         on(func(n *Names, r *metav1.LabelSelectorRequirement) { n.requirement(&r.Key, &r.Values) }),
		reflect.TypeFor[corev1.NodeSelectorRequirement]():          on(func(n *Names, r *corev1.NodeSelectorRequirement) { n.requirement(&r.Key, &r.Values) }),
		reflect.TypeFor[corev1.TopologySelectorLabelRequirement](): on(func(n *Names, r *corev1.TopologySelectorLabelRequirement) { n.requirement(&r.Key, &r.Values) }),
		reflect.TypeFor[corev1.NodeSelectorTerm]():                 on((*Names).term),
		reflect.TypeFor[corev1.Taint]():                            on(func(n *Names, t *corev1.Taint) { n.pair(&t.Key, &t.Value) }),
		reflect.TypeFor[corev1.Toleration]():                       on(func(n *Names, t *corev1.Toleration) { n.pair(&t.Key, &t.Value) }),
		reflect.TypeFor[resourcev1.DeviceTaint]():                  on(func(n *Names, t *resourcev1.DeviceTaint) { n.pair(&t.Key, &t.Value) }),
		reflect.TypeFor[resourcev1.DeviceToleration]():             on(func(n *Names, t *resourcev1.DeviceToleration) { n.pair(&t.Key, &t.Value) }),

		// What CEL expressions are about stays, because they cannot be rewritten.
		reflect.TypeFor[resourcev1.DeviceAttribute]():   keep,
		reflect.TypeFor[resourcev1.CELDeviceSelector](): keep,
	}
}

// fieldRules are for fields, by the type that they are in and their names.
func fieldRules() map[reflect.Type]map[string]rule {
	key, resourceName := each((*Names).labelKey), each((*Names).resource)
	asked := each(func(n *Names, ref string) string { return n.image(ref, true) })
	there := each(func(n *Names, ref string) string { return n.image(ref, false) })
	return map[reflect.Type]map[string]rule{
		reflect.TypeFor[metav1.TypeMeta]():                         {"Kind": keep, "APIVersion": keep},
		reflect.TypeFor[metav1.OwnerReference]():                   {"Kind": keep, "APIVersion": keep},
		reflect.TypeFor[metav1.Condition]():                        {"Type": keep, "Reason": keep},
		reflect.TypeFor[corev1.ObjectReference]():                  {"Kind": keep, "APIVersion": keep},
		reflect.TypeFor[corev1.Container]():                        {"Image": asked},
		reflect.TypeFor[corev1.ContainerImage]():                   {"Names": there},
		reflect.TypeFor[corev1.VolumeMount]():                      {"BindMountOptions": keep},
		reflect.TypeFor[corev1.NodeCondition]():                    {"Reason": keep},
		reflect.TypeFor[corev1.PodCondition]():                     {"Reason": keep},
		reflect.TypeFor[corev1.NodeStatus]():                       {"DeclaredFeatures": keep},
		reflect.TypeFor[corev1.PodSchedulingGate]():                {"Name": key},
		reflect.TypeFor[corev1.PodAffinityTerm]():                  {"TopologyKey": key, "MatchLabelKeys": key, "MismatchLabelKeys": key},
		reflect.TypeFor[corev1.TopologySpreadConstraint]():         {"TopologyKey": key, "MatchLabelKeys": key},
		reflect.TypeFor[corev1.ContainerExtendedResourceRequest](): {"ResourceName": resourceName},

		reflect.TypeFor[corev1.AWSElasticBlockStoreVolumeSource](): {"VolumeID": each((*Names).elasticBlockStore)},
		reflect.TypeFor[corev1.CSIVolumeSource]():                  {"Driver": keep},
		reflect.TypeFor[corev1.CSIPersistentVolumeSource]():        {"Driver": keep},
		reflect.TypeFor[storagev1.StorageClass]():                  {"Provisioner": keep},
		reflect.TypeFor[storagev1.VolumeAttachmentSpec]():          {"Attacher": keep},
		reflect.TypeFor[storagev1.CSINodeDriver]():                 {"Name": keep, "TopologyKeys": key},
		reflect.TypeFor[storagev1.CSIDriver]():                     {"ObjectMeta": keep},

		reflect.TypeFor[batchv1.CronJobSpec](): {"Schedule": keep, "TimeZone": keep},
		reflect.TypeFor[batchv1.JobSpec]():     {"ManagedBy": key},
		reflect.TypeFor[policyv1.PodDisruptionBudgetStatus](): {"DisruptedPods": on(func(n *Names, m *map[string]metav1.Time) {
			out := make(map[string]metav1.Time, len(*m))
			for pod, at := range *m {
				out[n.name(pod)] = at
			}
			*m = out
		})},
		reflect.TypeFor[schedulingv1beta1.TopologyConstraint](): {"Key": key},

		reflect.TypeFor[resourcev1.DeviceClassSpec]():                {"ExtendedResourceName": resourceName},
		reflect.TypeFor[resourcev1.ResourceSliceSpec]():              {"Driver": keep},
		reflect.TypeFor[resourcev1.Device]():                         {"BindingConditions": keep, "BindingFailureConditions": keep},
		reflect.TypeFor[resourcev1.DeviceRequestAllocationResult]():  {"Driver": keep, "BindingConditions": keep, "BindingFailureConditions": keep},
		reflect.TypeFor[resourcev1.ResourceClaimConsumerReference](): {"APIGroup": keep, "Resource": keep},
	}
}

func (n *Names) metadata(m *metav1.ObjectMeta) {
	m.Name, m.Namespace, m.UID = n.name(m.Name), n.name(m.Namespace), n.uid(m.UID)
	m.Labels, m.Annotations = n.labels(m.Labels), n.annotations(m.Annotations)
	m.OwnerReferences = slices.Clone(m.OwnerReferences)
	for i := range m.OwnerReferences {
		o := &m.OwnerReferences[i]
		o.Name, o.UID = n.name(o.Name), n.uid(o.UID)
	}
}

// requirement replaces the key and the values of a selector's requirement.
func (n *Names) requirement(key *string, values *[]string) {
	*values = n.values(*key, *values)
	*key = n.labelKey(*key)
}

// pair replaces the key and the value of a taint or toleration.
func (n *Names) pair(key, value *string) {
	*value = n.value(*key, *value)
	*key = n.labelKey(*key)
}

// term replaces the requirements of a term. Those of fields name nodes.
func (n *Names) term(t *corev1.NodeSelectorTerm) {
	t.MatchExpressions, t.MatchFields = slices.Clone(t.MatchExpressions), slices.Clone(t.MatchFields)
	for i := range t.MatchExpressions {
		n.requirement(&t.MatchExpressions[i].Key, &t.MatchExpressions[i].Values)
	}
	for i := range t.MatchFields {
		f := &t.MatchFields[i]
		f.Values = mapped(f.Values, n.name)
		if f.Key != metav1.ObjectNameField { // the only one there is
			f.Key = n.labelKey(f.Key)
		}
	}
}

// elasticBlockStore returns the ID for the ID of a volume, in the form that the
// translation to CSI asks for. (csi-translation-lib, plugins/aws_ebs.go)
func (n *Names) elasticBlockStore(id string) string { return "vol-" + n.word(id)[1:] }
