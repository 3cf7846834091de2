package gpumemory

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
)

// need is what a pod asks for: so many bytes on each of so many devices.
type need struct {
	Bytes   int64
	Devices int
}

// Clone returns n itself, which nothing changes once it is there.
func (n *need) Clone() fwk.StateData { return n }

// asks reports whether the pod asks for GPU memory, without reading how much.
func asks(pod *v1.Pod) bool {
	_, ok := pod.Annotations[args.PodGPUMemory]
	return ok
}

// read returns what the pod asks for, nil if it asks for none. The error says
// which annotation is wrong and how it is written.
func read(pod *v1.Pod) (*need, error) {
	text, ok := pod.Annotations[args.PodGPUMemory]
	if !ok {
		if _, ok := pod.Annotations[args.PodGPUDevices]; ok {
			return nil, fmt.Errorf("pod has the annotation %q and not %q; say how much memory it needs on each device", args.PodGPUDevices, args.PodGPUMemory)
		}
		return nil, nil
	}
	bytes, err := args.DeviceMemory(text)
	if err != nil {
		return nil, fmt.Errorf("annotation %q %w", args.PodGPUMemory, err)
	}
	n := &need{Bytes: bytes, Devices: 1}
	if text, ok := pod.Annotations[args.PodGPUDevices]; ok {
		n.Devices, err = strconv.Atoi(text)
		if err != nil || n.Devices < 1 || n.Devices > args.MaxGPUDevices {
			return nil, fmt.Errorf("annotation %q is %q; write a whole number from 1 to %d", args.PodGPUDevices, text, args.MaxGPUDevices)
		}
	}
	return n, nil
}

// devices is a set of device indexes of a node.
type devices uint64

// all are the first n devices.
func all(n int) devices {
	if n >= args.MaxGPUDevices {
		return ^devices(0)
	}
	return 1<<n - 1
}

func (d devices) has(i int) bool     { return d>>i&1 == 1 }
func (d devices) with(i int) devices { return d | 1<<i }
func (d devices) count() int         { return bits.OnesCount64(uint64(d)) }

// String is the annotation's form: "0,3".
func (d devices) String() string {
	var words []string
	for i := range args.MaxGPUDevices {
		if d.has(i) {
			words = append(words, strconv.Itoa(i))
		}
	}
	return strings.Join(words, ",")
}

// parseDevices reads the annotation's form. It reports whether text is one.
func parseDevices(text string) (devices, bool) {
	var d devices
	for rest, more := text, true; more; {
		var word string
		word, rest, more = strings.Cut(rest, ",")
		i, err := strconv.Atoi(word)
		if err != nil || i < 0 || i >= args.MaxGPUDevices || d.has(i) {
			return 0, false
		}
		d = d.with(i)
	}
	return d, true
}
