package report

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-sched/kubectl-sched/internal/install"
	"github.com/kubectl-sched/kubectl-sched/internal/objectyaml"
)

// Scheduler writes how the bundled scheduler does.
func Scheduler(w io.Writer, format Format, s *install.Status, o Options) error {
	if format != Text {
		return documents(w, format, "SchedulerStatus", map[string]any{"scheduler": s})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "image:     %s\nnamespace: %s\nreplicas:  %d of %d ready", s.Image, s.Namespace, s.Ready, s.Replicas)
	if !s.RolledOut {
		fmt.Fprintf(&b, "; %s", s.Missing)
	}
	leader := "none"
	if s.Leader != "" {
		leader = fmt.Sprintf("%s, renewed %s ago", s.Leader, age(s.Renewed, o.Now))
	}
	fmt.Fprintf(&b, "\nleader:    %s\n", leader)
	t := &table{}
	t.add("PROFILE", "WORKLOADS", "PODS", "PENDING")
	for _, p := range s.Profiles {
		t.add(p.Name, fmt.Sprint(p.Workloads), fmt.Sprint(p.Pods), fmt.Sprint(p.Pending))
	}
	_, err := io.WriteString(w, o.Wrapped(b.String())+"\n"+t.text(o.width()))
	return err
}

// Objects writes objects of the API, as a stream of YAML documents or a JSON List.
func Objects(w io.Writer, format Format, objects []*unstructured.Unstructured) error {
	if format == JSON {
		list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
		for _, o := range objects {
			list.Items = append(list.Items, *o)
		}
		data, err := list.MarshalJSON()
		if err != nil {
			return fmt.Errorf("encode objects: %w", err)
		}
		_, err = w.Write(data)
		return err
	}
	for i, o := range objects {
		data, err := objectyaml.Marshal(o.Object)
		if err != nil {
			return fmt.Errorf("encode %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if i > 0 {
			data = append([]byte("---\n"), data...)
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	return nil
}
