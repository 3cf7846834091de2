package args

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// LeastDeviceMemory is the fewest bytes of a device that a pod can ask for, or a
// node can have. Less is a number whose
// unit was forgotten: "12" is twelve bytes.
const LeastDeviceMemory = 1 << 20

// DeviceMemory returns how many bytes of a device's memory the text asks for, as
// PodGPUMemory has it. The error says what is wrong and how it is written.
func DeviceMemory(text string) (int64, error) {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return 0, fmt.Errorf("is %q, which is no quantity; write one such as \"12Gi\"", text)
	}
	if q.CmpInt64(LeastDeviceMemory) < 0 {
		return 0, fmt.Errorf("is %q, less than 1Mi; write a quantity with its unit, such as \"12Gi\"", text)
	}
	if q.CmpInt64(math.MaxInt64) >= 0 {
		return 0, fmt.Errorf("is %q, more than any device has; write a quantity such as \"12Gi\"", text)
	}
	return q.Value(), nil
}

// MaxDatasets is how many datasets a pod may name: as many as CacheLocality can
// mark without an allocation a node.
const MaxDatasets = 32

// DatasetSize returns how many bytes the text says a dataset has.
func DatasetSize(text string) (int64, error) {
	q, err := resource.ParseQuantity(text)
	if err != nil || q.Value() <= 0 {
		return 0, fmt.Errorf("%q is no quantity above zero; write one such as \"120Gi\"", text)
	}
	return q.Value(), nil
}

// DatasetName says why a text cannot be the name of a dataset in PodDatasets, nil
// if it can.
func DatasetName(text string) error {
	if text == "" {
		return errors.New("a dataset has no name")
	}
	if strings.ContainsAny(text, ",= \t\r\n") {
		return fmt.Errorf("%q cannot be the name of a dataset, which has no spaces, commas and \"=\"", text)
	}
	return nil
}
