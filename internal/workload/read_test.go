package workload

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/kubectl-sched/kubectl-sched/internal/workload/yamledit"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: %s
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: x}]
`

// folder writes files below a new folder and returns it.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// lines are the findings as text, relative to the folder.
func lines(fs diag.Findings, dir string) []string {
	var out []string
	for _, f := range fs {
		out = append(out, f.Rule+" "+strings.ReplaceAll(f.String(), dir, "DIR"))
	}
	return out
}

func refs(set *Set) []string {
	var out []string
	for _, w := range set.Workloads {
		out = append(out, w.Ref())
	}
	return out
}

func TestReadFolder(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"b.yaml": fmt.Sprintf(deployment, "b"), "a.yml": fmt.Sprintf(deployment, "a"), "sub/c.json": `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"c"},"spec":{}}`,
		"README.md": "no: [", "broken.yaml": "a: [\n", "values.yaml": "replicas: 3\n", "kustomization.yaml": "resources: [a.yml]\n",
		"ns.yaml": "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n  labels: {team: x}\n",
	})
	set, findings := Read(context.Background(), Input{Files: []string{dir}}, Options{Namespace: "shop"})
	want := []string{
		"input/invalid-yaml DIR/broken.yaml:1:1: this is not YAML: did not find expected node content",
		"input/not-a-manifest DIR/values.yaml:1:1: this is no Kubernetes object: it has no apiVersion and kind; it is left out",
	}
	if diff := cmp.Diff(want, lines(findings, dir)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"Deployment shop/a", "Deployment shop/b"}, refs(set)); diff != "" {
		t.Error(diff)
	}
	if len(set.Others) != 1 || set.Others[0].Kind != "Namespace" || set.Others[0].Namespace != "" {
		t.Errorf("%+v", set.Others)
	}
	set, _ = Read(context.Background(), Input{Files: []string{dir}, Recursive: true}, Options{})
	if diff := cmp.Diff([]string{"Deployment default/a", "Deployment default/b", "Pod default/c"}, refs(set)); diff != "" {
		t.Error(diff)
	}
	if set.Files[0].Name != filepath.Join(dir, "a.yml") || set.Files[0].Mode != 0o600 {
		t.Errorf("%s %v", set.Files[0].Name, set.Files[0].Mode)
	}
}

func TestReadBadInput(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"empty/x.txt": "", "deeper/in/a.yaml": "", "values.yaml": "# v\nreplicas: 3\n", "binary.yaml": "a: \x00",
		"big.yaml": strings.Repeat("# x\n", 1000), "links/a.yaml": fmt.Sprintf(deployment, "in"), "outside.yaml": fmt.Sprintf(deployment, "out"),
		"secret.yaml": "", "many.yaml": "a: [\n---\n" + fmt.Sprintf(deployment, "ok") + "---\na: 1\na: 2\n---\n- 1\n---\napiVersion: v1\nkind: Pod\nmetadata: {}\n",
	})
	for from, to := range map[string]string{"links/in.yaml": "a.yaml", "links/out.yaml": "../outside.yaml", "links/gone.yaml": "nowhere.yaml"} {
		if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		files []string
		max   int64
		want  []string
		names []string
	}{
		{files: []string{"empty"}, want: []string{"input/no-manifests DIR/empty: the folder has no file that ends in .yaml, .yml or .json"}},
		{files: []string{"deeper"}, want: []string{"input/no-manifests DIR/deeper: the folder has no file that ends in .yaml, .yml or .json; use -R to look into the folders in it"}},
		{files: []string{"nowhere"}, want: []string{"input/not-found DIR/nowhere: there is no such file or folder"}},
		{files: []string{"values.yaml"}, want: []string{"input/not-a-manifest DIR/values.yaml:2:1: this is no Kubernetes object: it has no apiVersion and kind"}},
		{files: []string{"binary.yaml"}, want: []string{"input/not-text DIR/binary.yaml:1:4: the file has a zero byte and is no text; give YAML or JSON in UTF-8"}},
		{files: []string{"big.yaml"}, max: 1024, want: []string{"input/too-large DIR/big.yaml: the file has more than 1 KiB; split it, or allow more with --max-file-size"}},
		{files: []string{"links"}, names: []string{"Deployment default/in"}, want: []string{
			"input/not-found DIR/links/gone.yaml: there is no such file or folder",
			`input/symlink DIR/links/out.yaml: the symbolic link leads out of the given folder, to "DIR/outside.yaml"; name that file itself if it is meant`,
		}},
		{files: []string{"many.yaml"}, names: []string{"Deployment default/ok"}, want: []string{
			"input/invalid-yaml DIR/many.yaml:1:1: this is not YAML: did not find expected node content",
			`input/not-a-manifest DIR/many.yaml:15:1: this is no Kubernetes object: it has no apiVersion and kind`,
			`input/invalid-yaml DIR/many.yaml:16:1: the key "a" is there twice; the second one would win`,
			"input/not-a-manifest DIR/many.yaml:18:1: this is no Kubernetes object: it has no apiVersion and kind",
			"workload/no-name DIR/many.yaml:22:1: the Pod has no metadata.name",
		}},
		{files: []string{"https://example.com/x.yaml"}, want: []string{"input/remote https://example.com/x.yaml: manifests are not read from the network; download the file and name it"}},
	} {
		in := Input{}
		for _, f := range c.files {
			if !strings.Contains(f, "://") {
				f = filepath.Join(dir, f)
			}
			in.Files = append(in.Files, f)
		}
		set, findings := Read(context.Background(), in, Options{MaxFileSize: c.max})
		if diff := cmp.Diff(c.want, lines(findings, dir)); diff != "" {
			t.Errorf("%v: (-want +got)\n%s", c.files, diff)
		}
		if diff := cmp.Diff(c.names, refs(set)); diff != "" {
			t.Errorf("%v: %s", c.files, diff)
		}
	}
}

func TestReadInvalidFields(t *testing.T) {
	t.Parallel()
	src := `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {a: 1}
spec:
  template:
    spec:
      tolerations: {}
      topologySpreadConstraints:
      - maxSkew: "1"
        topologykey: zone
        whenUnsatisfiable: DoNotSchedule
      - null
      affinity:
        nodeAffinity: []
        podAffinity: {futureThing: 1}
      nodeSelector: {gpu: true}
      priorityClassName: 7
`
	_, findings := readText(t, src)
	want := []string{
		`workload/invalid-field -:5:12: Deployment default/web: "a" must be a string in quotes, not 1`,
		`workload/invalid-field -:9:7: Deployment default/web: "tolerations" must be a list, not a map`,
		`workload/invalid-field -:11:9: Deployment default/web: "maxSkew" must be a whole number without quotes, not the string "1"`,
		`workload/unknown-field -:12:9: Deployment default/web: the API has no field "topologykey" here; did you mean "topologyKey"`,
		`workload/invalid-field -:14:9: Deployment default/web: the element is empty; remove it`,
		`workload/invalid-field -:16:9: Deployment default/web: "nodeAffinity" must be a map, not a list`,
		`workload/invalid-field -:18:22: Deployment default/web: "gpu" must be a string in quotes, not true`,
		`workload/invalid-field -:19:7: Deployment default/web: "priorityClassName" must be a string in quotes, not 7`,
	}
	if diff := cmp.Diff(want, lines(findings, "-nowhere-")); diff != "" {
		t.Error(diff)
	}
}

func TestReadRecords(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  uid: u1\n  annotations:\n    kubectl-sched.github.io/placement: '%s'\nspec:\n  schedulerName: %s\n"
	for _, c := range []struct{ record, now, pods, want string }{
		{`{"v":1,"fields":[{"path":"/spec/schedulerName","before":"old","wrote":"ours"}]}`, "ours", "old", ""},
		{`{"v":1,"fields":[{"path":"/spec/schedulerName","before":"old","wrote":"ours"}]}`, "theirs", "theirs", `workload/edited-since -:9:3: Pod default/p: "/spec/schedulerName" was changed by somebody since it was written here by a policy; what is there now counts as the manifest's own`},
		{`{"v":1,"uid":"u2","fields":[{"path":"/spec/schedulerName","wrote":"ours"}]}`, "ours", "ours", `workload/copied-record -:7:5: Pod default/p: the record of what is ours was copied from another object and is not believed; its placement fields count as the manifest's own`},
		{`{"v":9,"fields":[]}`, "ours", "ours", `workload/damaged-record -:7:5: Pod default/p: the annotation kubectl-sched.github.io/placement has version 9, and this kubectl-sched knows versions up to 2; use the newer one`},
	} {
		set, findings := readText(t, fmt.Sprintf(head, c.record, c.now))
		got := strings.Join(lines(findings, "-nowhere-"), "\n")
		if got != c.want || set.Workloads[0].Templates[0].Pods.SchedulerName != c.pods {
			t.Errorf("%s:\n%s\n%v", c.record, got, set.Workloads[0].Templates[0].Pods)
		}
	}
}

// A record finds its template again by name when the list has another order.
func TestReadReorderedTemplates(t *testing.T) {
	t.Parallel()
	const group = "  - {groupName: %s, template: {spec: {containers: [], tolerations: [%s]}}}\n"
	const head = "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata:\n  name: r\n  annotations:\n    kubectl-sched.github.io/placement: '%s'\nspec:\n  workerGroupSpecs:\n"
	record := `{"v":1,"fields":[{"path":"/spec/workerGroupSpecs/0/template/spec/tolerations","tpl":"a","before":[],"wrote":[{"key":"ours"}]}]}`
	set, findings := readText(t, fmt.Sprintf(head+group+group, record, "b", "{key: ours}", "a", "{key: ours}, {key: new}"))
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	var got []string
	for _, template := range set.Workloads[0].Templates {
		got = append(got, template.Name)
		for _, tol := range template.Pods.Tolerations {
			got = append(got, tol.Key)
		}
	}
	if diff := cmp.Diff([]string{"b", "ours", "a", "new"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadKustomization(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"base/kustomization.yaml": "resources: [d.yaml]\n", "base/d.yaml": fmt.Sprintf(deployment, "web"),
		"prod/kustomization.yaml":   "resources: [../base]\nnamePrefix: prod-\nnamespace: shop\n",
		"cycle/kustomization.yaml":  "resources:\n- ../cycle2\n",
		"cycle2/kustomization.yaml": "# two\nresources:\n- ../cycle\n",
		"remote/kustomization.yaml": "resources:\n- https://example.com/x.yaml\n- github.com/org/repo?ref=v1\npatches:\n- path: https://example.com/p.yaml\n",
		"gone/kustomization.yaml":   "resources: [nothing.yaml]\n",
		"broken/kustomization.yaml": "resources: [\n", "none/x.yaml": "",
		"escape/kustomization.yaml": "resources: [../base/d.yaml]\n",
	})
	for name, want := range map[string][]string{
		"prod":  nil,
		"cycle": {"input/kustomize-cycle DIR/cycle/../cycle2/kustomization.yaml:3:3: the kustomization includes itself: BASE/cycle -> BASE/cycle2 -> BASE/cycle"},
		"remote": {
			`input/remote DIR/remote/kustomization.yaml:2:3: nothing is loaded from the network; download "https://example.com/x.yaml" and name the copy`,
			`input/remote DIR/remote/kustomization.yaml:3:3: nothing is loaded from the network; download "github.com/org/repo?ref=v1" and name the copy`,
			`input/remote DIR/remote/kustomization.yaml:5:9: nothing is loaded from the network; download "https://example.com/p.yaml" and name the copy`,
		},
		"gone":   {`input/not-found DIR/gone/kustomization.yaml:1:13: there is no file or folder "nothing.yaml"`},
		"broken": {"input/invalid-yaml DIR/broken/kustomization.yaml:1:1: this is not YAML: did not find expected node content"},
		"none":   {`input/kustomize DIR/none: the folder "DIR/none" has no kustomization.yaml`},
		"escape": {"input/kustomize"},
	} {
		set, findings := Read(context.Background(), Input{Kustomize: filepath.Join(dir, name)}, Options{})
		got := lines(findings, dir)
		for i := range got {
			got[i] = strings.ReplaceAll(strings.ReplaceAll(got[i], filepath.Base(dir)+"/", "BASE/"), "DIR/cycle/../cycle2", "DIR/cycle/../cycle2")
		}
		if name == "escape" {
			if len(got) != 1 || !strings.Contains(got[0], "security; file") {
				t.Errorf("%s", got)
			}
			continue
		}
		for i := range got {
			got[i] = strings.ReplaceAll(got[i], filepath.Join("DIR", "cycle2"), "DIR/cycle/../cycle2")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
		if name == "prod" {
			if diff := cmp.Diff([]string{"Deployment shop/prod-web"}, refs(set)); diff != "" {
				t.Error(diff)
			}
			if at := set.Workloads[0].Source.At("spec").Start; at != (diag.Pos{File: filepath.Join(dir, "prod")}) {
				t.Errorf("the place is %v", at)
			}
		}
	}
}

func TestReadInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, findings := Read(ctx, Input{Files: []string{"-"}, Stdin: strings.NewReader(fmt.Sprintf(deployment, "a"))}, Options{})
	if !findings.HasErrors() {
		t.Error("no finding")
	}
}

func FuzzRead(f *testing.F) {
	names, err := filepath.Glob("testdata/*.[yj]*")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for part := range bytes.SplitSeq(data, []byte("\n---\n")) {
			f.Add(part)
		}
	}
	f.Add([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","annotations":{"kubectl-sched.github.io/placement":"{\"v\":1,\"fields\":[{\"path\":\"/spec/x\",\"wrote\":1}]}"}},"spec":{"x":1}}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		set, findings := Read(context.Background(), Input{Files: []string{"-"}, Stdin: bytes.NewReader(src)}, Options{})
		if findings.HasErrors() {
			return
		}
		edits := map[int][]yamledit.Edit{}
		for _, w := range set.Workloads {
			out, err := w.Write(placeAll(w), Stamp{})
			if err != nil {
				t.Fatal(err)
			}
			edits[w.Source.Document] = append(edits[w.Source.Document], out.Edits...)
		}
		with, err := yamledit.ApplyAll(src, edits, nil)
		if err != nil {
			return // a text that cannot be edited is refused, and left alone
		}
		again, findings := Read(context.Background(), Input{Files: []string{"-"}, Stdin: bytes.NewReader(with)}, Options{})
		if findings.HasErrors() || len(again.Workloads) != len(set.Workloads) {
			t.Fatalf("%v\n%q\n%q", findings, src, with)
		}
		for _, w := range again.Workloads {
			out, err := w.Write(placeAll(w), Stamp{})
			if err != nil {
				t.Fatal(err)
			}
			if len(out.Edits) > 0 {
				t.Fatalf("not the second time: %v\n%q\n%q", out.Edits, src, with)
			}
		}
	})
}

// manifests is a text of n Deployments, as a chart renders them.
func manifests(n int) []byte {
	text, err := os.ReadFile("testdata/chart.tmpl")
	if err != nil {
		text = []byte(fmt.Sprintf(deployment, "web-NUMBER"))
	}
	var b bytes.Buffer
	for i := range n {
		b.WriteString("---\n")
		b.Write(bytes.ReplaceAll(text, []byte("NUMBER"), []byte(fmt.Sprint(i))))
	}
	return b.Bytes()
}

// BenchmarkRead compares reading manifests with plain YAML decoding and
// encoding of the same text.
func BenchmarkRead(b *testing.B) {
	src := manifests(1000)
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			dec := yaml.NewDecoder(bytes.NewReader(src))
			for {
				var v map[string]any
				if dec.Decode(&v) != nil {
					break
				}
				if _, err := yaml.Marshal(v); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			set, findings := Read(context.Background(), Input{Files: []string{"-"}, Stdin: bytes.NewReader(src)}, Options{MaxFileSize: 1 << 30})
			if len(findings) > 0 || len(set.Workloads) != 1000 {
				b.Fatal(len(set.Workloads), findings)
			}
		}
	})
	b.Run("write", func(b *testing.B) {
		set, _ := Read(context.Background(), Input{Files: []string{"-"}, Stdin: bytes.NewReader(src)}, Options{MaxFileSize: 1 << 30})
		for b.Loop() {
			rewrite(b, set, placeAll)
		}
	})
}

// Ten thousand manifests stay well below 300 MiB.
func TestReadMemory(t *testing.T) {
	if testing.Short() {
		return
	}
	src := manifests(10_000)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := time.Now()
	set, findings := Read(context.Background(), Input{Files: []string{"-"}, Stdin: bytes.NewReader(src)}, Options{MaxFileSize: 1 << 30})
	took := time.Since(start)
	if len(findings) > 0 || len(set.Workloads) != 10_000 {
		t.Fatal(len(set.Workloads), findings)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	kept := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d KiB of text, %d MiB kept, %v", len(src)>>10, kept>>20, took)
	if kept > 300<<20 {
		t.Errorf("%d MiB are kept", kept>>20)
	}
	runtime.KeepAlive(set)
}

// TestNamespaceUnsaid holds that it is known of which workloads nobody named the namespace:
// not of those in a cluster, nor of those that can be in none.
func TestNamespaceUnsaid(t *testing.T) {
	t.Parallel()
	runtime := GroupKind{"trainer.kubeflow.org", "ClusterTrainingRuntime"}
	kinds, findings := NewKinds([]KindSpec{{Name: runtime.String(), Templates: map[string]TemplateSpec{"": {Path: "spec.template.spec"}}}})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	for name, test := range map[string]struct {
		apiVersion, kind, own, given string
		live                         bool
		namespace                    string
		unsaid                       bool
	}{
		"nobody":         {apiVersion: "apps/v1", kind: "Deployment", namespace: "default", unsaid: true},
		"the object":     {apiVersion: "apps/v1", kind: "Deployment", own: "shop", namespace: "shop"},
		"the caller":     {apiVersion: "apps/v1", kind: "Deployment", given: "shop", namespace: "shop"},
		"both":           {apiVersion: "apps/v1", kind: "Deployment", own: "shop", given: "lab", namespace: "shop"},
		"in so many":     {apiVersion: "apps/v1", kind: "Deployment", own: "default", namespace: "default"},
		"in a cluster":   {apiVersion: "apps/v1", kind: "Deployment", live: true, namespace: "default"},
		"of the cluster": {apiVersion: runtime.Group + "/v1alpha1", kind: runtime.Kind, given: "shop"},
	} {
		meta := map[string]any{"name": "x"}
		if test.own != "" {
			meta["namespace"] = test.own
		}
		object := map[string]any{"apiVersion": test.apiVersion, "kind": test.kind, "metadata": meta, "spec": map[string]any{"template": map[string]any{"spec": map[string]any{}}}}
		w, findings, ok := FromObject(object, Options{Namespace: test.given, Kinds: kinds}, Source{Live: test.live})
		if !ok || len(findings) > 0 {
			t.Errorf("%s: %v, %v", name, ok, findings)
			continue
		}
		if w.Namespace != test.namespace || w.NamespaceUnsaid != test.unsaid {
			t.Errorf("%s: the namespace is %q (unsaid: %v), want %q (%v)", name, w.Namespace, w.NamespaceUnsaid, test.namespace, test.unsaid)
		}
	}
}
