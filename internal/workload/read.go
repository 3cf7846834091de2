package workload

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/kubectl-sched/kubectl-sched/internal/workload/yamldoc"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Input says where manifests are to be read from, as kubectl's -f, -R and -k.
type Input struct {
	// Files are files and folders; "-" is Stdin.
	Files []string
	// Recursive reads the folders within folders too.
	Recursive bool
	// Kustomize is the folder of a kustomization, or empty.
	Kustomize string
	// Stdin is what "-" reads.
	Stdin io.Reader
}

// Options are what reading depends on besides the input.
type Options struct {
	// Namespace is that of objects that name none; empty for "default".
	Namespace string
	// Kinds is the table of kinds; nil for the built-in one.
	Kinds *Kinds
	// MaxFileSize is how many bytes one file may have; 0 for DefaultMaxFileSize.
	MaxFileSize int64
}

// DefaultMaxFileSize is how many bytes a file of manifests may have, if the
// user does not say otherwise: 32 MiB.
const DefaultMaxFileSize = 32 << 20

// Set is everything that was read, in the order of the input.
type Set struct {
	Files     []*File
	Workloads []*Workload
	// Others are the objects without a pod template.
	Others []*Object
}

// File is one text that objects were read from.
type File struct {
	// Name is the file as the user named it (for a file in a folder, the
	// folder's name joined with the rest), "-" for standard input, or the folder
	// of a kustomization.
	Name string
	// Data is the text as it was read; for a kustomization, the rendered YAML.
	Data []byte
	// Mode is the mode of the file; 0 where there is none to write back to
	// (standard input, a kustomization).
	Mode fs.FileMode

	// listed says that the file was found in a folder, and not named itself.
	listed bool
	// rendered says that the user never saw the text.
	rendered bool
}

// Forget lets go of the trees of all objects. What was read of them, and the files,
// stay.
func (s *Set) Forget() {
	for _, w := range s.Workloads {
		w.Object = nil
	}
	for _, o := range s.Others {
		o.Object = nil
	}
}

// Object is an object that has no pod template.
type Object struct {
	Group, Version, Kind, Namespace, Name string
	// Object is the whole object; read only.
	Object map[string]any
	Source Source
}

// Read reads all manifests of the input. Findings tell of everything that could
// not be read; the set has all that could. It ends early, with a finding, when
// ctx does.
func Read(ctx context.Context, in Input, o Options) (*Set, diag.Findings) {
	if o.MaxFileSize <= 0 {
		o.MaxFileSize = DefaultMaxFileSize
	}
	if o.Kinds == nil {
		o.Kinds = defaultKinds()
	}
	g := &gatherer{in: in, max: o.MaxFileSize}
	g.gather(ctx)
	set := &Set{Files: g.files}
	findings := g.findings

	// One document of many megabytes takes longer than somebody waits who has asked
	// for an end.
	results, _ := orEnded(ctx, func() ([]result, error) { return readFiles(ctx, g.files, o), nil }) // ctx speaks for itself
	for _, r := range results {
		set.Workloads = append(set.Workloads, r.workloads...)
		set.Others = append(set.Others, r.others...)
		findings = append(findings, r.findings...)
	}
	findings = append(findings, set.duplicates()...)
	if err := ctx.Err(); err != nil {
		findings = append(findings, diag.Finding{Rule: "input/interrupted", Severity: diag.Error, Message: fmt.Sprintf("reading the manifests was interrupted: %v", err)})
	}
	return set, findings.Sort()
}

// CheckText says what is wrong with a text of YAML or JSON documents, wherever it
// came from; file names it.
func CheckText(file string, data []byte) diag.Findings {
	f := &File{Name: file, Data: data}
	if p := yamldoc.CheckText(data); p != nil {
		return diag.Findings{f.finding(p, "input/not-text")}
	}
	var findings diag.Findings
	for _, d := range yamldoc.Split(data) {
		_, problems := d.Decode()
		for _, p := range problems {
			findings = append(findings, f.finding(p, "input/invalid-yaml"))
		}
	}
	return findings
}

// duplicates warns of objects that are there twice: whoever applies both ends up
// with the one that comes last.
func (s *Set) duplicates() diag.Findings {
	first := map[string]Source{}
	var findings diag.Findings
	look := func(group, kind, namespace, name string, object map[string]any, source Source) {
		if meta, _ := object["metadata"].(map[string]any); meta["name"] == nil {
			return // the API server makes the name up
		}
		key := group + "/" + kind + " " + namespace + "/" + name
		before, ok := first[key]
		if !ok {
			first[key] = source
			return
		}
		if namespace != "" {
			name = namespace + "/" + name
		}
		findings = append(findings, diag.Finding{
			Rule: "input/duplicate", Severity: diag.Warning, Range: source.At(), Subject: kind + " " + name,
			Message: "it is there twice, and of two the last one counts where both are applied; keep one",
			Related: []diag.Related{{Range: before.At(), Message: "the first"}},
		})
	}
	for _, w := range s.Workloads {
		look(w.Group, w.Kind, w.Namespace, w.Name, w.Object, w.Source)
	}
	for _, o := range s.Others {
		look(o.Group, o.Kind, o.Namespace, o.Name, o.Object, o.Source)
	}
	return findings
}

// readFiles reads all documents of the files.
func readFiles(ctx context.Context, files []*File, o Options) []result {
	var results []result
	var texts []text
	for _, f := range files {
		if p := yamldoc.CheckText(f.Data); p != nil {
			results = append(results, result{findings: diag.Findings{f.finding(p, "input/not-text")}})
			continue
		}
		for _, d := range yamldoc.Split(f.Data) {
			texts = append(texts, text{f, d})
		}
	}
	return append(results, readTexts(ctx, texts, o)...)
}

// text is one document of a file.
type text struct {
	file *File
	doc  yamldoc.Doc
}

// result is what came of one document.
type result struct {
	workloads []*Workload
	others    []*Object
	findings  diag.Findings
}

// readTexts reads the documents, several at a time, and returns what came of
// each in their order.
func readTexts(ctx context.Context, texts []text, o Options) []result {
	results := make([]result, len(texts))
	trees := &trees{}
	var next atomic.Int64
	var wait sync.WaitGroup
	for range min(max(2, runtime.GOMAXPROCS(0)), len(texts)) {
		wait.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(texts) {
					return
				}
				results[i] = texts[i].read(o, trees)
			}
		})
	}
	wait.Wait()
	return results
}

// read reads the objects of one document.
func (t text) read(o Options, trees *trees) result {
	var r result
	value, problems := t.doc.Decode()
	for _, p := range problems {
		r.findings = append(r.findings, t.file.finding(p, "input/invalid-yaml"))
	}
	if value == nil {
		return r
	}
	s := Source{File: t.file.Name, Document: t.doc.Index}
	locate := trees.locate
	if t.file.rendered {
		locate = nil
	}
	t.object(&r, value, s, o, locate)
	return r
}

// object reads one object, or those of a list.
func (t text) object(r *result, value any, s Source, o Options, locate locateFunc) {
	prefix := s.Prefix
	s.Locate = func(Path) diag.Range { return diag.At(diag.Pos{File: t.file.Name}) }
	if locate != nil {
		s.Locate = func(path Path) diag.Range { return locate(t, prefix.join(path...)) }
	}
	report := func(severity diag.Severity, rule, message string, path ...any) {
		r.findings = append(r.findings, diag.Finding{Rule: rule, Severity: severity, Range: s.At(path...), Message: message})
	}
	object, ok := value.(map[string]any)
	apiVersion, hasVersion := object["apiVersion"].(string)
	kind, hasKind := object["kind"].(string)
	if !ok || !hasVersion || !hasKind || apiVersion == "" || kind == "" {
		switch {
		case t.file.listed && isKustomization(t.file.Name):
		case t.file.listed:
			report(diag.Warning, "input/not-a-manifest", "this is no Kubernetes object: it has no apiVersion and kind; it is left out")
		default:
			report(diag.Error, "input/not-a-manifest", "this is no Kubernetes object: it has no apiVersion and kind")
		}
		return
	}
	if items, ok := object["items"].([]any); ok && isList(apiVersion, kind) {
		for i, item := range items {
			inner := s
			inner.Prefix = prefix.join("items", i)
			t.object(r, typedItem(item, apiVersion, kind), inner, o, locate)
		}
		return
	}
	meta, _ := object["metadata"].(map[string]any)
	if t.file.listed && isKustomization(t.file.Name) {
		return
	}
	if name, _ := meta["name"].(string); name == "" && meta["generateName"] == nil && !isConfiguration(apiVersion) {
		report(diag.Error, "workload/no-name", fmt.Sprintf("the %s has no metadata.name", kind), "metadata")
		return
	}
	w, findings, ok := FromObject(object, o, s)
	r.findings = append(r.findings, findings...)
	if ok {
		r.workloads = append(r.workloads, w)
		return
	}
	h := headOf(object, o.Namespace)
	r.others = append(r.others, &Object{h.Group, h.Version, h.Kind, h.Namespace, h.Name, object, s})
}

// clusterScoped are the kinds without a namespace that placement depends on, and
// those with pod templates that users may teach.
var clusterScoped = map[GroupKind]bool{
	{"", "Namespace"}: true, {"", "Node"}: true, {"", "PersistentVolume"}: true,
	{"scheduling.k8s.io", "PriorityClass"}: true, {"storage.k8s.io", "StorageClass"}: true, {"storage.k8s.io", "CSIDriver"}: true,
	{"apiextensions.k8s.io", "CustomResourceDefinition"}: true,
	{"rbac.authorization.k8s.io", "ClusterRole"}:         true, {"rbac.authorization.k8s.io", "ClusterRoleBinding"}: true,
	{"admissionregistration.k8s.io", "ValidatingWebhookConfiguration"}: true, {"admissionregistration.k8s.io", "MutatingWebhookConfiguration"}: true,
	{"trainer.kubeflow.org", "ClusterTrainingRuntime"}: true, {"argoproj.io", "ClusterWorkflowTemplate"}: true, {"serving.kserve.io", "ClusterServingRuntime"}: true,
}

// isConfiguration reports whether objects of the version are the configuration of
// a component of Kubernetes (kubescheduler.config.k8s.io), which are no objects of
// a cluster and have no name.
func isConfiguration(apiVersion string) bool {
	group, _, _ := strings.Cut(apiVersion, "/")
	return strings.HasSuffix(group, ".config.k8s.io")
}

// isList reports whether a kind is a list of others: "List", or "DeploymentList"
// as the API server writes it.
func isList(apiVersion, kind string) bool {
	return kind == "List" && apiVersion == "v1" || len(kind) > len("List") && kind[len(kind)-len("List"):] == "List"
}

// typedItem gives the items of a typed list, which need not name it, their kind.
func typedItem(item any, apiVersion, kind string) any {
	m, ok := item.(map[string]any)
	if !ok || m["kind"] != nil || m["apiVersion"] != nil || kind == "List" {
		return item
	}
	out := make(map[string]any, len(m)+2)
	for k, v := range m {
		out[k] = v
	}
	out["apiVersion"], out["kind"] = apiVersion, kind[:len(kind)-len("List")]
	return out
}

// finding is a problem of the file's text.
func (f *File) finding(p *yamldoc.Problem, rule string) diag.Finding {
	pos := diag.Pos{File: f.Name, Line: p.Line, Column: p.Column}
	if f.rendered {
		pos.Line, pos.Column = 0, 0
	}
	return diag.Finding{Rule: rule, Severity: diag.Error, Range: diag.At(pos), Message: p.Message}
}
