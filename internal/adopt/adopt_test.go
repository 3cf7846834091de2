package adopt_test

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/adopt"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

var now = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

func propose(t rapid.TB, r adopt.Request) *adopt.Proposal {
	t.Helper()
	r.Package, r.Now = "imported", now
	p, err := adopt.Propose(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func read(t rapid.TB, files ...string) []*workload.Workload {
	t.Helper()
	set, findings := workload.Read(context.Background(), workload.Input{Files: files, Recursive: true}, workload.Options{})
	for _, f := range findings {
		if strings.HasPrefix(f.Rule, "input/") && f.Severity == "error" {
			t.Fatal(f)
		}
	}
	return set.Workloads
}

// loaded writes the document to a folder of its own and loads it, as a user would.
func loaded(t rapid.TB, p *adopt.Proposal) *policy.Placement {
	t.Helper()
	dir, err := os.MkdirTemp("", "adopt")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "imported.cue"), p.Document, 0o600); err != nil {
		t.Fatal(err)
	}
	placement, findings := load.Evaluate(context.Background(), load.Options{Paths: []string{dir}})
	if findings.HasErrors() {
		t.Fatalf("%v\n%s", findings, p.Document)
	}
	if formatted, err := load.Format(p.Document, "imported.cue"); err != nil || !bytes.Equal(formatted, p.Document) {
		t.Fatalf("%v: the document is not in CUE's form:\n%s", err, p.Document)
	}
	// The text says what was proved.
	if diff := cmp.Diff(plain(t, p.Placement), plain(t, placement)); diff != "" {
		t.Fatalf("the document says something else than was proved (-proved +document):\n%s\n%s", diff, p.Document)
	}
	return placement
}

// plain is a Placement as JSON without what depends on files.
func plain(t rapid.TB, p *policy.Placement) any {
	t.Helper()
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	delete(tree, "folders")
	for _, section := range []string{"policies", "pools"} {
		list, _ := tree[section].([]any)
		for _, o := range list {
			delete(o.(map[string]any), "positions")
			delete(o.(map[string]any), "folder")
		}
	}
	return tree
}

// roundTrip holds the proposal to what it promises, by the text alone and by
// manifests whose placement was really taken out: it changes nothing, and it brings
// back what was there, but for what is said to be left.
func roundTrip(t rapid.TB, ws []*workload.Workload, p *adopt.Proposal) (placed int) {
	t.Helper()
	placement := loaded(t, p)
	compile := func(ws []*workload.Workload) map[string]workload.PodFields {
		plan, findings := compiler.Compile(compiler.Request{Placement: placement, Workloads: ws, Surface: policy.SurfaceRender, Now: now, Capabilities: capability.Capabilities{}})
		if findings.HasErrors() {
			t.Fatalf("%v\n%s", findings, p.Document)
		}
		out := map[string]workload.PodFields{}
		for _, w := range ws {
			for i := range w.Templates {
				out[key(w, i)] = w.Templates[i].Pods
			}
		}
		for _, c := range plan.Changes {
			out[key(c.Workload, c.Template)] = c.After
			if ws[0].Object != nil && len(c.Effects) > 0 && c.Workload.Object["stripped"] == nil {
				t.Errorf("%s changes: %v", c.Workload.Ref(), c.Effects)
			}
		}
		return out
	}
	whole := compile(ws)
	left := map[string]int{}
	for _, l := range p.Left {
		for _, ref := range l.Workloads {
			if l.Field == "everything" {
				left[ref] = 1000
				for _, policy := range p.Policies {
					if slices.Contains(policy.Workloads, ref) {
						t.Errorf("%s is left alone, and policy %q selects it", ref, policy.Name)
					}
				}
			}
			left[ref]++
		}
	}
	back := compile(stripped(t, ws))
	for _, w := range ws {
		for i := range w.Templates {
			before := adopt.Normal(w.Templates[i].Pods)
			if diff := cmp.Diff(before, adopt.Normal(whole[key(w, i)])); diff != "" {
				t.Errorf("%s is changed (-before +after):\n%s\n%s", key(w, i), diff, p.Document)
			}
			ref := w.Ref()
			if len(w.Templates) > 1 && w.Templates[i].Name != "" {
				ref += " (" + w.Templates[i].Name + ")"
			}
			if len(before) > 0 {
				placed++
			}
			after := adopt.Normal(back[key(w, i)])
			missing, more := without(before, after), without(after, before)
			if len(missing) > left[ref] || len(more) > 0 {
				t.Errorf("%s does not come back: missing %v, of which %d are left; more %v\n%s", ref, missing, left[ref], more, p.Document)
			}
		}
	}
	return placed
}

// without returns what is in a and not in b.
func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

func key(w *workload.Workload, template int) string {
	return w.Ref() + w.Group + string(rune('0'+template)) + w.Source.File + w.Source.At().Start.String()
}

// stripped reads the objects again without their placement fields.
func stripped(t rapid.TB, ws []*workload.Workload) []*workload.Workload {
	t.Helper()
	var out []*workload.Workload
	for _, w := range ws {
		data, err := json.Marshal(w.Object)
		if err != nil {
			t.Fatal(err)
		}
		var object map[string]any
		if err := json.Unmarshal(data, &object); err != nil {
			t.Fatal(err)
		}
		for i := range w.Templates {
			tpl := &w.Templates[i]
			for _, f := range slices.Sorted(maps.Keys(tpl.Paths)) {
				if f != workload.TemplateLabels && f != workload.TemplateAnnotations && f != workload.SchedulingGroup {
					remove(object, tpl.Paths[f])
				}
			}
			for _, f := range []workload.Field{workload.NodeAffinity, workload.PodAffinity, workload.PodAntiAffinity} {
				if path, ok := tpl.PathOf(f); ok {
					remove(object, path)
				}
			}
		}
		object["stripped"] = true
		again, _, ok := workload.FromObject(object, workload.Options{Namespace: w.Namespace}, w.Source)
		if !ok || again == nil {
			// A template that has nothing but placement fields is no template without
			// them.
			continue
		}
		out = append(out, again)
	}
	return out
}

func remove(object map[string]any, path workload.Path) {
	parent, ok := workload.Lookup(object, path[:len(path)-1]...)
	if m, isMap := parent.(map[string]any); ok && isMap {
		delete(m, path[len(path)-1].(string))
	}
}

// TestRepositoryManifests imports every manifest of the repository: the examples,
// and charts as they are rendered.
func TestRepositoryManifests(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob("../../examples/*/manifests")
	if err != nil {
		t.Fatal(err)
	}
	charts, err := filepath.Glob("../../test/charts/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crs, err := filepath.Glob("../../test/charts/*/crs")
	if err != nil || len(folders) < 9 || len(charts) < 8 {
		t.Fatalf("%v, %d examples, %d charts", err, len(folders), len(charts))
	}
	inputs := append(append(folders, charts...), crs...)
	sets := map[string][]string{"all": inputs}
	for _, in := range inputs {
		sets[strings.TrimPrefix(in, "../../")] = []string{in}
	}
	for name, files := range sets {
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			t.Parallel()
			ws := read(t, files...)
			if len(ws) == 0 {
				return
			}
			p := propose(t, adopt.Request{Workloads: ws})
			placed := roundTrip(t, ws, p)
			t.Logf("%d workloads, %d templates with placement, %d policies, %+v", len(ws), placed, len(p.Policies), p.Proof)
			if os.Getenv("SHOW") != "" {
				t.Logf("%s", p.Document)
				for _, r := range p.Raw {
					t.Logf("raw %+v", r)
				}
				for _, r := range p.Left {
					t.Logf("left %+v", r)
				}
			}
		})
	}
}
