package snapshot

import (
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
)

// The fields by which a pod is taken apart, as k8s.io/api/core/v1/generated.proto
// numbers them.
const (
	podMetadata protowire.Number = 1
	podSpec     protowire.Number = 2
	podStatus   protowire.Number = 3
	specNode    protowire.Number = 10
)

// podStore is the list of pods. There are far more pods than workloads, and those of
// a workload have the same spec but for the node.
type podStore struct{ store }

func (podStore) decoder() func([]byte, Object) error {
	specs := podSpecs{}
	return func(data []byte, o Object) error { return specs.unmarshal(data, o.(*corev1.Pod)) }
}

// podSpecs are the specs that were decoded, by their bytes without the node.
type podSpecs map[string]*corev1.PodSpec

// unmarshal decodes a pod, whose spec then shares its parts with those of others.
func (s podSpecs) unmarshal(data []byte, pod *corev1.Pod) error {
	var parts [podStatus + 1][]byte
	whole := eachField(data, func(number protowire.Number, value, _ []byte) bool {
		if number > podStatus || value == nil || parts[number] != nil {
			return false
		}
		parts[number] = value
		return true
	})
	if !whole {
		return pod.Unmarshal(data) // which also has the right words for what is damaged
	}
	spec, node, err := s.of(parts[podSpec])
	if err != nil {
		return err
	}
	if err := pod.ObjectMeta.Unmarshal(parts[podMetadata]); err != nil {
		return err
	}
	pod.Spec = *spec
	pod.Spec.NodeName = node
	return pod.Status.Unmarshal(parts[podStatus])
}

// of returns the spec without the node, and the node.
func (s podSpecs) of(data []byte) (spec *corev1.PodSpec, node string, err error) {
	rest := make([]byte, 0, len(data))
	whole := eachField(data, func(number protowire.Number, value, field []byte) bool {
		if number == specNode {
			node = string(value)
			return value != nil
		}
		rest = append(rest, field...)
		return true
	})
	if !whole {
		rest, node = data, ""
	}
	spec, ok := s[string(rest)]
	if !ok {
		spec = &corev1.PodSpec{}
		if err := spec.Unmarshal(rest); err != nil {
			return nil, "", err
		}
		s[string(rest)] = spec
	}
	if !whole {
		node = spec.NodeName
	}
	return spec, node, nil
}

// eachField calls visit with the number of each field of a message, its value, nil
// where it is neither a message nor a string, and all of its bytes. It returns false
// where visit does, or where the message is damaged.
func eachField(data []byte, visit func(number protowire.Number, value, field []byte) bool) bool {
	for len(data) > 0 {
		number, kind, tag := protowire.ConsumeTag(data)
		if tag < 0 {
			return false
		}
		size := protowire.ConsumeFieldValue(number, kind, data[tag:])
		if size < 0 {
			return false
		}
		var value []byte
		if kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(data[tag:])
		}
		if !visit(number, value, data[:tag+size]) {
			return false
		}
		data = data[tag+size:]
	}
	return true
}
