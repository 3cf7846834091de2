package trim

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// untypedFields lists what is kept, besides the metadata, of kinds that have no Go
// type here.
var untypedFields = map[schema.GroupKind][]string{
	{Group: "scheduling.x-k8s.io", Kind: "PodGroup"}:     {"spec.{minMember,minResources,scheduleTimeoutSeconds,minTaskMember,queue,priorityClassName}", "status.{phase,scheduled,running,succeeded,failed,occupiedBy,scheduleStartTime}"},
	{Group: "scheduling.x-k8s.io", Kind: "ElasticQuota"}: {"spec.{min,max}", "status.used"},
	{Group: "metrics.k8s.io", Kind: "NodeMetrics"}:       {"timestamp", "window", "usage"},
	{Group: "karpenter.sh", Kind: "NodePool"}: {
		"spec.{weight,limits,replicas,template.{metadata.labels,spec.{taints,startupTaints,requirements,nodeClassRef}}}",
		"status.{resources,conditions.{type,status,reason}}",
	},
}

// Untyped is Object for a kind without a Go type that scheduling reads itself: it
// returns what is kept, and an error for other kinds.
func Untyped(u *unstructured.Unstructured, keep Keep) (*unstructured.Unstructured, error) {
	paths, ok := untypedFields[u.GroupVersionKind().GroupKind()]
	if !ok {
		return nil, fmt.Errorf("trim a %s: there is no list of the fields that scheduling reads of it", u.GroupVersionKind().GroupKind())
	}
	t := tree{"apiVersion": {}, "kind": {}}
	for _, path := range append(metadataFields(), paths...) {
		t.add(path)
	}
	kept := &unstructured.Unstructured{Object: t.only(u.Object).(map[string]any)}
	keep.inPlace(kept)
	return kept, nil
}

// only returns a copy of a plain value with what is on the paths. In a list, the
// paths lead through each element.
func (t tree) only(value any) any {
	if len(t) == 0 {
		return runtime.DeepCopyJSONValue(value)
	}
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, below := range t {
			if v, ok := value[key]; ok {
				out[key] = below.only(v)
			}
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, v := range value {
			out[i] = t.only(v)
		}
		return out
	}
	return nil // not what the kind has there
}

func (keep Keep) inPlace(u *unstructured.Unstructured) {
	kept := keep.annotations(u.GetAnnotations())
	if kept == nil {
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations")
		return
	}
	u.SetAnnotations(kept)
}

// scaleFields are kept wherever they stand around a pod template: how many pods
// there are to be, whether now, and what tells the templates of one object apart.
var scaleFields = map[string]bool{
	"name": true, "groupName": true,
	"replicas": true, "minReplicas": true, "maxReplicas": true, "numOfHosts": true, "size": true,
	"parallelism": true, "completions": true, "minAvailable": true, "minMember": true, "suspend": true, "paused": true,
}

// Workload returns what is kept of a workload of another kind: how many pods it
// wants, its selector, and its pod templates, trimmed as those of pods are. A kind
// that is not in the table (nil for the built-in one) is an error.
func Workload(u *unstructured.Unstructured, kinds *workload.Kinds, keep Keep) (*unstructured.Unstructured, error) {
	w, findings, ok := workload.FromObject(u.Object, workload.Options{Kinds: kinds}, workload.Source{Live: true})
	if findings.HasErrors() {
		return nil, findings
	}
	if !ok || w == nil {
		return nil, fmt.Errorf("trim a %s: it is no kind of workload that is known", u.GroupVersionKind().GroupKind())
	}
	root := &branch{}
	for i := range w.Templates {
		t := &w.Templates[i]
		for field, path := range t.Paths {
			if field == workload.TemplateAnnotations {
				root.at(path).leaf = keep.plain
				continue
			}
			root.at(path).leaf = whole
		}
		if t.PodSpec != nil {
			root.at(t.PodSpec).leaf = podSpecOf
		}
	}
	root.at(workload.Path{"spec", "selector"}).leaf = whole
	kept, err := root.only(u.Object)
	if err != nil {
		return nil, fmt.Errorf("trim %s: %w", w.Ref(), err)
	}
	out := &unstructured.Unstructured{Object: kept.(map[string]any)}
	head := tree{"apiVersion": {}, "kind": {}}
	for _, path := range metadataFields() {
		head.add(path)
	}
	for key, value := range head.only(u.Object).(map[string]any) {
		out.Object[key] = value
	}
	keep.inPlace(out)
	return out, nil
}

// branch is a step of the paths to what is kept; leaf, where it is set, makes of
// the value there what is kept of it.
type branch struct {
	leaf func(any) (any, error)
	next map[any]*branch
}

// at returns the branch at the end of the path.
func (b *branch) at(path workload.Path) *branch {
	for _, step := range path {
		if b.next == nil {
			b.next = map[any]*branch{}
		}
		if b.next[step] == nil {
			b.next[step] = &branch{}
		}
		b = b.next[step]
	}
	return b
}

func (b *branch) only(value any) (any, error) {
	if b.leaf != nil {
		return b.leaf(value)
	}
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, v := range value {
			below := b.next[key]
			switch {
			case below != nil:
				kept, err := below.only(v)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", key, err)
				}
				out[key] = kept
			case scaleFields[key] && isScalar(v):
				out[key] = v
			}
		}
		return out, nil
	case []any:
		out := make([]any, len(value))
		for i, v := range value {
			below := b.next[i]
			if below == nil {
				below = &branch{}
			}
			kept, err := below.only(v)
			if err != nil {
				return nil, err
			}
			out[i] = kept
		}
		return out, nil
	}
	return nil, nil
}

func isScalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

func whole(v any) (any, error) { return runtime.DeepCopyJSONValue(v), nil }

func (keep Keep) plain(v any) (any, error) {
	out := map[string]any{}
	all, _ := v.(map[string]any)
	for key, value := range all {
		if keep.has(key) {
			out[key] = value
		}
	}
	return out, nil
}

// podSpecOf trims a pod spec in plain values as the typed ones are. What the kind
// adds to a pod spec of its own is gone with it.
func podSpecOf(v any) (any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var spec corev1.PodSpec
	if err := json.Unmarshal(data, &spec); err != nil {
		return nil, fmt.Errorf("this is no pod spec: %w", err)
	}
	PodSpec(&spec)
	return runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
}
