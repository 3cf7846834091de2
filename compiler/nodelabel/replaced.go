package nodelabel

import corev1 "k8s.io/api/core/v1"

// replaced maps the labels that went out of use to those in their place.
var replaced = map[string]string{
	corev1.LabelFailureDomainBetaZone:   corev1.LabelTopologyZone,
	corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
	corev1.LabelInstanceType:            corev1.LabelInstanceTypeStable,
	"beta.kubernetes.io/arch":           corev1.LabelArchStable,
	"beta.kubernetes.io/os":             corev1.LabelOSStable,
	"node-role.kubernetes.io/master":    "node-role.kubernetes.io/control-plane",
}

// Replacement returns the label, or the key of a taint, that took the place of
// one that went out of use; empty for any other.
func Replacement(key string) string { return replaced[key] }
