package apply

import (
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
)

// Comparison is one object as it is and as it would be, for a diff program. An
// object that is not there is nil.
type Comparison struct {
	// Name is a file name, as kubectl diff makes them: group.version.kind and the
	// object's names, with dots between.
	Name          string
	Before, After map[string]any
}

// Comparisons returns every object that would change, in the order of the
// phases, without what differs after each write anyway (generation,
// resourceVersion, managedFields) and without the status.
func (c *ChangeSet) Comparisons() ([]Comparison, error) {
	var all []Comparison
	for _, class := range c.Classes {
		if class.Action == Keep {
			continue
		}
		comparison := Comparison{Name: "scheduling.k8s.io.v1.PriorityClass.." + class.Name}
		var err error
		if class.Before != nil {
			if comparison.Before, err = readable(class.Before, "scheduling.k8s.io/v1", "PriorityClass"); err != nil {
				return nil, err
			}
		}
		if class.Action != Delete {
			if comparison.After, err = readable(class.After, "scheduling.k8s.io/v1", "PriorityClass"); err != nil {
				return nil, err
			}
			if class.Before != nil {
				comparison.After["metadata"] = labelled(comparison.Before["metadata"], class.After.Labels)
			}
		}
		all = append(all, comparison)
	}
	for _, group := range byNode(c.Nodes) {
		before := group[0].Before
		after := before
		for _, change := range group {
			after = withoutTaint(after, change.Taint)
			if change.Action != Delete {
				after = append(after, change.Taint)
			}
		}
		all = append(all, Comparison{
			Name:   "v1.Node.." + group[0].Name,
			Before: nodeObject(group[0].Name, before),
			After:  nodeObject(group[0].Name, after),
		})
	}
	for i := range c.Workloads {
		change := &c.Workloads[i]
		if change.Action != Update && change.Action != Withdraw {
			continue
		}
		w := change.Workload
		version := w.Version
		if w.Group != "" {
			version = w.Group + "." + w.Version
		}
		before, after := quiet(raw(w)), quiet(change.After)
		if len(difference(before, after)) > 0 {
			all = append(all, Comparison{fmt.Sprintf("%s.%s.%s.%s", version, w.Kind, w.Namespace, w.Name), before, after})
			continue
		}
		// Only our own books change: then they are what there is to see.
		all = append(all, Comparison{fmt.Sprintf("%s.%s.%s.%s", version, w.Kind, w.Namespace, w.Name), pruned(raw(w)), pruned(change.After)})
	}
	return all, nil
}

// labelled returns the metadata with other labels.
func labelled(metadata any, labels map[string]string) any {
	m, ok := metadata.(map[string]any)
	if !ok {
		return metadata
	}
	m = maps.Clone(m)
	m["labels"] = plain(labels)
	return m
}

func nodeObject(name string, taints any) map[string]any {
	object := map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": name}}
	if list, _ := plain(taints).([]any); len(list) > 0 {
		object["spec"] = map[string]any{"taints": list}
	}
	return object
}

func readable(o any, apiVersion, kind string) (map[string]any, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("show %s: %w", kind, err)
	}
	object["apiVersion"], object["kind"] = apiVersion, kind
	return pruned(object), nil
}

// pruned returns a copy of the object without what every write changes.
func pruned(object map[string]any) map[string]any {
	object = maps.Clone(object)
	delete(object, "status")
	metadata, _ := object["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	for _, key := range []string{"managedFields", "generation", "resourceVersion"} {
		delete(metadata, key)
	}
	if metadata["creationTimestamp"] == nil {
		delete(metadata, "creationTimestamp")
	}
	object["metadata"] = metadata
	return object
}

// quiet is pruned without our annotation too: it repeats, in JSON, what the
// diff of the fields shows.
func quiet(object map[string]any) map[string]any {
	object = pruned(object)
	u := &unstructured.Unstructured{Object: object}
	annotations := maps.Clone(u.GetAnnotations())
	for key := range annotations {
		if key == ownership.Annotation || strings.HasPrefix(key, "deployment.kubernetes.io/") {
			delete(annotations, key)
		}
	}
	u.SetAnnotations(annotations)
	return object
}
