package apply

import (
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
	"github.com/kubectl-sched/kubectl-sched/policy"
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
	for _, o := range c.Objects {
		if o.Action != Keep {
			all = append(all, o.comparison())
		}
	}
	for _, group := range byNode(c.Nodes) {
		shown, err := nodeComparison(c.Set, group)
		if err != nil {
			return nil, err
		}
		all = append(all, shown)
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

// comparison shows an object of our making. What is made anew, or was not tried,
// has none of what a server writes into the metadata.
func (c ObjectChange) comparison() Comparison {
	shown := Comparison{Name: fmt.Sprintf("%s.%s.%s.%s.%s", c.Kind.Group, c.Kind.Version, c.Kind.Kind, c.Namespace, c.Name)}
	if c.Before != nil {
		shown.Before = pruned(c.Before)
	}
	if c.Action == Delete {
		return shown
	}
	shown.After = pruned(c.After)
	metadata, _ := shown.After["metadata"].(map[string]any)
	for _, key := range []string{"uid", "creationTimestamp"} {
		// A dry run makes them up.
		delete(metadata, key)
		if value, ok := valueAt(c.Before, policy.Pointer("metadata", key)); ok {
			metadata[key] = value
		}
	}
	return shown
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
	if len(annotations) == 0 {
		// An empty map would show as one.
		annotations = nil
	}
	u.SetAnnotations(annotations)
	return object
}
