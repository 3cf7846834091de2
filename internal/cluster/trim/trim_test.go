package trim

import (
	"fmt"
	"reflect"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// filled returns a value of the type in which every field is set. Maps get the
// keys of annotations that are kept and that are not.
func filled(of reflect.Type, depth int) reflect.Value {
	v := reflect.New(of).Elem()
	if depth > 14 {
		return v
	}
	switch of {
	case reflect.TypeFor[resource.Quantity]():
		v.Set(reflect.ValueOf(resource.MustParse("1")))
		return v
	case reflect.TypeFor[metav1.Time]():
		v.Set(reflect.ValueOf(metav1.NewTime(time.Unix(1_700_000_000, 0))))
		return v
	}
	switch of.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(of.Elem()))
		v.Elem().Set(filled(of.Elem(), depth+1))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(of, 1, 1))
		v.Index(0).Set(filled(of.Elem(), depth+1))
	case reflect.Map:
		v.Set(reflect.MakeMap(of))
		for _, key := range []string{"secret.example.com/x", "kubectl-sched.github.io/gpu-memory"} {
			v.SetMapIndex(reflect.ValueOf(key).Convert(of.Key()), filled(of.Elem(), depth+1))
		}
	case reflect.Struct:
		for i := range of.NumField() {
			if of.Field(i).IsExported() {
				v.Field(i).Set(filled(of.Field(i).Type, depth+1))
			}
		}
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	default: // API types have no others
	}
	return v
}

// paths lists the JSON paths of what is set in a value.
func paths(v reflect.Value, path string, into map[string]bool) {
	switch v.Type() {
	case reflect.TypeFor[resource.Quantity](), reflect.TypeFor[metav1.Time]():
		if !v.IsZero() {
			into[path] = true
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			paths(v.Elem(), path, into)
		}
	case reflect.Slice:
		for i := range v.Len() {
			paths(v.Index(i), path, into)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			into[path+"["+key.String()+"]"] = true
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name, inline := jsonName(v.Type().Field(i))
			below := path
			if !inline {
				below = strings.TrimPrefix(path+"."+name, ".")
			}
			paths(v.Field(i), below, into)
		}
	default:
		if !v.IsZero() {
			into[path] = true
		}
	}
}

// allowed reports whether a path is on the allow-list or below something that is.
func allowed(t tree, path string) bool {
	for path != "" {
		head, rest, _ := strings.Cut(path, ".")
		head, _, _ = strings.Cut(head, "[")
		below, ok := t[head]
		if !ok {
			return false
		}
		if len(below) == 0 {
			return true
		}
		t, path = below, rest
	}
	return true
}

// TestOnlyListedFieldsComeOut fills every field of every kind, and holds that what
// comes out of it is on the list, and that all that is on the list comes out.
func TestOnlyListedFieldsComeOut(t *testing.T) {
	t.Parallel()
	for of, lines := range kindFields() {
		t.Run(of.Name(), func(t *testing.T) {
			t.Parallel()
			list := tree{}
			for _, line := range append(metadataFields(), lines...) {
				list.add(line)
			}
			object := filled(reflect.PointerTo(of), 0)
			before := map[string]bool{}
			paths(object, "", before)
			if err := Object(object.Interface().(metav1.Object), nil); err != nil {
				t.Fatal(err)
			}
			after := map[string]bool{}
			paths(object, "", after)
			for path := range after {
				if !allowed(list, path) {
					t.Errorf("%s comes out and is on no list", path)
				}
				if strings.HasPrefix(path, "metadata.annotations") && !strings.Contains(path, "kubectl-sched") {
					t.Errorf("%s comes out", path)
				}
			}
			for path := range before {
				dropped := strings.Contains(path, "annotations[secret") || strings.HasSuffix(path, "apiVersion") && !strings.Contains(path, ".") || path == "kind"
				// Statuses that repeat the spec, and conditions of no known type.
				dropped = dropped || of == reflect.TypeFor[corev1.Pod]() && (strings.Contains(path, "ontainerStatuses.") || strings.HasPrefix(path, "status.conditions"))
				if allowed(list, path) && !after[path] && !dropped {
					t.Errorf("%s is on the list and does not come out", path)
				}
			}
			if len(after) < 4 {
				t.Errorf("only %d paths come out", len(after))
			}
		})
	}
}

// TestSecretsDoNotComeOut holds by the words themselves that nothing of the fields
// that people keep secrets in is on any list.
func TestSecretsDoNotComeOut(t *testing.T) {
	t.Parallel()
	for of := range kindFields() {
		object := filled(reflect.PointerTo(of), 0)
		if err := Object(object.Interface().(metav1.Object), nil); err != nil {
			t.Fatal(err)
		}
		after := map[string]bool{}
		paths(object, "", after)
		for path := range after {
			for _, word := range []string{"env", "args", "command", "secret", "configMap", "envFrom", "lifecycle", "Probe", "parameters", "opaque", "volumeAttributes", "managedFields"} {
				if strings.Contains("."+path+".", "."+word) && !strings.Contains(path, "volumeAttributesClassName") && !strings.Contains(path, "[secret.example.com") {
					t.Errorf("%s: %s comes out", of, path)
				}
			}
		}
	}
}

// TestFieldsOfPluginsAreKept names what each plugin of the tree reads.
func TestFieldsOfPluginsAreKept(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		object metav1.Object
		reads  []string
	}{
		"pods": {filled(reflect.TypeFor[*corev1.Pod](), 0).Interface().(metav1.Object), []string{
			"spec.schedulingGates.name",                         // SchedulingGates
			"spec.priority",                                     // PrioritySort
			"spec.nodeName",                                     // NodeName
			"spec.tolerations.key", "spec.tolerations.operator", // NodeUnschedulable, TaintToleration
			"spec.nodeSelector[secret.example.com/x]", // NodeAffinity
			"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms.matchFields.values",
			"spec.containers.ports.hostPort", "spec.containers.ports.hostIP", "spec.containers.ports.protocol", // NodePorts
			"spec.initContainers.ports.hostPort", "spec.initContainers.restartPolicy",
			"spec.containers.resources.requests[secret.example.com/x]", "spec.overhead[secret.example.com/x]", // NodeResourcesFit
			"spec.resources.requests[secret.example.com/x]", "status.resources.requests[secret.example.com/x]",
			"spec.volumes.persistentVolumeClaim.claimName", // VolumeBinding
			"spec.volumes.ephemeral.volumeClaimTemplate.spec.storageClassName",
			"spec.volumes.gcePersistentDisk.pdName", "spec.volumes.iscsi.iqn", "spec.volumes.rbd.monitors", // VolumeRestrictions
			"spec.volumes.awsElasticBlockStore.volumeID", "spec.volumes.azureDisk.diskURI", // NodeVolumeLimits
			"spec.topologySpreadConstraints.matchLabelKeys", "spec.topologySpreadConstraints.minDomains", // PodTopologySpread
			"spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution.mismatchLabelKeys",  // InterPodAffinity
			"spec.resourceClaims.resourceClaimTemplateName", "status.resourceClaimStatuses.resourceClaimName", // DynamicResources
			"status.extendedResourceClaimStatus.resourceClaimName",
			"spec.preemptionPolicy", "status.startTime", "status.nominatedNodeName", // DefaultPreemption
			"spec.containers.image",                                                                                                            // ImageLocality
			"spec.hostUsers", "spec.hostNetwork", "spec.containers.restartPolicyRules.action", "spec.containers.volumeMounts.bindMountOptions", // NodeDeclaredFeatures
			"spec.schedulingGroup.podGroupName", // GangScheduling
			"metadata.annotations[kubectl-sched.github.io/gpu-memory]",
		}},
		"nodes": {filled(reflect.TypeFor[*corev1.Node](), 0).Interface().(metav1.Object), []string{
			"spec.unschedulable", "spec.taints.effect", "status.allocatable[secret.example.com/x]", "status.images.names", "status.images.sizeBytes",
			"status.declaredFeatures", "metadata.labels[secret.example.com/x]", "spec.podPreemptionPolicy.disableResizePreemption",
		}},
	}
	for name, test := range tests {
		if err := Object(test.object, nil); err != nil {
			t.Fatal(err)
		}
		after := map[string]bool{}
		paths(reflect.ValueOf(test.object), "", after)
		for _, path := range test.reads {
			if !after[path] {
				var have []string
				for p := range after {
					have = append(have, p)
				}
				sort.Strings(have)
				t.Errorf("%s: %s is read and gone; there is\n%s", name, path, strings.Join(have, "\n"))
			}
		}
	}
}

func TestStatusThatRepeatsTheSpecGoes(t *testing.T) {
	t.Parallel()
	requests := corev1.ResourceList{"cpu": resource.MustParse("1")}
	more := corev1.ResourceList{"cpu": resource.MustParse("2")}
	pod := &corev1.Pod{
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "same", Resources: corev1.ResourceRequirements{Requests: requests}}, {Name: "resized", Resources: corev1.ResourceRequirements{Requests: more}}}},
		Status: corev1.PodStatus{
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "same", AllocatedResources: corev1.ResourceList{"cpu": resource.MustParse("1000m")}, Resources: &corev1.ResourceRequirements{Requests: requests}},
				{Name: "resized", AllocatedResources: requests},
			},
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Reason: "Unschedulable", Message: "0/3 nodes of customer x"}, {Type: corev1.PodInitialized}},
		},
	}
	if err := Object(pod, nil); err != nil {
		t.Fatal(err)
	}
	want := corev1.PodStatus{
		ContainerStatuses: []corev1.ContainerStatus{{Name: "resized", AllocatedResources: requests}},
		Conditions:        []corev1.PodCondition{{Type: corev1.PodScheduled, Reason: "Unschedulable"}},
	}
	if diff := cmp.Diff(want, pod.Status); diff != "" {
		t.Error(diff)
	}
}

func TestWorkloadKeepsTemplatesAndNumbers(t *testing.T) {
	t.Parallel()
	in := unmarshal(t, `
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: train, namespace: ml, resourceVersion: "7", annotations: {a: b}, labels: {team: x}}
spec:
  runPolicy: {cleanPodPolicy: None}
  pytorchReplicaSpecs:
    Worker:
      replicas: 3
      restartPolicy: OnFailure
      template:
        metadata: {labels: {job: train}, annotations: {secret: s}}
        spec:
          nodeSelector: {pool: gpu}
          containers:
          - {name: pytorch, image: i, command: [rm], env: [{name: TOKEN, value: s}], resources: {limits: {nvidia.com/gpu: 1}}}
status: {replicaStatuses: {}}
`)
	got, err := Workload(in, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := unmarshal(t, `
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: train, namespace: ml, labels: {team: x}}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 3
      template:
        metadata: {labels: {job: train}, annotations: {}}
        spec:
          nodeSelector: {pool: gpu}
          containers:
          - {name: pytorch, image: i, resources: {limits: {nvidia.com/gpu: "1"}}}
`)
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Error(diff)
	}
	if _, err := Workload(unmarshal(t, "{apiVersion: example.com/v1, kind: Other, metadata: {name: x}}"), nil, nil); err == nil || !strings.Contains(err.Error(), "no kind of workload") {
		t.Errorf("error %v", err)
	}
}

func TestUntypedKeepsWhatIsListed(t *testing.T) {
	t.Parallel()
	got, err := Untyped(unmarshal(t, `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu, uid: u, annotations: {karpenter.sh/hash: h}}
spec:
  limits: {cpu: 100}
  disruption: {consolidateAfter: 1m}
  template:
    metadata: {labels: {class: gpu}, annotations: {x: y}}
    spec: {expireAfter: 1h, requirements: [{key: a, operator: In, values: [b]}]}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := unmarshal(t, `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu, uid: u}
spec:
  limits: {cpu: 100}
  template:
    metadata: {labels: {class: gpu}}
    spec: {requirements: [{key: a, operator: In, values: [b]}]}
`)
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Error(diff)
	}
	if _, err := Untyped(unmarshal(t, "{apiVersion: v1, kind: Secret, metadata: {name: x}}"), nil); err == nil {
		t.Error("a Secret is trimmed without an error")
	}
	if err := Object(&corev1.Secret{}, nil); err == nil || !strings.Contains(err.Error(), "no list") {
		t.Errorf("a Secret: error %v", err)
	}
}

func unmarshal(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = u.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatal(fmt.Errorf("%w in %s", err, text))
	}
	return u
}
