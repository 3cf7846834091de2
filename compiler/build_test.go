package compiler_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	kyaml "sigs.k8s.io/yaml"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/test/golden"
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
	NodePools  []map[string]any             `json:"nodePools"`
	// Schedulers are those that were read from the cluster; nil if it was not asked.
	Schedulers []capability.Scheduler `json:"schedulers"`
	Installing bool                   `json:"installing"`
	// PodGroups is the form in which the cluster knows gangs.
	PodGroups        capability.PodGroupForm `json:"podGroups"`
	PodGroupTopology bool                    `json:"podGroupTopology"`
	Gangs            map[string]int32        `json:"gangs"`
}

type volumeFile struct {
	Name     string               `json:"name"`
	Required *corev1.NodeSelector `json:"required"`
}

// requestOf reads a case.
func requestOf(t testing.TB, a *txtar.Archive) compiler.Request {
	t.Helper()
	var c clusterFile
	if err := kyaml.UnmarshalStrict(golden.File(a, "cluster.yaml"), &c); err != nil {
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
		Placement: placementOf(t, golden.File(a, "policy.yaml")),
		Workloads: named(read(t, manifestsIn(t, a), kindsOf(t, golden.File(a, "policy.yaml"))).Workloads, "manifests.yaml"),
		Surface:   c.Surface,
		Now:       now, Installing: c.Installing,
		Capabilities: capability.Capabilities{
			Cluster: c.Cluster, Minor: c.Minor, Nodes: c.Nodes, NodesKnown: len(c.Nodes) > 0 || c.NoNodes,
			Namespaces: c.Namespaces, NamespacesKnown: c.Namespaces != nil,
			PriorityClasses: c.Classes, Volumes: map[string]capability.Volume{},
			Schedulers: c.Schedulers, SchedulersKnown: c.Schedulers != nil,
			PodGroups: c.PodGroups, PodGroupTopology: c.PodGroupTopology, Gangs: c.Gangs,
		},
	}
	for _, object := range c.NodePools {
		np, err := capability.ReadNodePool(object)
		if err != nil {
			t.Fatal(err)
		}
		r.Capabilities.NodePools, r.Capabilities.NodePoolsKnown = append(r.Capabilities.NodePools, np), true
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
	each(root.Content[0], "kinds", func(name string, n *yaml.Node) {
		var k policy.Kind
		decode(t, n, &k)
		k.Name, k.Positions = name, positionsOf(n)
		out.Kinds = append(out.Kinds, k)
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
				if pref.MustWin {
					pref.Weight = 100
				}
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
				if c.MustWin {
					c.Weight = 100
				}
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
