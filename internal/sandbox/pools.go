package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Pool is a number of fake nodes that are alike.
type Pool struct {
	// Name names the pool: a DNS label.
	Name string
	// Count is how many nodes the pool has; 0 is allowed.
	Count int
	// NodeName is the pattern of the nodes' names; empty means "{pool}-{index}".
	// Patterns may hold {pool}, {index} (from 0), {zone} and {region}.
	NodeName string
	// Zones are the values of topology.kubernetes.io/zone, given to the nodes in
	// turn; without any, the nodes have no such label.
	Zones []string
	// Region is the value of topology.kubernetes.io/region, or empty for none.
	Region string
	// Labels are the nodes' labels beside the usual ones (hostname, os, arch,
	// zone, region), which they may override. Values are patterns too, with
	// {name} for the node's name.
	Labels map[string]string
	// WithoutLabels takes usual labels away, such as kubernetes.io/hostname.
	WithoutLabels []string
	// Annotations are the nodes' annotations; values are patterns as in Labels.
	Annotations map[string]string
	// Taints are the nodes' taints.
	Taints []corev1.Taint
	// Capacity is what a node has, and all of it is allocatable. Missing are
	// filled in: 8 cpu, 32Gi memory, 100Gi ephemeral-storage, 110 pods.
	Capacity corev1.ResourceList
	// Unschedulable cordons the nodes.
	Unschedulable bool
}

// poolsRule is the rule of all findings about a file of pools.
const poolsRule = "input/pools"

// ParsePools reads a file of node pools; file is its name for messages. What is
// wrong comes back as diag.Findings, all of it at once, with positions.
//
//	pools:
//	- name: gpu
//	  count: 40
//	  zones: [eu-1a, eu-1b]
//	  region: eu-1
//	  labels: {tier: accelerated}
//	  taints: ["nvidia.com/gpu=present:NoSchedule"]
//	  capacity: {cpu: 64, memory: 512Gi, nvidia.com/gpu: 8}
func ParsePools(file string, data []byte) ([]Pool, error) {
	p := &poolParser{file: file}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		p.syntax(err)
		return nil, p.findings
	}
	if len(document.Content) == 0 {
		p.report(&yaml.Node{Line: 1, Column: 1}, "the file is empty; it must hold \"pools:\" and a list (an empty list removes all nodes)")
		return nil, p.findings
	}
	if err := decoder.Decode(new(yaml.Node)); err == nil {
		p.report(document.Content[0], "the file holds several YAML documents; put all pools into one list")
	}
	var pools []Pool
	found := false
	p.fields(document.Content[0], "the file", map[string]func(*yaml.Node){
		"pools": func(n *yaml.Node) { found, pools = true, p.pools(n) },
	})
	if !found && len(p.findings) == 0 {
		p.report(document.Content[0], "the list \"pools\" is missing")
	}
	if len(p.findings) > 0 {
		return nil, p.findings.Sort()
	}
	return pools, nil
}

// poolParser turns YAML nodes into pools and collects what is wrong with them.
type poolParser struct {
	file     string
	findings diag.Findings
}

func (p *poolParser) report(n *yaml.Node, format string, args ...any) {
	p.findings = append(p.findings, diag.Finding{
		Rule:     poolsRule,
		Severity: diag.Error,
		Range:    diag.At(diag.Pos{File: p.file, Line: n.Line, Column: n.Column}),
		Message:  fmt.Sprintf(format, args...),
	})
}

// syntax reports an error of the YAML parser, which knows only the line.
func (p *poolParser) syntax(err error) {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if rest, ok := strings.CutPrefix(message, "line "); ok {
		number, text, _ := strings.Cut(rest, ": ")
		if n, err := strconv.Atoi(number); err == nil {
			line, message = n, text
		}
		if strings.HasPrefix(message, "did not find expected") {
			line++ // the library counts the lines of these errors from 0
		}
	}
	p.report(&yaml.Node{Line: line}, "not YAML: %s", message)
}

func (p *poolParser) pools(list *yaml.Node) []Pool {
	var pools []Pool
	total := 0
	names := map[string]int{} // line of each pool
	nodes := map[string]string{}
	for _, n := range p.list(list, "pools") {
		before := len(p.findings)
		pool := p.pool(n)
		if len(p.findings) > before {
			continue
		}
		if line, twice := names[pool.Name]; twice {
			p.report(n, "pool %q is there twice, first at line %d", pool.Name, line)
			continue
		}
		names[pool.Name] = n.Line
		if total += pool.Count; total > maxNodes {
			p.report(n, "the pools up to %q have %d nodes together; the limit is %d", pool.Name, total, maxNodes)
			break
		}
		for i := range pool.Count {
			name := pool.nodeName(i)
			if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
				p.report(n, "pool %q makes a node called %q, which is no node name: %s", pool.Name, name, first(problems))
				break
			}
			if other, twice := nodes[name]; twice {
				p.report(n, "pool %q makes a second node called %q, as pool %q does; write {index} (and {pool}) into nodeName", pool.Name, name, other)
				break
			}
			nodes[name] = pool.Name
		}
		pools = append(pools, pool)
	}
	return pools
}

func (p *poolParser) pool(n *yaml.Node) Pool {
	pool := Pool{Count: 1}
	p.fields(n, "a pool", map[string]func(*yaml.Node){
		"name":          func(v *yaml.Node) { pool.Name = p.text(v, "name") },
		"count":         func(v *yaml.Node) { pool.Count = p.count(v) },
		"nodeName":      func(v *yaml.Node) { pool.NodeName = p.pattern(v, "nodeName", nameVariables()) },
		"zones":         func(v *yaml.Node) { pool.Zones = p.labelValues(v, "zones") },
		"region":        func(v *yaml.Node) { pool.Region = p.labelValue(v, "region") },
		"labels":        func(v *yaml.Node) { pool.Labels = p.labels(v, "labels", true) },
		"withoutLabels": func(v *yaml.Node) { pool.WithoutLabels = p.texts(v, "withoutLabels") },
		"annotations":   func(v *yaml.Node) { pool.Annotations = p.labels(v, "annotations", false) },
		"taints":        func(v *yaml.Node) { pool.Taints = p.taints(v) },
		"capacity":      func(v *yaml.Node) { pool.Capacity = p.capacity(v) },
		"unschedulable": func(v *yaml.Node) { pool.Unschedulable = p.boolean(v, "unschedulable") },
	})
	if n.Kind == yaml.MappingNode {
		if problems := validation.IsDNS1123Label(pool.Name); len(problems) > 0 {
			p.report(n, "a pool's name must be a DNS label, not %q: %s", pool.Name, first(problems))
		}
	}
	return pool
}

// maxNodes limits a file: more is a slip of the finger, and would fill the disk.
const maxNodes = 20_000

// first returns the first of the problems that a validation found, without the
// regular expression that upstream appends.
func first(problems []string) string {
	problem, _, _ := strings.Cut(problems[0], " (e.g.")
	return problem
}

func (p *poolParser) count(n *yaml.Node) int {
	count, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || count < 0 || count > maxNodes {
		p.report(n, "count must be a whole number from 0 to %d, not %s", maxNodes, valueName(n))
		return 0
	}
	return count
}

func (p *poolParser) labelValue(n *yaml.Node, what string) string {
	value := p.text(n, what)
	if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
		p.report(n, "%s %q is not a label value: %s", what, value, first(problems))
	}
	return value
}

func (p *poolParser) labelValues(n *yaml.Node, what string) []string {
	var values []string
	for _, item := range p.list(n, what) {
		values = append(values, p.labelValue(item, what))
	}
	return values
}

// labels reads labels, or annotations, whose values may be anything.
func (p *poolParser) labels(n *yaml.Node, what string, checkValues bool) map[string]string {
	labels := map[string]string{}
	for key, value := range p.entries(n, what) {
		if problems := validation.IsQualifiedName(key.Value); len(problems) > 0 {
			p.report(key, "%s: %q is not a label key: %s", what, key.Value, first(problems))
		}
		before := len(p.findings)
		text := p.pattern(value, what, append(nameVariables(), "name"))
		if checkValues && len(p.findings) == before {
			// With every variable at its shortest, what stays must be right.
			sample := expand(text, map[string]string{"pool": "x", "index": "0", "zone": "x", "region": "x", "name": "x"})
			if problems := validation.IsValidLabelValue(sample); len(problems) > 0 {
				p.report(value, "%s: %q is not a label value: %s", what, text, first(problems))
			}
		}
		labels[key.Value] = text
	}
	return labels
}

// pattern reads a text with variables in braces.
func (p *poolParser) pattern(n *yaml.Node, what string, variables []string) string {
	text := p.text(n, what)
	rest := text
	for {
		_, after, opened := strings.Cut(rest, "{")
		if !opened {
			return text
		}
		name, following, closed := strings.Cut(after, "}")
		if !closed {
			p.report(n, "%s: %q opens a brace and does not close it; the variables are {%s}", what, text, strings.Join(variables, "}, {"))
			return text
		}
		if !slices.Contains(variables, name) {
			p.report(n, "%s: %q has no variable {%s}; the variables are {%s}", what, text, name, strings.Join(variables, "}, {"))
			return text
		}
		rest = following
	}
}

func (p *poolParser) capacity(n *yaml.Node) corev1.ResourceList {
	capacity := corev1.ResourceList{}
	for key, value := range p.entries(n, "capacity") {
		text := p.text(value, "capacity of "+key.Value)
		quantity, err := resource.ParseQuantity(text)
		if err != nil || quantity.Sign() < 0 {
			p.report(value, "capacity: %q of %q is not a quantity such as 8, 500m or 32Gi", text, key.Value)
			continue
		}
		if problems := validation.IsQualifiedName(key.Value); len(problems) > 0 {
			p.report(key, "capacity: %q is not a resource name: %s", key.Value, first(problems))
		}
		capacity[corev1.ResourceName(key.Value)] = quantity
	}
	return capacity
}
