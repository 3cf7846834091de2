package e2e

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// state is all that there is in a cluster and a repository, by name: what a way back must
// come back to.
type state map[string]any

func (s state) equal(other state) bool { return cmp.Equal(s, other) }

// passing are kinds whose objects come and go by themselves, or are the pods of others,
// which the steps judge.
var passing = []string{
	"pods", "replicasets", "controllerrevisions", "events", "endpoints", "endpointslices", "leases", "componentstatuses", "podtemplates",
}

// state reads everything.
func (l *ladder) state() state {
	l.Helper()
	s := state{}
	lists, err := l.kube.Discovery().ServerPreferredResources()
	if err != nil {
		l.Fatal(err)
	}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list"}}, lists) {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			l.Fatal(err)
		}
		for _, r := range list.APIResources {
			if slices.Contains(passing, r.Name) {
				continue
			}
			objects, err := l.dynamic.Resource(version.WithResource(r.Name)).List(l.Context(), metav1.ListOptions{})
			if err != nil {
				l.Fatalf("list %s: %v", r.Name, err)
			}
			for i := range objects.Items {
				s.add(r.Name, &objects.Items[i])
			}
		}
	}
	l.addFiles(s)
	return s
}

// add notes an object, without what the API server and controllers count.
func (s state) add(resource string, object *unstructured.Unstructured) {
	if set := object.GetLabels()["kubectl-sched.github.io/set"]; set != "" && resource == "configmaps" {
		s["the records of set "+set] = true // which have a history
		return
	}
	var owners []string
	for _, entry := range object.GetManagedFields() {
		if strings.Contains(entry.Manager, ours) {
			owners = append(owners, entry.Manager)
		}
	}
	object.SetManagedFields(nil)
	object.SetResourceVersion("")
	object.SetGeneration(0)
	object.SetAnnotations(withoutCounters(object.GetAnnotations()))
	delete(object.Object, "status")
	s[strings.Trim(resource+" "+object.GetNamespace()+"/"+object.GetName(), "/")] = map[string]any{"object": object.Object, "owners": owners}
}

// addFiles notes the files of the repository.
func (l *ladder) addFiles(s state) {
	l.Helper()
	err := filepath.WalkDir(l.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch d.Name() {
		case ".git", ".kube", ".cache":
			return fs.SkipDir
		}
		if d.IsDir() {
			return nil
		}
		data, err := os.ReadFile(path)
		s["file "+strings.TrimPrefix(path, l.dir)] = string(data)
		return err
	})
	if err != nil {
		l.Fatal(err)
	}
}

// isAgain waits until everything is as it was: a namespace takes a moment to go.
func (l *ladder) isAgain(name string, before state) {
	l.Helper()
	err := until(l.Context(), "everything is again as it was before step "+name, func(context.Context) (string, error) {
		now := l.state()
		for _, key := range slices.Sorted(maps.Keys(now)) {
			if _, was := before[key]; !was {
				return key + " is left", nil
			}
		}
		return cmp.Diff(before, now), nil
	})
	if err != nil {
		l.Fatal(err)
	}
}
