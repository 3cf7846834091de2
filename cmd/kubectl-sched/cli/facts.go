package cli

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// addManifestFacts adds what the manifests themselves say of the cluster that
// they are for: the labels of their namespaces, volumes that are bound to
// claims, priority classes, and Karpenter's NodePools. What a manifest says stands over what the
// cluster says now, since it is what is about to be. The maps of caps are not
// changed.
func addManifestFacts(caps capability.Capabilities, objects []*workload.Object) (capability.Capabilities, diag.Findings) {
	facts := &manifestFacts{
		namespaces: map[string]map[string]string{}, classes: map[string]int32{},
		volumes: map[string]corev1.PersistentVolume{}, claims: map[string]string{},
	}
	var findings diag.Findings
	for _, o := range objects {
		if err := facts.add(o); err != nil {
			findings = append(findings, diag.Finding{
				Rule: "workload/malformed", Severity: diag.Error, Subject: o.Kind + " " + o.Name,
				Range: o.Source.At(), Message: err.Error(),
			})
		}
	}
	if len(facts.namespaces) > 0 {
		caps.Namespaces = overlaid(caps.Namespaces, facts.namespaces)
	}
	// Without the cluster the classes that are not among the manifests are not
	// known to be missing.
	if caps.PriorityClasses != nil {
		caps.PriorityClasses = overlaid(caps.PriorityClasses, facts.classes)
	}
	if bound := facts.bound(); len(bound) > 0 {
		caps.Volumes = overlaid(caps.Volumes, bound)
	}
	if len(facts.nodePools) > 0 {
		caps.NodePools, caps.NodePoolsKnown = capability.WithNodePools(caps.NodePools, facts.nodePools), true
	}
	return caps, findings
}

// overlaid returns a copy of below with the entries of above.
func overlaid[V any](below, above map[string]V) map[string]V {
	m := maps.Clone(below)
	if m == nil {
		m = map[string]V{}
	}
	maps.Copy(m, above)
	return m
}

type manifestFacts struct {
	namespaces map[string]map[string]string
	classes    map[string]int32
	volumes    map[string]corev1.PersistentVolume
	claims     map[string]string // "namespace/claim" → the volume that it names
	nodePools  []capability.NodePool
}

func (f *manifestFacts) add(o *workload.Object) error {
	switch o.Group + "/" + o.Kind {
	case "/Namespace":
		n, err := decoded[corev1.Namespace](o)
		// The API server adds this label to every namespace.
		f.namespaces[o.Name] = overlaid(map[string]string{corev1.LabelMetadataName: o.Name}, n.Labels)
		return err
	case "/PersistentVolume":
		v, err := decoded[corev1.PersistentVolume](o)
		f.volumes[o.Name] = v
		return err
	case "/PersistentVolumeClaim":
		c, err := decoded[corev1.PersistentVolumeClaim](o)
		f.claims[o.Namespace+"/"+o.Name] = c.Spec.VolumeName
		return err
	case "scheduling.k8s.io/PriorityClass":
		c, err := decoded[schedulingv1.PriorityClass](o)
		f.classes[o.Name] = c.Value
		return err
	case capability.NodePoolGroup + "/" + capability.NodePoolKind:
		p, err := capability.ReadNodePool(o.Object)
		p.Source = o.Source.At()
		f.nodePools = append(f.nodePools, p)
		return err
	}
	return nil
}

// bound maps the claims to the volumes that are theirs, whichever of the two
// says so.
func (f *manifestFacts) bound() map[string]capability.Volume {
	bound := map[string]capability.Volume{}
	affinity := func(v corev1.PersistentVolume) capability.Volume {
		return capability.Volume{Name: v.Name, Affinity: v.Spec.NodeAffinity}
	}
	for _, v := range f.volumes {
		if claim := v.Spec.ClaimRef; claim != nil {
			bound[claim.Namespace+"/"+claim.Name] = affinity(v)
		}
	}
	for claim, name := range f.claims {
		if v, ok := f.volumes[name]; ok {
			bound[claim] = affinity(v)
		}
	}
	return bound
}

func decoded[T any](o *workload.Object) (T, error) {
	var typed T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &typed); err != nil {
		return typed, fmt.Errorf("the manifest does not fit its kind: %w", err)
	}
	return typed, nil
}
