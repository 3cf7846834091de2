package anonymize_test

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/anonymize"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
)

func newNames(t *testing.T) *anonymize.Names {
	t.Helper()
	n, err := anonymize.New(random(1))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// fill sets every string below a value to the word, but words of the API's own.
func fill(v reflect.Value, word string, depth int) {
	if depth > 14 {
		return
	}
	switch v.Type() {
	case reflect.TypeFor[resource.Quantity](), reflect.TypeFor[metav1.Time]():
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), word, depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), word, depth+1)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		e := reflect.New(v.Type().Elem()).Elem()
		fill(e, word, depth+1)
		v.SetMapIndex(reflect.ValueOf(word).Convert(v.Type().Key()), e)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), word, depth+1)
			}
		}
	case reflect.String:
		if v.Type() == reflect.TypeFor[string]() || v.Type().Name() == "UID" || v.Type().Name() == "ResourceName" {
			v.SetString(word)
		}
	default: // nothing else holds words
	}
}

// left lists the paths at which a word is left.
func left(v reflect.Value, word, path string, into map[string]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			left(v.Elem(), word, path, into)
		}
	case reflect.Slice:
		for i := range v.Len() {
			left(v.Index(i), word, path, into)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if key.Kind() == reflect.String && strings.Contains(key.String(), word) {
				into[path+"[]"] = true
			}
			left(v.MapIndex(key), word, path, into)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				left(v.Field(i), word, fmt.Sprintf("%s.%s", v.Type().Name(), v.Type().Field(i).Name), into)
			}
		}
	case reflect.String:
		if strings.Contains(v.String(), word) {
			into[path] = true
		}
	default: // nothing else holds words
	}
}

// stays are the fields of which the documentation says that they stay.
var stays = []string{
	"TypeMeta.APIVersion", "TypeMeta.Kind", "OwnerReference.APIVersion", "OwnerReference.Kind", "ObjectReference.APIVersion", "ObjectReference.Kind",
	"Condition.Type", "Condition.Reason", "NodeCondition.Reason", "PodCondition.Reason", "NodeStatus.DeclaredFeatures", "VolumeMount.BindMountOptions",
	"CSIVolumeSource.Driver", "CSIPersistentVolumeSource.Driver", "StorageClass.Provisioner", "VolumeAttachmentSpec.Attacher", "CSINodeDriver.Name",
	"CronJobSpec.Schedule", "CronJobSpec.TimeZone",
	"ResourceSliceSpec.Driver", "Device.BindingConditions", "Device.BindingFailureConditions", "Device.Attributes[]", "Device.Capacity[]",
	"DeviceAttribute.StringValue", "DeviceAttribute.VersionValue", "DeviceAttribute.StringValues", "DeviceAttribute.VersionValues", "CELDeviceSelector.Expression",
	"DeviceRequestAllocationResult.Driver", "DeviceRequestAllocationResult.BindingConditions", "DeviceRequestAllocationResult.BindingFailureConditions", "DeviceRequestAllocationResult.ConsumedCapacity[]",
	"ResourceClaimConsumerReference.APIGroup", "ResourceClaimConsumerReference.Resource", "CapacityRequirements.Requests[]",
	"IntOrString.StrVal", // a percentage
	"CounterSet.Counters[]", "DeviceCounterConsumption.Counters[]",
}

// TestNoFieldIsLeft fills every field of every kind that a snapshot keeps, and holds
// that but for those that are to stay nothing is left.
func TestNoFieldIsLeft(t *testing.T) {
	t.Parallel()
	const word = "acme.com/acme"
	for _, k := range snapshot.Kinds() {
		if !k.Typed || k.Kind == "CSIDriver" { // whose name is a driver's
			continue
		}
		o := k.New()
		fill(reflect.ValueOf(o).Elem(), word, 0)
		kept, err := k.Trim(o, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := &snapshot.Snapshot{}
		k.Add(s, kept)
		hidden, err := anonymize.Snapshot(s, newNames(t))
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for o := range k.All(hidden) {
			left(reflect.ValueOf(o), "acme", k.Kind, found)
		}
		for path := range found {
			if !slices.Contains(stays, path) {
				t.Errorf("%s: %s is left", k.Kind, path)
			}
		}
	}
}

const document = `
apiVersion: kubectl-sched.github.io/v1alpha1
kind: Snapshot
cluster: acme-prod
missing: [{resource: poddisruptionbudgets.policy, reason: 'User "bob@acme.com" cannot list'}]
schedulers:
- name: acme-system/placement-scheduler
  bundled: true
  profiles: [acme-batch]
  configuration: |
    apiVersion: kubescheduler.config.k8s.io/v1
    kind: KubeSchedulerConfiguration
    profiles:
    - schedulerName: acme-batch
      plugins: {multiPoint: {enabled: [{name: CacheLocality, weight: 3}]}}
      pluginConfig:
      - name: CacheLocality
        args: {datasetKeys: [acme.com/data], penaltyPerPod: 5}
      - name: NodeResourcesFit
        args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}, {name: acme.com/npu, weight: 2}]}}
      - name: NodeAffinity
        args: {addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: acme.com/pool, operator: In, values: [acme-gpu]}]}]}}}
    extenders: [{urlPrefix: "https://scheduler.acme.com"}]
---
apiVersion: v1
kind: Pod
metadata:
  name: acme-1
  namespace: acme
  annotations:
    acme.com/data: "acme-images=120Gi, acme-vocab"
    kubectl-sched.github.io/gpu-memory: 12Gi
    kubectl-sched.github.io/placement: '{"uid":"acme"}'
    gates.kubectl-sched.github.io/quota: '{"quota":{"name":"acme-quota"}}'
spec:
  schedulerName: acme-batch
  containers: [{name: acme, image: "acme:1", resources: {limits: {acme.com/npu: 2, nvidia.com/gpu: 1, cpu: 1}}}]
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: acme, namespace: acme}
spec: {hard: {requests.acme.com/npu: 4, count/jobs.batch: 3, acme-gold.storageclass.storage.k8s.io/requests.storage: 1Gi, cpu: 8}}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: ElasticQuota
metadata: {name: acme, namespace: acme, labels: {acme.com/team: acme}}
spec: {min: {acme.com/npu: 1}, max: {acme.com/npu: 2}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: acme-pool}
spec:
  template:
    metadata: {labels: {acme.com/pool: acme-gpu}}
    spec:
      taints: [{key: acme.com/pool, value: acme-gpu, effect: NoSchedule}]
      requirements: [{key: acme.com/pool, operator: In, values: [acme-gpu]}, {key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: ["3"]}]
---
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: acme, namespace: acme}
spec:
  replicas: 2
  selector: {matchLabels: {acme.com/app: acme}}
  template:
    metadata: {labels: {acme.com/app: acme}}
    spec: {nodeSelector: {acme.com/pool: acme-gpu}, containers: [{name: acme, image: "acme:1"}]}
`

func TestEverythingElseIsReplaced(t *testing.T) {
	t.Parallel()
	s, err := snapshot.Read(strings.NewReader(document), snapshot.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	names := newNames(t)
	hidden, err := anonymize.Snapshot(s, names)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := snapshot.WriteYAML(&b, hidden); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if strings.Contains(text, "acme") || strings.Contains(text, "bob") {
		t.Errorf("a name is left in\n%s", text)
	}
	// What stays, and what must be the same word wherever it is.
	word := func(original string) string {
		for _, w := range strings.FieldsFunc(text, func(r rune) bool { return !strings.ContainsRune("x0123456789abcdef", r) }) {
			if o, ok := names.Original(w); ok && o == original {
				return w
			}
		}
		t.Fatalf("there is no word for %q", original)
		return ""
	}
	npu, pool := word("acme.com")+"/"+word("npu"), word("acme.com")+"/"+word("pool")
	gpu := word("acme-gpu")
	for _, want := range []string{
		"cpu: \"8\"", "count/jobs.batch: \"3\"", "requests." + npu + ": \"4\"", word("acme-gold") + ".storageclass.storage.k8s.io/requests.storage",
		"kubectl-sched.github.io/gpu-memory: 12Gi", word("acme-images") + "=120Gi, " + word("acme-vocab"), `{"quota":{"name":"` + word("acme-quota") + `"}}`,
		"schedulerName: " + word("acme-batch"), "name: CacheLocality", "- " + word("acme.com") + "/" + word("data"), "type: MostAllocated", "- name: " + npu, "- key: " + pool,
		"instance-cpu", "kind: Rollout", pool + ": " + gpu, "nvidia.com/gpu: \"1\"",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	if keep := snapshot.KeepsAnnotation(hidden.Schedulers); keep == nil || !keep(word("acme.com")+"/"+word("data")) {
		t.Error("the annotation that the configuration names is not the pod's any more")
	}
	if strings.Contains(text, "kubectl-sched.github.io/placement:") {
		t.Error("the record of what was written is still there")
	}
}

func TestNamesCanBeReadBack(t *testing.T) {
	t.Parallel()
	s, err := snapshot.Read(strings.NewReader(document), snapshot.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	names := newNames(t)
	first, err := anonymize.Snapshot(s, names)
	if err != nil {
		t.Fatal(err)
	}
	var kept bytes.Buffer
	if err := names.Write(&kept); err != nil {
		t.Fatal(err)
	}
	again, err := anonymize.Read(&kept)
	if err != nil {
		t.Fatal(err)
	}
	second, err := anonymize.Snapshot(s, again)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("with the same names it is another snapshot:\n%s", diff)
	}
	pod := first.Pods[0]
	if got := again.Restore(fmt.Sprintf("pod %s/%s fits nowhere", pod.Namespace, pod.Name)); got != "pod acme/acme-1 fits nowhere" {
		t.Errorf("restored %q", got)
	}
	if got := again.Restore("x0123456789abcdef"); got != "x0123456789abcdef" {
		t.Errorf("restored %q", got)
	}
	other, err := anonymize.New(random(2))
	if err != nil {
		t.Fatal(err)
	}
	third, err := anonymize.Snapshot(s, other)
	if err != nil {
		t.Fatal(err)
	}
	if third.Pods[0].Name == pod.Name || third.Pods[0].UID == pod.UID {
		t.Error("another key gives the same words")
	}
	for _, text := range []string{"", "{}", `{"apiVersion": "kubectl-sched.github.io/v1alpha1", "kind": "SnapshotNames", "key": "AA=="}`, `{"names": 1}`} {
		if _, err := anonymize.Read(strings.NewReader(text)); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}
