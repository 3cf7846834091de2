package anonymize

import (
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// plainWords mean something to Kubernetes, or are the same in every cluster.
var plainWords = map[string]bool{
	"": true, "true": true, "false": true, "yes": true,
	"default": true, "kube-system": true, "kube-public": true, "kube-node-lease": true,
	corev1.DefaultSchedulerName: true, "system-cluster-critical": true, "system-node-critical": true,
	"linux": true, "windows": true, "amd64": true, "arm64": true,
	"0.0.0.0": true, "::": true,
}

var integer = regexp.MustCompile(`^-?[0-9]+$`)

// plain reports whether a string stays: whole numbers do, because Gt and Lt compare
// them.
func plain(s string) bool { return plainWords[s] || integer.MatchString(s) }

// publicDomains are those of keys that everybody has who uses the product, and that
// some code reads; keys of kubernetes.io, k8s.io and ours stay as well.
var publicDomains = []string{
	"cache",
	"amd.com", "gpu.intel.com", "intel.com", "nvidia.com",
	"karpenter.k8s.aws", "karpenter.sh", "eks.amazonaws.com", "cloud.google.com", "kubernetes.azure.com",
	"topology.disk.csi.azure.com", "topology.ebs.csi.aws.com", "topology.gke.io",
	"ray.io", "serving.knative.dev", "strimzi.io", "training.kubeflow.org", "volcano.sh",
}

// publicKeys have no domain, and are written or read by some controller.
var publicKeys = []string{
	"controller-revision-hash", "controller-uid", "dataset", "gpu-memory-free-gb", "job-name",
	"pod-template-generation", "pod-template-hash", "rollouts-pod-template-hash",
}

// wellKnown reports whether a key stays as it is.
func wellKnown(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	if !ok && slices.Contains(publicKeys, key) {
		return true
	}
	for _, suffix := range []string{"kubernetes.io", "k8s.io", "kubectl-sched.github.io"} {
		if domain == suffix || strings.HasSuffix(domain, "."+suffix) {
			return true
		}
	}
	return ok && slices.Contains(publicDomains, domain)
}

// labelKey returns the key for the key of a label, a taint or a gate. It stays a
// qualified name.
func (n *Names) labelKey(key string) string {
	if wellKnown(key) {
		return key
	}
	return n.name(key)
}

// publicValues are the keys, and domains of keys, whose values say what hardware
// there is.
var publicValues = []string{corev1.LabelOSStable, corev1.LabelArchStable, "nvidia.com", "amd.com", "intel.com", "gpu.intel.com"}

// zoneKeys are those whose values may be several, joined by two underscores, on the
// volumes of replicated disks.
var zoneKeys = []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion}

// value returns the value for the value of a label or taint with the key.
func (n *Names) value(key, value string) string {
	domain, _, _ := strings.Cut(key, "/")
	switch {
	case plain(value), slices.Contains(publicValues, key), slices.Contains(publicValues, domain):
		return value
	case slices.Contains(zoneKeys, key) && strings.Contains(value, "__"):
		zones := strings.Split(value, "__")
		for i := range zones {
			zones[i] = n.value(key, zones[i])
		}
		return strings.Join(zones, "__")
	}
	return n.word(value)
}

func (n *Names) values(key string, values []string) []string {
	return mapped(values, func(v string) string { return n.value(key, v) })
}

// mapped returns the list with each string replaced.
func mapped(list []string, do func(string) string) []string {
	if list == nil {
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = do(s)
	}
	return out
}

func (n *Names) labels(labels map[string]string) map[string]string {
	if labels == nil {
		return nil
	}
	out := make(map[string]string, len(labels))
	for key, value := range labels {
		out[n.labelKey(key)] = n.value(key, value)
	}
	return out
}

// resource returns the name for the name of a resource. What quotas count by is made
// of others: "requests.example.com/gpu", "gold.storageclass.storage.k8s.io/requests.storage".
func (n *Names) resource(name string) string {
	if class, rest, ok := strings.Cut(name, ".storageclass.storage.k8s.io/"); ok {
		return n.name(class) + ".storageclass.storage.k8s.io/" + rest
	}
	if class, ok := strings.CutPrefix(name, resourcev1.ResourceDeviceClassPrefix); ok {
		return resourcev1.ResourceDeviceClassPrefix + n.name(class)
	}
	if strings.HasPrefix(name, "count/") || !strings.Contains(name, "/") {
		return name
	}
	for _, prefix := range []string{"requests.", "limits."} {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return prefix + n.labelKey(rest)
		}
	}
	return n.labelKey(name)
}

// image returns the reference for the reference of an image. One without a tag has
// the tag "latest", as ImageLocality has it; asked says that a pod asks for it so.
func (n *Names) image(ref string, asked bool) string {
	if ref == "" {
		return ""
	}
	if strings.LastIndex(ref, ":") <= strings.LastIndex(ref, "/") {
		if !asked {
			return n.word(ref)
		}
		ref += ":latest"
	}
	return n.word(ref) + ":v"
}

// dropped are annotations that are made of names, and that no simulation reads.
var dropped = []string{"kubectl-sched.github.io/placement"}

func (n *Names) annotations(annotations map[string]string) map[string]string {
	if annotations == nil {
		return nil
	}
	out := make(map[string]string, len(annotations))
	for key, value := range annotations {
		switch {
		case slices.Contains(dropped, key):
		case key == corev1.MigratedPluginsAnnotationKey:
			out[key] = value
		default:
			out[n.labelKey(key)] = n.annotation(value)
		}
	}
	return out
}

// annotation returns the value for that of an annotation, which is a list of names,
// of amounts, or of names with amounts ("imagenet=120Gi, vocab"), or a condition in
// JSON.
func (n *Names) annotation(value string) string {
	if trimmed := strings.TrimSpace(value); strings.HasPrefix(trimmed, "{") {
		return n.json(trimmed)
	}
	parts := strings.Split(value, ",")
	for i, part := range parts {
		space := part[:len(part)-len(strings.TrimLeft(part, " "))]
		name, size, sized := strings.Cut(strings.TrimSpace(part), "=")
		if !amount(name) {
			name = n.name(name)
		}
		if sized {
			if !amount(size) {
				size = n.name(size)
			}
			name += "=" + size
		}
		parts[i] = space + name
	}
	return strings.Join(parts, ",")
}

// amount reports whether a text is a quantity or a duration, which says nothing of
// whose it is.
func amount(text string) bool {
	if _, err := resource.ParseQuantity(text); err == nil {
		return true
	}
	_, err := time.ParseDuration(text)
	return err == nil
}
