package anonymize

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/internal/objectyaml"
)

// Snapshot returns an anonymised copy of the snapshot; the names that it replaces
// are then in n. The order of the objects is that of the new names. These stay:
// numbers, times and amounts; what Kubernetes or everybody's products call things
// (keys of kubernetes.io, kinds, CSI drivers, kinds of hardware); and CEL expressions
// with what they are about.
func Snapshot(s *snapshot.Snapshot, n *Names) (*snapshot.Snapshot, error) {
	out := &snapshot.Snapshot{
		Taken: s.Taken, Cluster: n.name(s.Cluster), Version: s.Version, Anonymized: true, Served: s.Served,
	}
	for _, m := range s.Missing {
		// The API server's words name the user.
		out.Missing = append(out.Missing, snapshot.Missing{Resource: m.Resource, Reason: "it could not be read"})
	}
	for _, scheduler := range s.Schedulers {
		scheduler.Name = n.name(scheduler.Name)
		scheduler.Profiles = mapped(scheduler.Profiles, n.name)
		text, err := n.configurationText(scheduler.Configuration)
		if err != nil {
			return nil, fmt.Errorf("anonymise the configuration of scheduler %s: %w", scheduler.Name, err)
		}
		scheduler.Configuration = text
		out.Schedulers = append(out.Schedulers, scheduler)
	}
	for _, k := range snapshot.Kinds() {
		for o := range k.All(s) {
			if u, ok := o.(*unstructured.Unstructured); ok {
				k.Add(out, &unstructured.Unstructured{Object: n.plainMap("", u.Object)})
				continue
			}
			v := reflect.New(reflect.TypeOf(o)).Elem()
			v.Set(reflect.ValueOf(o))
			n.typed(v)
			k.Add(out, v.Interface().(snapshot.Object))
		}
	}
	out.Sort()
	return out, nil
}

func (n *Names) configurationText(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		return "", err
	}
	data, err := objectyaml.Marshal(n.configuration(value))
	return string(data), err
}
