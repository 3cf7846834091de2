package capability

// PodGroupForm is a form in which a cluster knows gangs.
type PodGroupForm string

// The forms.
const (
	// PodGroupAPI is the API's own: PodGroup of scheduling.k8s.io/v1beta1 and
	// spec.schedulingGroup of pods. Both need the feature gate GenericWorkload of the
	// API server, which otherwise drops the field without a word.
	PodGroupAPI PodGroupForm = "api"
	// PodGroupCRD is the PodGroup of scheduling.x-k8s.io/v1alpha1, named by a label.
	PodGroupCRD PodGroupForm = "crd"
	// PodGroupLabels are labels alone, which need nothing of the cluster.
	PodGroupLabels PodGroupForm = "labels"
)
