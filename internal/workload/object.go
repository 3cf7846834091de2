package workload

import (
	"cmp"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/plain"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// FromObject returns the workload in an object, with the given source; false
// if the object is of a kind that has no pod template. Findings tell of what is
// wrong in it; with an error among them the workload may lack fields.
//
// The object must be plain JSON with whole numbers as int64, as the API
// machinery's unstructured objects are, and may not change afterwards.
func FromObject(object map[string]any, o Options, source Source) (*Workload, diag.Findings, bool) {
	kinds := o.Kinds
	if kinds == nil {
		kinds = defaultKinds()
	}
	h := headOf(object, o.Namespace)
	k, ok := kinds.byName[GroupKind{h.Group, h.Kind}]
	if !ok {
		return nil, nil, false
	}
	r := &reader{kinds: kinds, kind: k, w: &Workload{
		Group: h.Group, Version: h.Version, Kind: h.Kind, Namespace: h.Namespace, Name: h.Name,
		NamespaceUnsaid: h.unsaid && !source.Live, Object: object, Source: source,
	}}
	r.metadata()
	base := r.withdraw()
	r.templates(base)
	return r.w, r.findings, true
}

// reader reads one workload.
type reader struct {
	kinds    *Kinds
	kind     *kind
	w        *Workload
	findings diag.Findings
}

func (r *reader) report(rule string, path Path, severity diag.Severity, message string) {
	r.findings = append(r.findings, diag.Finding{
		Rule: rule, Severity: severity, Subject: r.w.Ref(), Range: r.w.Source.At(path...), Message: message,
	})
}

// head is what tells an object from others.
type head struct {
	Group, Version, Kind, Namespace, Name string
	// unsaid says that nobody named the namespace.
	unsaid bool
}

// headOf reads the head of an object; objects without a namespace get the given
// one, or "default", but for those of kinds that are in none.
func headOf(object map[string]any, namespace string) head {
	apiVersion, _ := object["apiVersion"].(string)
	group, version, ok := strings.Cut(apiVersion, "/")
	if !ok {
		group, version = "", apiVersion
	}
	h := head{Group: group, Version: version}
	h.Kind, _ = object["kind"].(string)
	meta, _ := object["metadata"].(map[string]any)
	h.Name, _ = meta["name"].(string)
	if h.Name == "" {
		h.Name, _ = meta["generateName"].(string)
	}
	if clusterScoped[GroupKind{h.Group, h.Kind}] {
		return h
	}
	said, _ := meta["namespace"].(string)
	h.Namespace = cmp.Or(said, namespace, metav1.NamespaceDefault)
	h.unsaid = said == "" && namespace == ""
	return h
}

func (r *reader) metadata() {
	w := r.w
	meta, _ := w.Object["metadata"].(map[string]any)
	w.Labels = r.stringMap(meta["labels"], "metadata", "labels")
	w.Annotations = r.stringMap(meta["annotations"], "metadata", "annotations")
	w.UID, _ = meta["uid"].(string)
	w.ResourceVersion, _ = meta["resourceVersion"].(string)
	owners, _ := meta["ownerReferences"].([]any)
	for _, o := range owners {
		owner, _ := o.(map[string]any)
		if is, _ := owner["controller"].(bool); is {
			w.Controller = fmt.Sprintf("%v/%v", owner["kind"], owner["name"])
		}
	}
	if r.kind.replicas != nil {
		if n, ok := lookupInt(w.Object, r.kind.replicas.path(binding{})); ok {
			w.Replicas = &n
		}
	}
	if w.Kind == "Pod" && w.Group == "" {
		n := int32(1)
		w.Replicas = &n
	}
	w.Rollout = r.kind.rollout.resolve(w.Object, w.Replicas)
	w.Selector = r.selector()
}

func lookupInt(object map[string]any, path Path) (int32, bool) {
	v, _ := Lookup(object, path...)
	n, ok := v.(int64)
	if !ok || n < 0 || n > 1<<31-1 {
		return 0, false
	}
	return int32(n), true
}

// stringMap reads a map of strings, nil if there is none.
func (r *reader) stringMap(v any, path ...any) map[string]string {
	m, ok := v.(map[string]any)
	if v == nil {
		return nil
	}
	if !ok {
		r.report("workload/invalid-field", path, diag.Error, fmt.Sprintf("%q must be a map, not %s", path[len(path)-1], plain.Describe(v)))
		return nil
	}
	out := make(map[string]string, len(m))
	for _, k := range sortedKeys(m) {
		s, ok := m[k].(string)
		if !ok && m[k] != nil {
			r.report("workload/invalid-field", Path(path).join(k), diag.Error, fmt.Sprintf("%q must be a string in quotes, not %s", k, plain.Describe(m[k])))
			continue
		}
		out[k] = s
	}
	return out
}

func (r *reader) selector() *Selector {
	if r.kind.selector == nil {
		return nil
	}
	path := r.kind.selector.path(binding{})
	v, ok := Lookup(r.w.Object, path...)
	if !ok || v == nil {
		return nil
	}
	m, _ := v.(map[string]any)
	if r.w.Kind == "ReplicationController" {
		return &Selector{MatchLabels: r.stringMap(v, path...)}
	}
	out := &Selector{MatchLabels: r.stringMap(m["matchLabels"], path.join("matchLabels")...)}
	list, _ := m["matchExpressions"].([]any)
	for _, e := range list {
		x, _ := e.(map[string]any)
		key, _ := x["key"].(string)
		operator, _ := x["operator"].(string)
		expression := Expression{Key: key, Operator: operator}
		values, _ := x["values"].([]any)
		for _, v := range values {
			if s, ok := v.(string); ok {
				expression.Values = append(expression.Values, s)
			}
		}
		out.MatchExpressions = append(out.MatchExpressions, expression)
	}
	return out
}

// withdraw reads the record and returns the object without us.
func (r *reader) withdraw() map[string]any {
	w := r.w
	text, ok := w.Annotations[ownership.Annotation]
	if !ok {
		return w.Object
	}
	record, err := ownership.Parse(text)
	where := Path{"metadata", "annotations", ownership.Annotation}
	if err != nil {
		r.report("workload/damaged-record", where, diag.Error, err.Error())
		return w.Object
	}
	if record.UID != "" && record.UID != w.UID {
		r.report("workload/copied-record", where, diag.Info, "the record of what is ours was copied from another object and is not believed; its placement fields count as the manifest's own")
		return w.Object
	}
	w.Record = r.kind.relocate(record, w.Object)
	w.Record.Recall(w.Object)
	base, edited := ownership.Withdraw(w.Object, w.Record)
	for _, e := range edited {
		r.report("workload/edited-since", w.pathOf(e.Path), diag.Warning, fmt.Sprintf("%q was changed by somebody since it was written here by a policy; what is there now counts as the manifest's own", e.Path))
	}
	return base
}

// pathOf turns a JSON pointer into a path of the object.
func (w *Workload) pathOf(pointer string) Path {
	var path Path
	var v any = w.Object
	for _, t := range ownership.Tokens(pointer) {
		var step any = t
		if _, ok := v.([]any); ok {
			var i int
			if _, err := fmt.Sscan(t, &i); err == nil {
				step = i
			}
		}
		path = append(path, step)
		v, _ = Lookup(v, step)
	}
	return path
}
