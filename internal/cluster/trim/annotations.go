package trim

import (
	"slices"
	"strings"
)

// annotationDomains are the prefixes of the annotations that are kept: those of
// ours, of gangs, of the binding of volumes, and of the controllers that choose
// which pods to end.
var annotationDomains = []string{
	"scheduling.x-k8s.io",
	"pod-group.scheduling.sigs.k8s.io",
	"pv.kubernetes.io",
	"deployment.kubernetes.io",
	"cache",
}

// annotationKeys are kept besides. They are read by VolumeBinding and
// NodeVolumeLimits, by the admission of claims, by the translation of volumes to
// CSI, by DynamicResources, by the ReplicaSet controller, and by whoever drains a
// node.
var annotationKeys = []string{
	"controller.kubernetes.io/pod-deletion-cost",
	"dataset",
	"kubernetes.io/config.mirror",
	"resource.kubernetes.io/extended-resource-claim",
	"resource.kubernetes.io/pod-claim-name",
	"storage.alpha.kubernetes.io/migrated-plugins",
	"storageclass.kubernetes.io/is-default-class",
	"volume.beta.kubernetes.io/storage-class",
	"volume.kubernetes.io/selected-node",
}

// ownDomain is that of our annotations, and what the domains of the rest of ours
// end in.
const ownDomain = "kubectl-sched.github.io"

// KeepsAnnotation reports whether an annotation with the key is kept.
func KeepsAnnotation(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	if ok && (domain == ownDomain || strings.HasSuffix(domain, "."+ownDomain) || slices.Contains(annotationDomains, domain)) {
		return true
	}
	return slices.Contains(annotationKeys, key)
}

func (keep Keep) has(key string) bool { return KeepsAnnotation(key) || keep != nil && keep(key) }

func (keep Keep) annotations(all map[string]string) map[string]string {
	var kept map[string]string
	for key, value := range all {
		if keep.has(key) {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
		}
	}
	return kept
}
