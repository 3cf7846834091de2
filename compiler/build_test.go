package compiler_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"sort"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	kyaml "sigs.k8s.io/yaml"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// clusterFile is cluster.yaml.
type clusterFile struct {
	Cluster    string                       `json:"cluster"`
	Minor      int                          `json:"minor"`
	Surface    policy.Surface               `json:"surface"`
	Now        string                       `json:"now"`
	Nodes      []capability.Node            `json:"nodes"`
	NoNodes    bool                         `json:"noNodes"`
	Namespaces map[string]map[string]string `json:"namespaces"`
	Classes    map[string]int32             `json:"classes"`
	Volumes    map[string]volumeFile        `json:"volumes"`
}

type volumeFile struct {
	Name     string               `json:"name"`
	Required *corev1.NodeSelector `json:"required"`
}

// requestOf reads a case.
func requestOf(t testing.TB, a *txtar.Archive) compiler.Request {
	t.Helper()
	var c clusterFile
	if err := kyaml.UnmarshalStrict(fileOf(a, "cluster.yaml"), &c); err != nil {
		t.Fatalf("cluster.yaml: %v", err)
	}
	if c.Now == "" {
		c.Now = "2026-06-01"
	}
	now, err := time.Parse(time.DateOnly, c.Now)
	if err != nil {
		t.Fatal(err)
	}
	r := compiler.Request{
		Placement: placementOf(t, fileOf(a, "policy.yaml")),
		Workloads: workloadsOf(t, fileOf(a, "manifests.yaml")),
		Surface:   c.Surface,
		Now:       now,
		Capabilities: capability.Capabilities{
			Cluster: c.Cluster, Minor: c.Minor, Nodes: c.Nodes, NodesKnown: len(c.Nodes) > 0 || c.NoNodes,
			Namespaces: c.Namespaces, NamespacesKnown: c.Namespaces != nil,
			PriorityClasses: c.Classes, Volumes: map[string]capability.Volume{},
		},
	}
	for name, v := range c.Volumes {
		r.Capabilities.Volumes[name] = capability.Volume{Name: v.Name, Affinity: &corev1.VolumeNodeAffinity{Required: v.Required}}
	}
	return r
}

// placementOf reads a Placement from YAML, with the defaults of the schema and
// the position of every field.
func placementOf(t testing.TB, data []byte) *policy.Placement {
	t.Helper()
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		t.Fatalf("policy.yaml: %v", err)
	}
	out := &policy.Placement{}
	if root.Kind == 0 {
		return out
	}
	each(root.Content[0], "clusters", func(name string, n *yaml.Node) {
		c := policy.Cluster{Surface: policy.SurfaceRender}
		decode(t, n, &c)
		c.Name, c.Positions = name, positionsOf(n)
		out.Clusters = append(out.Clusters, c)
	})
	each(root.Content[0], "pools", func(name string, n *yaml.Node) {
		p := policy.Pool{ManagedBy: policy.ManagedNodeGroup}
		decode(t, n, &p)
		p.Name, p.Positions = name, positionsOf(n)
		out.Pools = append(out.Pools, p)
	})
	each(root.Content[0], "policies", func(name string, n *yaml.Node) {
		p := policy.Policy{Level: policy.Mandatory}
		decode(t, n, &p)
		p.Name, p.Positions = name, positionsOf(n)
		withDefaults(&p)
		out.Policies = append(out.Policies, p)
	})
	sort.Slice(out.Clusters, func(i, j int) bool { return out.Clusters[i].Name < out.Clusters[j].Name })
	sort.Slice(out.Pools, func(i, j int) bool { return out.Pools[i].Name < out.Pools[j].Name })
	sort.Slice(out.Policies, func(i, j int) bool { return out.Policies[i].Name < out.Policies[j].Name })
	return out
}

func withDefaults(p *policy.Policy) {
	if p.Nodes != nil {
		for _, pref := range []*policy.Preference{p.Nodes.Prefer, p.Nodes.Disfavor} {
			if pref != nil && pref.Weight == 0 {
				pref.Weight = 50
			}
		}
	}
	for k, s := range p.Spread {
		if s.MaxSkew == 0 {
			s.MaxSkew = 1
		}
		if s.Of.Kind == "" {
			s.Of.Kind = policy.EachWorkload
		}
		p.Spread[k] = s
	}
	for _, m := range []map[string]policy.Colocation{p.Together, p.Apart} {
		for k, c := range m {
			if c.On == "" {
				c.On = "node"
			}
			if c.Weight == 0 {
				c.Weight = 50
			}
			if c.Of.Kind == "" {
				c.Of.Kind = policy.EachWorkload
			}
			m[k] = c
		}
	}
}

// each calls f for each field of the map in the field of that name.
func each(n *yaml.Node, field string, f func(name string, n *yaml.Node)) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value != field {
			continue
		}
		m := n.Content[i+1]
		for j := 0; j+1 < len(m.Content); j += 2 {
			f(m.Content[j].Value, m.Content[j+1])
		}
	}
}

func decode(t testing.TB, n *yaml.Node, into any) {
	t.Helper()
	var v any
	if err := n.Decode(&v); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("line %d: %v", n.Line, err)
	}
}

func positionsOf(n *yaml.Node) policy.Positions {
	out := policy.Positions{}
	var walk func(n *yaml.Node, path []string)
	walk = func(n *yaml.Node, path []string) {
		if _, ok := out[policy.Pointer(path...)]; !ok {
			out[policy.Pointer(path...)] = diag.At(diag.Pos{File: "policy.yaml", Line: n.Line, Column: n.Column})
		}
		below := func(s string) []string { return append(append([]string{}, path...), s) }
		switch n.Kind {
		case yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				key := n.Content[i]
				out[policy.Pointer(below(key.Value)...)] = diag.At(diag.Pos{File: "policy.yaml", Line: key.Line, Column: key.Column})
				walk(n.Content[i+1], below(key.Value))
			}
		case yaml.SequenceNode:
			for i, c := range n.Content {
				walk(c, below(fmt.Sprint(i)))
			}
		default:
		}
	}
	walk(n, nil)
	return out
}

// kindPaths says of each kind in the cases where its templates are.
type kindPaths struct {
	templates map[string][]any
	fields    []workload.Field
	revision  string
	run       string
	immutable bool
	podLabels map[string]string
}

var testKinds = map[string]kindPaths{
	"Pod":         {templates: map[string][]any{"": nil}, immutable: true},
	"Deployment":  {templates: map[string][]any{"": {"spec", "template"}}, revision: "pod-template-hash"},
	"StatefulSet": {templates: map[string][]any{"": {"spec", "template"}}, revision: "controller-revision-hash"},
	"DaemonSet":   {templates: map[string][]any{"": {"spec", "template"}}, revision: "controller-revision-hash"},
	"Job":         {templates: map[string][]any{"": {"spec", "template"}}, immutable: true, podLabels: map[string]string{"batch.kubernetes.io/job-name": "{name}"}},
	"CronJob":     {templates: map[string][]any{"": {"spec", "jobTemplate", "spec", "template"}}, run: "batch.kubernetes.io/controller-uid"},
	"Operated":    {templates: map[string][]any{"main": {"spec", "main"}, "worker": {"spec", "worker"}}, fields: []workload.Field{workload.NodeSelector, workload.Tolerations}},
}

// workloadsOf reads the manifests of a case: a small reader for the kinds above.
func workloadsOf(t testing.TB, data []byte) []*workload.Workload {
	t.Helper()
	var out []*workload.Workload
	d := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var n yaml.Node
		err := d.Decode(&n)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("manifests.yaml: %v", err)
		}
		out = append(out, workloadOf(t, n.Content[0]))
	}
}

func workloadOf(t testing.TB, n *yaml.Node) *workload.Workload {
	t.Helper()
	var object map[string]any
	decode(t, n, &object)
	var meta struct {
		APIVersion, Kind string
		Metadata         struct {
			Name, Namespace string
			Labels          map[string]string
		}
		Spec struct {
			Replicas *int32
			Selector *struct{ MatchLabels map[string]string }
			Strategy struct {
				RollingUpdate *struct{ MaxSurge, MaxUnavailable *int32 }
			}
		}
	}
	data, _ := json.Marshal(object)
	if err := json.Unmarshal(data, &meta); err != nil {
		t.Fatal(err)
	}
	w := &workload.Workload{
		Kind: meta.Kind, Namespace: meta.Metadata.Namespace, Name: meta.Metadata.Name, Labels: meta.Metadata.Labels,
		Replicas: meta.Spec.Replicas, Object: object,
		Source: workload.Source{File: "manifests.yaml", Locate: func(p workload.Path) diag.Range { return locate(n, p) }},
	}
	if i := bytes.IndexByte([]byte(meta.APIVersion), '/'); i >= 0 {
		w.Group, w.Version = meta.APIVersion[:i], meta.APIVersion[i+1:]
	}
	if s := meta.Spec.Selector; s != nil {
		w.Selector = &workload.Selector{MatchLabels: s.MatchLabels}
	}
	if w.Kind == "Deployment" && w.Replicas != nil {
		w.Rollout = rolloutOf(*w.Replicas, meta.Spec.Strategy.RollingUpdate)
	}
	kind, ok := testKinds[meta.Kind]
	if !ok {
		t.Fatalf("the test reader does not know kind %q", meta.Kind)
	}
	for _, name := range sortedNames(kind.templates) {
		if tpl, ok := templateOf(t, w, kind, name, kind.templates[name]); ok {
			w.Templates = append(w.Templates, tpl)
		}
	}
	return w
}

func rolloutOf(replicas int32, r *struct{ MaxSurge, MaxUnavailable *int32 }) *workload.Rollout {
	out := &workload.Rollout{
		Strategy: "RollingUpdate",
		MaxSurge: int32(math.Ceil(float64(replicas) / 4)), MaxUnavailable: replicas / 4,
	}
	if r != nil && r.MaxSurge != nil {
		out.MaxSurge = *r.MaxSurge
	}
	if r != nil && r.MaxUnavailable != nil {
		out.MaxUnavailable = *r.MaxUnavailable
	}
	return out
}

func templateOf(t testing.TB, w *workload.Workload, kind kindPaths, name string, path []any) (workload.Template, bool) {
	t.Helper()
	template := any(w.Object)
	for _, p := range path {
		m, _ := template.(map[string]any)
		if template = m[p.(string)]; template == nil {
			return workload.Template{}, false
		}
	}
	data, _ := json.Marshal(template)
	var pod struct {
		Metadata struct{ Labels map[string]string }
		Spec     corev1.PodSpec
	}
	if err := json.Unmarshal(data, &pod); err != nil {
		t.Fatal(err)
	}
	fields := kind.fields
	if fields == nil {
		fields = workload.Fields
	}
	spec := append(append(workload.Path{}, path...), "spec")
	out := workload.Template{
		Name: name, Labels: map[string]string{}, Paths: map[workload.Field]workload.Path{}, RevisionLabel: kind.revision, RunLabel: kind.run,
		Immutable: kind.immutable, ServiceAccount: "default",
	}
	if pod.Spec.ServiceAccountName != "" {
		out.ServiceAccount = pod.Spec.ServiceAccountName
	}
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			out.Claims = append(out.Claims, v.PersistentVolumeClaim.ClaimName)
		}
	}
	for _, f := range fields {
		out.Paths[f] = append(append(workload.Path{}, spec...), string(f))
	}
	if kind.fields == nil {
		out.PodSpec = spec
	}
	for k, v := range pod.Metadata.Labels {
		out.Labels[k] = v
	}
	for k, v := range kind.podLabels {
		if v == "{name}" {
			v = w.Name
		}
		if out.PodLabels == nil {
			out.PodLabels = map[string]string{}
		}
		out.Labels[k], out.PodLabels[k] = v, v
	}
	out.Pods = workload.PodFields{
		NodeSelector: pod.Spec.NodeSelector, Affinity: pod.Spec.Affinity, Tolerations: pod.Spec.Tolerations,
		TopologySpreadConstraints: pod.Spec.TopologySpreadConstraints, PriorityClassName: pod.Spec.PriorityClassName,
		PreemptionPolicy: pod.Spec.PreemptionPolicy, SchedulerName: pod.Spec.SchedulerName,
	}
	out.Current = out.Pods
	return out, true
}

func sortedNames(m map[string][]any) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

// locate returns where the path was written, or its nearest ancestor.
func locate(n *yaml.Node, path workload.Path) diag.Range {
	at := n
	for _, p := range path {
		var next *yaml.Node
		switch step := p.(type) {
		case string:
			for i := 0; i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == step {
					at, next = n.Content[i], n.Content[i+1]
				}
			}
		case int:
			if step < len(n.Content) {
				at, next = n.Content[step], n.Content[step]
			}
		}
		if next == nil {
			break
		}
		n = next
	}
	return diag.At(diag.Pos{File: "manifests.yaml", Line: at.Line, Column: at.Column})
}
