package snapshot

import (
	"bufio"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-sched/kubectl-sched/internal/objectyaml"
)

// WriteYAML writes the snapshot as a stream of Kubernetes objects for people to
// read and edit, after a header of ours. Equal snapshots give equal bytes.
func WriteYAML(w io.Writer, s *Snapshot) error {
	out := bufio.NewWriter(w)
	head, err := runtime.DefaultUnstructuredConverter.ToUnstructured(new(headerOf(s)))
	if err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	head["apiVersion"], head["kind"] = headerVersion, headerKind
	if err := writeDocument(out, head); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	for _, k := range allKinds() {
		for o := range k.list.all(s) {
			object, err := plainObject(k, o)
			if err == nil {
				err = writeDocument(out, object)
			}
			if err != nil {
				return fmt.Errorf("write snapshot: %s %s: %w", k.Name, nameOf(o), err)
			}
		}
	}
	return out.Flush()
}

func writeDocument(w io.Writer, object map[string]any) error {
	data, err := objectyaml.Marshal(object)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, "---\n"); err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

// plainObject returns the object as plain values, without the empty fields that the
// API's types always have.
func plainObject(k *Kind, o Object) (map[string]any, error) {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return u.Object, nil
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	object["apiVersion"], object["kind"] = k.GroupVersion().String(), k.Kind
	dropEmpty(object)
	return object, nil
}

// emptyFields are those that, empty, say no more than if they were not there.
var emptyFields = []string{"status", "resources", "strategy", "updateStrategy", "metadata", "loadBalancer"}

func dropEmpty(object map[string]any) {
	for key, value := range object {
		switch v := value.(type) {
		case nil:
			delete(object, key)
		case map[string]any:
			dropEmpty(v)
		case []any:
			for _, e := range v {
				if m, ok := e.(map[string]any); ok {
					dropEmpty(m)
				}
			}
		}
	}
	for _, key := range emptyFields {
		if m, ok := object[key].(map[string]any); ok && len(m) == 0 {
			delete(object, key)
		}
	}
}
