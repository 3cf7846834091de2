package fidelity_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/utils/ptr"

	"github.com/kubectl-sched/kubectl-sched/internal/simulate/engine"
)

// The profiles of the scheduler: upstream's default one, that with gangs, and that
// with the other bundled plugins.
const (
	plainProfile = "fidelity"
	gangProfile  = "fidelity-gang"
	cacheProfile = "fidelity-cache"
)

// configuration is what the scheduler and the simulator are both given.
func configuration(kubeconfig string) string {
	return fmt.Sprintf(`
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %q, qps: 500, burst: 1000}
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 1
profiles:
- schedulerName: %s
- schedulerName: %s
  plugins: {multiPoint: {enabled: [{name: Gang}]}}
  pluginConfig: [{name: Gang, args: {timeout: 5m}}]
- schedulerName: %s
  plugins: {multiPoint: {enabled: [{name: CacheLocality, weight: 10}, {name: GPUMemory}]}}
  # The penalty counts what the plugin has seen since the scheduler was started.
  pluginConfig: [{name: CacheLocality, args: {penaltyPerPod: 0}}]
`, kubeconfig, plainProfile, gangProfile, cacheProfile)
}

// profiles are those of the configuration, with all defaults.
func profiles(t *testing.T) []config.KubeSchedulerProfile {
	t.Helper()
	if err := engine.Gates(); err != nil {
		t.Fatal(err)
	}
	object, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(configuration("")), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	decoded, ok := object.(*config.KubeSchedulerConfiguration)
	if !ok {
		t.Fatalf("the configuration is a %T", object)
	}
	return decoded.Profiles
}

// The classes that all cases share.
const (
	lowClass    = "fidelity-low"
	highClass   = "fidelity-high"
	highest     = "fidelity-highest"
	politeClass = "fidelity-polite" // high, and preempts nobody
	scarceClass = "fidelity-scarce" // storage with a capacity that is told
	scarce      = "scarce.fidelity.example"
)

// prepare makes what all cases share, unless it is there.
func (l *lab) prepare(ctx context.Context) error {
	created := metav1.CreateOptions{}
	for name, value := range map[string]int32{lowClass: 10, highClass: 1000, highest: 5000, politeClass: 1000} {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		if name == politeClass {
			class.PreemptionPolicy = ptr.To(never)
		}
		if _, err := l.client.SchedulingV1().PriorityClasses().Create(ctx, class, created); ignoreThere(err) != nil {
			return err
		}
	}
	driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: scarce}, Spec: storagev1.CSIDriverSpec{StorageCapacity: ptr.To(true), AttachRequired: ptr.To(false)}}
	if _, err := l.client.StorageV1().CSIDrivers().Create(ctx, driver, created); ignoreThere(err) != nil {
		return err
	}
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: scarceClass}, Provisioner: scarce,
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer),
	}
	if _, err := l.client.StorageV1().StorageClasses().Create(ctx, class, created); ignoreThere(err) != nil {
		return err
	}
	return l.installPodGroups(ctx)
}

func ignoreThere(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// podGroups are those of scheduler-plugins.
var podGroups = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}

// installPodGroups creates their CRD and returns when it is served.
func (l *lab) installPodGroups(ctx context.Context) error {
	text, number := map[string]any{"type": "string"}, map[string]any{"type": "integer", "format": "int32"}
	status := map[string]any{
		"phase": text, "occupiedBy": text, "running": number, "succeeded": number, "failed": number,
		"scheduleStartTime": map[string]any{"type": "string", "format": "date-time"},
	}
	open := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{
			"name":        podGroups.GroupResource().String(),
			"annotations": map[string]any{"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins/pull/50"},
		},
		"spec": map[string]any{
			"group": podGroups.Group, "scope": "Namespaced",
			"names": map[string]any{"plural": "podgroups", "singular": "podgroup", "kind": "PodGroup", "listKind": "PodGroupList"},
			"versions": []any{map[string]any{
				"name": podGroups.Version, "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{
					"spec": open, "status": map[string]any{"type": "object", "properties": status},
				}}},
			}},
		},
	}}
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	if _, err := l.dynamic.Resource(definitions).Create(ctx, definition, metav1.CreateOptions{}); ignoreThere(err) != nil {
		return err
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, last = l.dynamic.Resource(podGroups).List(ctx, metav1.ListOptions{})
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for PodGroup objects to be served: %w; last: %w", err, last)
	}
	return nil
}
