package args

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// GPUMemoryArgs are the arguments of the plugin GPUMemory.
type GPUMemoryArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Prefer is which device, and so which node, a pod gets among those that it
	// fits on. Default most-free.
	Prefer DevicePreference `json:"prefer"`
	// FreeLabels are labels by which a node says how much memory its one device
	// has free, for nodes that say nothing better. Default "gpu-memory-free-gb" in
	// GB. The first that a node has counts.
	FreeLabels []FreeLabel `json:"freeLabels"`
	// WholeDeviceResources are the extended resources by which other pods take
	// whole devices, whose index nobody tells. Where a pod that asks for no GPU
	// memory holds one, the node takes no pod that does. Default "nvidia.com/gpu".
	WholeDeviceResources []string `json:"wholeDeviceResources"`
}

// DevicePreference is which device a pod gets among those that it fits on.
type DevicePreference string

// The preferences.
const (
	// MostFree takes the device with the most memory free.
	MostFree DevicePreference = "most-free"
	// BestFit takes the device with the least memory that still suffices, which
	// leaves large pieces for large pods.
	BestFit DevicePreference = "best-fit"
)

// FreeLabel is a node label with an amount of memory that is free.
type FreeLabel struct {
	// Key is the key of the label.
	Key string `json:"key"`
	// Unit is what the label's whole number counts.
	Unit MemoryUnit `json:"unit"`
}

// MemoryUnit is the unit of a whole number. It is always said, never guessed from
// the size of the number.
type MemoryUnit string

// The units.
const (
	MB  MemoryUnit = "MB"
	MiB MemoryUnit = "MiB"
	GB  MemoryUnit = "GB"
	GiB MemoryUnit = "GiB"
)

// Bytes is how many bytes one of the unit is; 0 for a unit that is not known.
func (u MemoryUnit) Bytes() int64 {
	switch u {
	case MB:
		return 1e6
	case MiB:
		return 1 << 20
	case GB:
		return 1e9
	case GiB:
		return 1 << 30
	}
	return 0
}

// What pods and nodes say about GPU memory.
const (
	// PodGPUMemory is the annotation with the memory that a pod needs on each of
	// its devices, a quantity with a unit ("12Gi"). A pod without it needs none.
	PodGPUMemory = "kubectl-sched.github.io/gpu-memory"
	// PodGPUDevices is the annotation with the number of devices that the pod needs
	// that much memory on; 1 where it is left out.
	PodGPUDevices = "kubectl-sched.github.io/gpu-devices"
	// PodGPUIndex is the annotation that the plugin writes before it binds a pod:
	// the indexes of its devices, as NVIDIA_VISIBLE_DEVICES has them ("0", "0,3").
	PodGPUIndex = "kubectl-sched.github.io/gpu-index"
	// VisibleDevices is the environment variable by which a container is given
	// devices (NVIDIA Container Toolkit); PodGPUIndex is its value, by the downward
	// API.
	VisibleDevices = "NVIDIA_VISIBLE_DEVICES"
	// NodeGPUMemory is the node annotation with the memory of each device, in the
	// order of their indexes ("24Gi,24Gi,80Gi"). It outranks every other source.
	NodeGPUMemory = "kubectl-sched.github.io/gpu-memory"
	// NodeGFDMemory and NodeGFDCount are the labels of NVIDIA's GPU Feature
	// Discovery: the memory of one device in MiB, and how many there are. See
	// https://github.com/NVIDIA/k8s-device-plugin/tree/main/docs/gpu-feature-discovery.
	NodeGFDMemory = "nvidia.com/gpu.memory"
	NodeGFDCount  = "nvidia.com/gpu.count"
	// NodeGFDProduct is the label with the product's name, which has "-MIG-" in it
	// where the devices are slices of a GPU.
	NodeGFDProduct = "nvidia.com/gpu.product"
)

// MaxGPUDevices is how many devices of a node are told apart, far more than
// any machine has. A node that says it has more takes no pod.
const MaxGPUDevices = 64

// PluginName returns GPUMemory.
func (*GPUMemoryArgs) PluginName() string { return GPUMemory }

func (a *GPUMemoryArgs) setDefaults() {
	a.Prefer = MostFree
	a.FreeLabels = []FreeLabel{{Key: "gpu-memory-free-gb", Unit: GB}}
	a.WholeDeviceResources = []string{"nvidia.com/gpu"}
}

func (a *GPUMemoryArgs) validate() problems {
	found := validateType(a.TypeMeta, a.PluginName())
	found = append(found, oneOf(field.NewPath("prefer"), a.Prefer, MostFree, BestFit)...)
	for i, label := range a.FreeLabels {
		path := field.NewPath("freeLabels").Index(i)
		found = append(found, labelKey(path.Child("key"), label.Key)...)
		found = append(found, oneOf(path.Child("unit"), label.Unit, MB, MiB, GB, GiB)...)
		if slices.IndexFunc(a.FreeLabels, func(l FreeLabel) bool { return l.Key == label.Key }) < i {
			found = append(found, invalid(path.Child("key"), label.Key, "is there twice; keep one"))
		}
	}
	for i, name := range a.WholeDeviceResources {
		path := field.NewPath("wholeDeviceResources").Index(i)
		if said := labelKey(path, name); len(said) > 0 {
			found = append(found, invalid(path, name, fmt.Sprintf("is no name of an extended resource; use one such as %q", "nvidia.com/gpu")))
		}
	}
	return found
}
