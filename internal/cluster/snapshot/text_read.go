package snapshot

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/yamldoc"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// The header of a snapshot that is written as text: one object of ours among the
// others, which may be left out.
const (
	headerVersion = "kubectl-sched.github.io/v1alpha1"
	headerKind    = "Snapshot"
)

// readText reads a snapshot that was written by hand, or that kubectl wrote: any
// number of YAML or JSON documents with objects and lists of them. It is strict; what
// the API server, the controllers and the kubelet would fill in is filled in.
func readText(r io.Reader, o ReadOptions) (*Snapshot, error) {
	data, err := io.ReadAll(io.LimitReader(r, o.Limits.Text+1))
	if err != nil {
		return nil, fmt.Errorf("read snapshot %s: %w", o.File, err)
	}
	if int64(len(data)) > o.Limits.Text {
		return nil, fmt.Errorf("read snapshot %s: as text it may have %d MiB, and it has more; write it as a compressed file", o.File, o.Limits.Text>>20)
	}
	if p := yamldoc.CheckText(data); p != nil {
		p.Message = "this is neither a snapshot nor Kubernetes objects in YAML or JSON: " + p.Message
		return nil, diag.Findings{problemFinding(o.File, p, "input/not-text")}
	}
	kinds := o.Kinds
	if kinds == nil {
		kinds, _ = workload.NewKinds(nil)
	}
	t := &textReader{file: o.File, kinds: kinds, s: &Snapshot{}, seen: map[string]place{}, places: map[Object]place{}}
	for _, d := range yamldoc.Split(data) {
		t.document(d)
	}
	for _, object := range t.waiting {
		object()
	}
	if t.objects == 0 && len(t.findings) == 0 {
		t.findings = append(t.findings, diag.Finding{Rule: "input/empty", Severity: diag.Error, Range: diag.At(diag.Pos{File: o.File}), Message: "there is no object in it"})
	}
	if !t.findings.HasErrors() {
		t.complete()
	}
	if t.findings.HasErrors() {
		return nil, t.findings.Sort()
	}
	t.s.Sort()
	return t.s, nil
}

func problemFinding(file string, p *yamldoc.Problem, rule string) diag.Finding {
	return diag.Finding{Rule: rule, Severity: diag.Error, Range: diag.At(diag.Pos{File: file, Line: p.Line, Column: p.Column}), Message: p.Message}
}

type textReader struct {
	file  string
	kinds *workload.Kinds
	s     *Snapshot
	// objects counts what was read, the header too.
	objects   int
	hasHeader bool
	// waiting read the objects once the header is known, wherever it stands: it says
	// which schedulers there are, and so which annotations are read.
	waiting []func()
	// seen has the place of each object by its kind and name, places by itself.
	seen     map[string]place
	places   map[Object]place
	findings diag.Findings
}

// place is where an object is in the text.
type place struct {
	doc    yamldoc.Doc
	prefix workload.Path
}

// rangeOf returns where the path, or what is nearest above it, is written.
func (t *textReader) rangeOf(p place, path ...any) diag.Range {
	at := diag.Pos{File: t.file, Line: p.doc.Line}
	node, err := p.doc.Tree()
	if err != nil || node == nil {
		return diag.At(at)
	}
	start := node.Start
	for _, step := range append(slices.Clone(p.prefix), path...) {
		node = node.Resolve()
		key, isKey := step.(string)
		i := -1
		if isKey {
			i = node.Index(key)
		} else if n, ok := step.(int); ok && node.Kind == yamldoc.Sequence && n < len(node.Values) {
			i = n
		}
		if i < 0 {
			break
		}
		if isKey {
			start = node.Keys[i].Start
		} else {
			start = node.Values[i].Start
		}
		node = node.Values[i]
	}
	at.Line, at.Column = p.doc.Position(start)
	return diag.At(at)
}

func (t *textReader) fail(p place, subject, message string, path ...any) {
	t.findings = append(t.findings, diag.Finding{
		Rule: "snapshot/invalid", Severity: diag.Error, Subject: subject, Range: t.rangeOf(p, path...), Message: message,
	})
}

func (t *textReader) document(d yamldoc.Doc) {
	value, problems := d.Decode()
	for _, p := range problems {
		t.findings = append(t.findings, problemFinding(t.file, p, "input/invalid-yaml"))
	}
	if value == nil || len(problems) > 0 {
		return
	}
	t.value(value, place{doc: d})
}

// value reads an object, or the objects of a list.
func (t *textReader) value(value any, p place) {
	object, ok := value.(map[string]any)
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	if !ok || apiVersion == "" || kind == "" {
		t.fail(p, "", "this is no Kubernetes object: it has no apiVersion and kind")
		return
	}
	if items, isItems := object["items"].([]any); isItems && strings.HasSuffix(kind, "List") {
		for i, item := range items {
			inner := place{doc: p.doc, prefix: append(slices.Clone(p.prefix), "items", i)}
			if m, ok := item.(map[string]any); ok && kind != "List" && m["kind"] == nil && m["apiVersion"] == nil {
				m["apiVersion"], m["kind"] = apiVersion, strings.TrimSuffix(kind, "List")
			}
			t.value(item, inner)
		}
		t.objects++
		return
	}
	t.objects++
	if apiVersion == headerVersion && kind == headerKind {
		t.header(object, p)
		return
	}
	t.waiting = append(t.waiting, func() { t.object(object, schema.FromAPIVersionAndKind(apiVersion, kind), p) })
}

func (t *textReader) header(object map[string]any, p place) {
	if t.hasHeader {
		t.fail(p, headerKind, "a snapshot says only once what it is; there is such an object already")
		return
	}
	t.hasHeader = true
	var h struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		header
	}
	if !t.decode(object, &h, headerKind, p) {
		return
	}
	for i, name := range h.Served {
		if err := checkServed(name); err != nil {
			t.fail(p, headerKind, err.Error(), "served", i)
		}
	}
	h.into(t.s)
}

// decode decodes strictly, and reports what does not fit.
func (t *textReader) decode(object map[string]any, into any, subject string, p place) bool {
	mistakes := decodeStrict(object, into)
	for _, m := range mistakes {
		t.fail(p, subject, m.message, m.path...)
	}
	return len(mistakes) == 0
}

func (t *textReader) object(object map[string]any, gvk schema.GroupVersionKind, p place) {
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	subject := strings.TrimSpace(gvk.Kind + " " + name)
	k, ok := KindOf(gvk.GroupKind())
	switch {
	case !ok && slices.Contains(t.kinds.All(), workload.GroupKind{Group: gvk.Group, Kind: gvk.Kind}):
		k = Custom()
	case !ok:
		t.fail(p, subject, fmt.Sprintf("scheduling does not depend on a %s, and a snapshot cannot hold it%s; take it out", gvk.Kind, t.suggest(gvk)), "kind")
		return
	case k.Version != gvk.Version:
		t.fail(p, subject, fmt.Sprintf("of a %s, version %q is read; write apiVersion: %s", gvk.Kind, k.Version, k.GroupVersion()), "apiVersion")
		return
	}
	if name == "" {
		t.fail(p, subject, "it has no metadata.name", "metadata")
		return
	}
	o, ok := t.read(k, object, subject, p)
	if !ok {
		return
	}
	switch {
	case !k.Namespaced && o.GetNamespace() != "":
		t.fail(p, subject, fmt.Sprintf("a %s is in no namespace; leave metadata.namespace out", gvk.Kind), "metadata", "namespace")
		return
	case k.Namespaced && o.GetNamespace() == "":
		o.SetNamespace("default")
	}
	key := gvk.GroupKind().String() + " " + nameOf(o)
	if before, twice := t.seen[key]; twice {
		t.findings = append(t.findings, diag.Finding{
			Rule: "input/duplicate", Severity: diag.Error, Subject: subject, Range: t.rangeOf(p), Message: "it is there twice; keep one",
			Related: []diag.Related{{Range: t.rangeOf(before), Message: "the first"}},
		})
		return
	}
	t.seen[key], t.places[o] = p, p
	k.Add(t.s, o)
}

// read decodes an object of the kind, and keeps of it what scheduling reads.
func (t *textReader) read(k *Kind, object map[string]any, subject string, p place) (Object, bool) {
	var o Object = &unstructured.Unstructured{Object: object}
	if k.Typed {
		o = k.New()
		if !t.decode(object, o, subject, p) {
			return nil, false
		}
	}
	kept, err := k.Trim(o, t.kinds, KeepsAnnotation(t.s.Schedulers))
	var findings diag.Findings
	switch {
	case errors.As(err, &findings):
		for _, f := range findings {
			f.Range = t.rangeOf(p)
			t.findings = append(t.findings, f)
		}
		return nil, false
	case err != nil:
		t.fail(p, subject, err.Error())
		return nil, false
	}
	return kept, true
}

// suggest names the kind that was most likely meant.
func (t *textReader) suggest(gvk schema.GroupVersionKind) string {
	var names []string
	for _, k := range allKinds() {
		if k.Kind != "" {
			names = append(names, k.Kind)
		}
	}
	if near, ok := diag.Nearest(gvk.Kind, names); ok {
		return fmt.Sprintf(" (did you mean %s?)", near)
	}
	return ""
}
