package policy

import (
	"encoding/json"
	"fmt"
)

// Gates holds pods back until all that it says has come to pass.
type Gates struct {
	Peers *Peers `json:"peers,omitempty"`
	// Object are the objects that are waited for, by names for people.
	Object map[string]AwaitedObject `json:"object,omitempty"`
	// Quota is the name of a ResourceQuota, or empty.
	Quota    string `json:"quota,omitempty"`
	Approval bool   `json:"approval,omitempty"`
	// NotBefore is a moment as RFC 3339 writes it, or empty.
	NotBefore string  `json:"notBefore,omitempty"`
	Window    *Window `json:"window,omitempty"`
}

// Peers are other pods that are waited for.
type Peers struct {
	Labels map[string]Values `json:"labels"`
	Min    int               `json:"min"`
	Ready  bool              `json:"ready,omitempty"`
}

// AwaitedObject is an object, or a value of it, that is waited for.
type AwaitedObject struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	// Path is a JSONPath in braces, or empty.
	Path string `json:"path,omitempty"`
	// Value is nil where any value will do.
	Value *string `json:"value,omitempty"`
}

// Window is a time of the week; see #Gates in the schema.
type Window struct {
	Zone string   `json:"zone"`
	Days []string `json:"days,omitempty"`
	From string   `json:"from"`
	To   string   `json:"to"`
}

// Cache prefers nodes that have the pods' data warm.
type Cache struct {
	Datasets map[string]Dataset `json:"datasets"`
	// PenaltyPerPod is nil where the document does not say.
	PenaltyPerPod *int `json:"penaltyPerPod,omitempty"`
	// WarmBy is WarmByLabel or empty.
	WarmBy string `json:"warmBy,omitempty"`
}

// WarmByLabel promises that a node says by its label alone what it has warm.
const WarmByLabel = "label"

// Dataset is what pods read.
type Dataset struct {
	// Size is a quantity of bytes, or empty.
	Size string `json:"size,omitempty"`
}

// GPUMemory counts the memory of GPUs device by device. Its sizes are quantities
// of bytes, or empty.
type GPUMemory struct {
	PerDevice string `json:"perDevice,omitempty"`
	// Devices is 0 where the document does not say.
	Devices int `json:"devices,omitempty"`
	// Prefer is empty where the document does not say.
	Prefer string `json:"prefer,omitempty"`
	// Containers are nil for all that do not choose for themselves.
	Containers []string `json:"containers,omitempty"`
	MinDevice  string   `json:"minDevice,omitempty"`
}

// Gang places pods together or not at all.
type Gang struct {
	Min GangMin `json:"min"`
	// Within is the name of a topology, or empty.
	Within string `json:"within,omitempty"`
	// Timeout and OnPartial are empty where the document does not say.
	Timeout   string `json:"timeout,omitempty"`
	OnPartial string `json:"onPartial,omitempty"`
}

// GangMin is how many pods must find a place at once; 0 for all of the workload.
type GangMin int

const gangAll = "all"

// UnmarshalJSON accepts "all" or a number.
func (m *GangMin) UnmarshalJSON(data []byte) error {
	if string(data) == `"`+gangAll+`"` {
		*m = 0
		return nil
	}
	if err := json.Unmarshal(data, (*int)(m)); err != nil {
		return fmt.Errorf("min: %w", err)
	}
	return nil
}

// MarshalJSON is the inverse of UnmarshalJSON.
func (m GangMin) MarshalJSON() ([]byte, error) {
	if m == 0 {
		return json.Marshal(gangAll)
	}
	return json.Marshal(int(m))
}
