package emit

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
)

// Whatever a plan says and however the manifests are written: what is emitted
// has exactly the plan's placement and nothing else changed; emitting again
// changes nothing; without the policies the manifests are what they were, byte
// for byte.
func TestManifestsRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(manifests.Draw(t, "manifests"))
		set := read(t, text)
		p := plan(t, set.Workloads)
		emitted := emit(t, p, set)

		second := read(t, emitted)
		if len(second.Workloads) != len(set.Workloads) {
			t.Fatalf("%d workloads became %d:\n%s", len(set.Workloads), len(second.Workloads), emitted)
		}
		for i, w := range second.Workloads {
			want := wanted(p, set.Workloads[i])
			for j, template := range w.Templates {
				if !SamePlacement(template.Current, want[j]) {
					t.Fatalf("%s: placement (-want +got):\n%s\n%s", w.Ref(), cmp.Diff(want[j], template.Current), emitted)
				}
				if !SamePlacement(template.Pods, set.Workloads[i].Templates[j].Pods) {
					t.Fatalf("%s: placement without us (-want +got):\n%s\n%s", w.Ref(), cmp.Diff(set.Workloads[i].Templates[j].Pods, template.Pods), emitted)
				}
			}
			if d := cmp.Diff(strip(set.Workloads[i]), strip(w)); d != "" {
				t.Fatalf("%s: besides the placement (-before +after):\n%s\n%s", w.Ref(), d, emitted)
			}
		}
		if twice := emit(t, again(t, p, second.Workloads), second); string(twice) != string(emitted) {
			t.Fatalf("emitting twice (-once +twice):\n%s", cmp.Diff(string(emitted), string(twice)))
		}
		if without := emit(t, &compiler.Plan{}, second); string(without) != string(text) {
			t.Fatalf("without the policies (-before +after):\n%s", cmp.Diff(string(text), string(without)))
		}
	})
}

func emit(t rapid.TB, p *compiler.Plan, set *workload.Set) []byte {
	t.Helper()
	files, findings := Manifests(context.Background(), p, set, []string{"-"}, false)
	if len(findings) > 0 || len(files) != 1 {
		t.Fatalf("%d files, %v", len(files), findings)
	}
	return files[0].After
}

// wanted returns the placement that each template of the workload must end with.
func wanted(p *compiler.Plan, w *workload.Workload) []workload.PodFields {
	want := make([]workload.PodFields, len(w.Templates))
	for i, t := range w.Templates {
		want[i] = t.Pods
	}
	for _, c := range p.Changes {
		if c.Workload == w {
			want[c.Template] = c.After
		}
	}
	return want
}

// strip returns the object without its placement and our annotation.
func strip(w *workload.Workload) any {
	object := clone(nil, &w.Object)
	for _, t := range w.Templates {
		for field, path := range t.Paths {
			if field != workload.TemplateLabels && field != workload.TemplateAnnotations {
				remove(*object, path)
				continue
			}
			parent, _ := lookup(*object, path).(map[string]any)
			for key := range parent {
				if workload.PlacementLabel(key) || workload.PlacementAnnotation(key) {
					delete(parent, key)
				}
			}
			if len(parent) == 0 {
				remove(*object, path)
			}
		}
		for _, name := range t.Containers() {
			path, _ := t.EnvPath(name)
			list, _ := lookup(*object, path).([]any)
			list = slices.DeleteFunc(list, func(v any) bool {
				name, _ := v.(map[string]any)["name"].(string)
				return workload.PlacementVariable(name)
			})
			if container := lookup(*object, path[:len(path)-1]).(map[string]any); len(list) == 0 {
				delete(container, "env")
			} else {
				container["env"] = list
			}
		}
	}
	remove(*object, workload.Path{"metadata", "annotations", ownership.Annotation})
	if meta, ok := (*object)["metadata"].(map[string]any); ok {
		if a, ok := meta["annotations"].(map[string]any); ok && len(a) == 0 || meta["annotations"] == nil {
			delete(meta, "annotations")
		}
	}
	return *object
}

func remove(object map[string]any, path workload.Path) {
	if parent, ok := lookup(object, path[:len(path)-1]).(map[string]any); ok {
		delete(parent, path[len(path)-1].(string))
	}
}

// clone copies through JSON.
func clone[T any](t rapid.TB, value *T) *T {
	text, err := json.Marshal(value)
	out := new(T)
	if err == nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil && t != nil {
		t.Fatal(err)
	}
	return out
}

func TestStreamReadsAgain(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		files []string
		want  string
	}{
		{"separator is added", []string{"a: 1\n", "b: 2\n"}, "a: 1\n---\nb: 2\n"},
		{"separator is there", []string{"a: 1\n", "---\nb: 2\n"}, "a: 1\n---\nb: 2\n"},
		{"comment first", []string{"a: 1\n", "# b\n---\nb: 2\n"}, "a: 1\n# b\n---\nb: 2\n"},
		{"comment without separator", []string{"a: 1\n", "# b\nb: 2\n"}, "a: 1\n---\n# b\nb: 2\n"},
		{"no newline at the end", []string{"a: 1", "b: 2"}, "a: 1\n---\nb: 2"},
		{"empty file", []string{"a: 1\n", "", "b: 2\n"}, "a: 1\n---\nb: 2\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var files []File
			for _, f := range test.files {
				files = append(files, File{After: []byte(f)})
			}
			var got strings.Builder
			if err := Stream(&got, files, nil); err != nil || got.String() != test.want {
				t.Errorf("got %q (%v), want %q", got.String(), err, test.want)
			}
		})
	}
}

// A change of what the documents hold is a change of their version.
func TestDocumentShape(t *testing.T) {
	t.Parallel()
	var fields []string
	for _, typ := range []reflect.Type{reflect.TypeFor[PlanDocument](), reflect.TypeFor[WorkloadEntry](), reflect.TypeFor[ObjectEntry](), reflect.TypeFor[NodeEntry](), reflect.TypeFor[ExceptionEntry]()} {
		for i := range typ.NumField() {
			fields = append(fields, typ.Name()+"."+typ.Field(i).Tag.Get("json"))
		}
	}
	want := []string{
		"PlanDocument.apiVersion", "PlanDocument.kind", "PlanDocument.clusters,omitempty", "PlanDocument.workloads",
		"PlanDocument.objects,omitempty", "PlanDocument.nodes,omitempty", "PlanDocument.profiles,omitempty", "PlanDocument.exceptions,omitempty", "PlanDocument.unmatched,omitempty",
		"WorkloadEntry.group,omitempty", "WorkloadEntry.version", "WorkloadEntry.kind", "WorkloadEntry.namespace,omitempty", "WorkloadEntry.name",
		"WorkloadEntry.template,omitempty", "WorkloadEntry.source,omitempty", "WorkloadEntry.policies", "WorkloadEntry.changes",
		"WorkloadEntry.before", "WorkloadEntry.after", "WorkloadEntry.effects,omitempty",
		"ObjectEntry.object", "ObjectEntry.level", "ObjectEntry.reason", "ObjectEntry.origins",
		"NodeEntry.pool", "NodeEntry.managedBy", "NodeEntry.makers,omitempty", "NodeEntry.provider,omitempty", "NodeEntry.taint,omitempty",
		"NodeEntry.taints,omitempty", "NodeEntry.labels,omitempty", "NodeEntry.requirements,omitempty", "NodeEntry.members,omitempty",
		"NodeEntry.nodes,omitempty", "NodeEntry.newNodes", "NodeEntry.level", "NodeEntry.reason", "NodeEntry.origins",
		"ExceptionEntry.policy", "ExceptionEntry.exception", "ExceptionEntry.workload", "ExceptionEntry.reason", "ExceptionEntry.expires", "ExceptionEntry.range",
	}
	if d := cmp.Diff(want, fields); d != "" {
		t.Errorf("fields (-want +got):\n%s", d)
	}
}

// Many files come out in the order of the set, each with its own placement,
// whatever the number of documents in each.
func TestManifestsOfManyFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const document = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: %s\nspec:\n  schedulerName: theirs # %[1]s\n"
	for i := range 60 {
		text := ""
		for j := range 1 + i%4 {
			text += fmt.Sprintf("---\n"+document, fmt.Sprintf("pod-%02d-%d", i, j))
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02d.yaml", i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set, findings := workload.Read(t.Context(), workload.Input{Files: []string{dir}}, workload.Options{})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	p := &compiler.Plan{}
	for _, w := range set.Workloads {
		after := w.Templates[0].Pods
		after.PriorityClassName = w.Name
		p.Changes = append(p.Changes, compiler.Change{Workload: w, After: after})
	}
	files, findings := Manifests(context.Background(), p, set, []string{dir}, false)
	if len(findings) > 0 || len(files) != 60 {
		t.Fatalf("%d files, %v", len(files), findings)
	}
	for i, f := range files {
		if want := fmt.Sprintf("%02d.yaml", i); f.Name != want || f.Root != dir || string(f.Before) != string(set.Files[i].Data) {
			t.Fatalf("file %d is %q of %q, want %q", i, f.Name, f.Root, want)
		}
		again := read(t, f.After)
		if len(again.Workloads) != 1+i%4 {
			t.Fatalf("%s has %d pods", f.Name, len(again.Workloads))
		}
		for j, w := range again.Workloads {
			want := fmt.Sprintf("pod-%02d-%d", i, j)
			if got := w.Templates[0].Current; w.Name != want || got.PriorityClassName != want || got.SchedulerName != "theirs" {
				t.Fatalf("%s: %s has %+v, want %q", f.Name, w.Name, got, want)
			}
		}
	}
}

func TestPlace(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		arguments []string
		file      string
		name      string
		root      string
	}{
		{[]string{"a/x.yaml"}, "a/x.yaml", "x.yaml", "a"},
		{[]string{"a"}, "a/b/x.yaml", "b/x.yaml", "a"},
		{[]string{"a/"}, "a/b/x.yaml", "b/x.yaml", "a/"},
		{[]string{"."}, "a/x.yaml", "a/x.yaml", "."},
		{[]string{"b", "a", "a/b"}, "a/b/x.yaml", "b/x.yaml", "a"},
		{[]string{"b", "a/b", "a"}, "a/b/x.yaml", "x.yaml", "a/b"},
		{[]string{"a", "a"}, "a/x.yaml", "x.yaml", "a"},
		{[]string{"aa"}, "a/x.yaml", "x.yaml", "a"},
		{[]string{".", "../c"}, "../c/d/x.yaml", "d/x.yaml", "../c"},
		{[]string{"."}, "../x.yaml", "x.yaml", ".."},
		{[]string{".."}, "../x.yaml", "x.yaml", ".."},
		{[]string{"/"}, "/a/x.yaml", "a/x.yaml", "/"},
		{[]string{"/a"}, "/a/b/x.yaml", "b/x.yaml", "/a"},
	} {
		got := newArguments(test.arguments).place(&workload.File{Name: test.file, Mode: 0o644})
		if got.Name != test.name || got.Root != test.root || got.Path != test.file {
			t.Errorf("%v: %s is %q of %q, want %q of %q", test.arguments, test.file, got.Name, got.Root, test.name, test.root)
		}
	}
}
