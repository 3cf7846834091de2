package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/internal/simulate/store"
)

// gpus returns a class of devices, and slices that say of how many each node has.
func gpus(perNode map[string]int) []store.Object {
	expression := `device.driver == "gpu.example.com"`
	objects := []store.Object{&resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu", UID: "gpu"},
		Spec:       resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}},
	}}
	for node, n := range perNode {
		slice := &resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: node, UID: types.UID("slice-" + node)},
			Spec: resourcev1.ResourceSliceSpec{
				Driver: "gpu.example.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1},
			},
		}
		for i := range n {
			slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprintf("gpu-%d", i)})
		}
		objects = append(objects, slice)
	}
	return objects
}

func deviceClaim(name string) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("claim-" + name)},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1},
		}}}},
	}
}

func claiming(claim string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim}}
		p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
	}
}

// Each pod gets a device that is free; who comes too late waits, until one is.
func TestDevices(t *testing.T) {
	t.Parallel()
	e := start(t, Options{}, node("a", "z1", "8"), node("b", "z2", "8"), node("none", "z2", "64"))
	put(t, e, gpus(map[string]int{"a": 1, "b": 2})...)
	for i := range 4 {
		claim := fmt.Sprintf("c%d", i)
		put(t, e, deviceClaim(claim), pod(fmt.Sprintf("p%d", i), "1", claiming(claim)))
	}
	settle(t, e)
	var nodes []string
	var waits Attempt
	for _, a := range e.Attempts() {
		if a.Node == "" {
			waits = a
			continue
		}
		nodes = append(nodes, a.Node)
	}
	slices.Sort(nodes)
	if diff := cmp.Diff([]string{"a", "b", "b"}, nodes); diff != "" {
		t.Error(diff)
	}
	if !strings.HasPrefix(waits.Message, "0/3 nodes are available: 3 cannot allocate all claims.") {
		t.Errorf("the fourth pod's message is %q, want that there is no device left", waits.Message)
	}
	var devices []string
	for i := range 4 {
		claim, _ := store.Get(e.store, &resourcev1.ResourceClaim{}, "default", fmt.Sprintf("c%d", i))
		if claim.Status.Allocation == nil {
			continue
		}
		for _, r := range claim.Status.Allocation.Devices.Results {
			devices = append(devices, r.Pool+"/"+r.Device)
		}
		if len(claim.Status.ReservedFor) != 1 {
			t.Errorf("claim c%d is reserved for %v, want for one pod", i, claim.Status.ReservedFor)
		}
	}
	slices.Sort(devices)
	if diff := cmp.Diff([]string{"a/gpu-0", "b/gpu-0", "b/gpu-1"}, devices); diff != "" {
		t.Error(diff)
	}
	put(t, e, node("c", "z1", "8"))
	put(t, e, gpus(map[string]int{"c": 1})...)
	settle(t, e)
	if got := where(e.Attempts()); len(got) != 1 || got[waits.Pod.Name] != "c" {
		t.Errorf("with a new device attempts are %v, want the pod that waited on c", got)
	}
}

// Pods that share a claim share its device, so they are on its node.
func TestSharedDevice(t *testing.T) {
	t.Parallel()
	e := start(t, Options{}, node("a", "z1", "2"), node("b", "z2", "2"))
	put(t, e, gpus(map[string]int{"a": 1, "b": 1})...)
	put(t, e, deviceClaim("shared"), pod("p0", "1", claiming("shared")), pod("p1", "1", claiming("shared")), pod("p2", "1", claiming("shared")))
	settle(t, e)
	got := where(e.Attempts())
	if got["p0"] != got["p1"] || len(got["p0"]) != 1 || !strings.Contains(got["p2"], "1 Insufficient cpu") {
		t.Errorf("attempts are %v, want p0 and p1 on one node, and p2 with no room there", got)
	}
}

// A resource that a class of devices stands behind is served by its devices.
func TestExtendedResourceOfDevices(t *testing.T) {
	t.Parallel()
	e := start(t, Options{}, node("a", "z1", "8"), node("b", "z2", "8"))
	objects := gpus(map[string]int{"a": 1, "b": 1})
	name := "example.com/gpu"
	objects[0].(*resourcev1.DeviceClass).Spec.ExtendedResourceName = &name
	put(t, e, objects...)
	for i := range 3 {
		put(t, e, pod(fmt.Sprintf("p%d", i), "1", func(p *corev1.Pod) {
			one := corev1.ResourceList{corev1.ResourceName(name): resource.MustParse("1")}
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceName(name)] = one[corev1.ResourceName(name)]
			p.Spec.Containers[0].Resources.Limits = one
		}))
	}
	settle(t, e)
	got := where(e.Attempts())
	nodes := []string{got["p0"], got["p1"]}
	slices.Sort(nodes)
	if diff := cmp.Diff([]string{"a", "b"}, nodes); diff != "" || !strings.HasPrefix(got["p2"], "0/2 nodes are available: ") {
		t.Errorf("attempts are %v, want the first two pods on a node each and none for the third", got)
	}
}
