package args

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// CacheLocalityArgs are the arguments of the plugin CacheLocality.
//
// A pod names its datasets by a label, whose value is the one name, or by an
// annotation, whose value is a list: "imagenet, vocab", or with sizes
// "imagenet=120Gi, vocab=2Gi". A node says by the same forms which datasets it
// has warm; a size on the node says how much of the dataset is.
type CacheLocalityArgs struct {
	metav1.TypeMeta `json:",inline"`

	// DatasetKeys are the keys of pod labels and annotations that name datasets.
	// What several of them name adds up. Default PodDatasets and "dataset".
	DatasetKeys []string `json:"datasetKeys"`
	// WarmKeys are the keys of node labels and annotations that name the datasets
	// that the node has warm. Default "cache/warm-for".
	WarmKeys []string `json:"warmKeys"`
	// DrainedKeys are the keys of node labels that say, by any value but "false",
	// that the node is draining its cache: pods that name a dataset are kept off.
	// Default "cache/drained".
	DrainedKeys []string `json:"drainedKeys"`
	// PenaltyPerPod is how many of the 100 points of a wholly warm node are lost
	// for each pod with datasets that was placed there since what the node says it
	// has warm last changed; 0 to 100, default 5. No node falls below a cold one.
	PenaltyPerPod int64 `json:"penaltyPerPod"`
}

// PodDatasets is the key by which a pod names its datasets where the project
// writes the label or annotation itself.
const PodDatasets = "kubectl-sched.github.io/datasets"

// PluginName returns CacheLocality.
func (*CacheLocalityArgs) PluginName() string { return CacheLocality }

func (a *CacheLocalityArgs) setDefaults() {
	a.DatasetKeys = []string{PodDatasets, "dataset"}
	a.WarmKeys = []string{"cache/warm-for"}
	a.DrainedKeys = []string{"cache/drained"}
	a.PenaltyPerPod = 5
}

func (a *CacheLocalityArgs) validate() problems {
	found := validateType(a.TypeMeta, a.PluginName())
	datasets := field.NewPath("datasetKeys")
	if len(a.DatasetKeys) == 0 {
		found = append(found, field.Required(datasets, "is empty, so that no pod can name a dataset; name at least one key"))
	}
	found = append(found, keyList(datasets, a.DatasetKeys)...)
	found = append(found, keyList(field.NewPath("warmKeys"), a.WarmKeys)...)
	found = append(found, keyList(field.NewPath("drainedKeys"), a.DrainedKeys)...)
	return append(found, within(field.NewPath("penaltyPerPod"), a.PenaltyPerPod, 0, 100)...)
}
