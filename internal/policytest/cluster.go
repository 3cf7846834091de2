package policytest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/internal/preview"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// defaultVersion is that of a cluster of which nobody says one.
const defaultVersion = "1.37"

// What a node can give if the test does not say.
var defaultResources = map[string]string{"cpu": "8", "memory": "32Gi", "pods": "110"}

// setup is the cluster of a test.
type setup struct {
	cluster  *policy.Cluster // nil where the document has none
	snapshot *snapshot.Snapshot
	// groups are the pools of the nodes by their group, and templates a node of each.
	groups    map[string]string
	templates map[string]*corev1.Node
	// running are the pods of each group of running ones.
	running map[string][]simulate.Ref
	pools   preview.Pools
}

// pick finds the cluster that the test is about.
func (r *run) pick() {
	clusters := r.Placement.Clusters
	switch {
	case r.test.Cluster != "":
		r.cluster = r.Placement.Cluster(r.test.Cluster)
	case len(clusters) == 1:
		r.cluster = &clusters[0]
	case len(clusters) > 1:
		names := make([]string, len(clusters))
		for i, c := range clusters {
			names[i] = strconv.Quote(c.Name)
		}
		r.bad(ruleError, nil, "the policies speak of several clusters; say with cluster which one is meant: %s", strings.Join(names, ", "))
	}
}

// build makes the snapshot: of the file, of what the test describes and of the objects
// that are given beside the workloads.
func (r *run) build(others []*workload.Object) {
	r.snapshot = &snapshot.Snapshot{}
	if r.test.Snapshot != "" {
		if path, ok := r.path([]string{"snapshot"}, r.test.Snapshot); ok {
			s, err := snapshot.ReadFile(path, snapshot.ReadOptions{File: path, Kinds: r.Kinds})
			if err != nil {
				r.unreadable([]string{"snapshot"}, err)
				return
			}
			r.snapshot = s
		}
	}
	r.read([]string{"nodes"}, r.described(others))
	if r.test.Objects != "" {
		r.read([]string{"objects"}, []byte(r.test.Objects))
	}
	if r.broken() {
		return
	}
	r.snapshot.Sort()
	r.settleVersion()
	r.settlePools()
	for _, name := range slices.Sorted(maps.Keys(r.test.Running)) {
		for i, node := range r.test.Running[name].On {
			r.nodeNamed([]string{"running", name, "on", strconv.Itoa(i)}, node)
		}
	}
}

// settleVersion says which cluster the snapshot is of.
func (r *run) settleVersion() {
	declared := ""
	r.snapshot.Cluster = ""
	if r.cluster != nil {
		r.snapshot.Cluster, declared = r.cluster.Name, r.cluster.Version
	}
	if said := cmp.Or(r.test.Version, declared); said != "" {
		r.snapshot.Version = "v" + said + ".0"
	}
	r.snapshot.Version = cmp.Or(r.snapshot.Version, "v"+defaultVersion+".0")
}

// settlePools says which pool each node is in.
func (r *run) settlePools() {
	r.pools = preview.PoolsOf(r.Placement, r.snapshot)
	for node, group := range r.groups {
		if r.Placement.Pool(group) != nil && r.pools[node] == "" {
			r.bad(ruleError, []string{"nodes", group}, "node %s is not in pool %q, though its group is called so: give the group the labels by which the pool tells its nodes", node, group)
			return
		}
		if r.pools[node] == "" {
			r.pools[node] = group
		}
	}
}

// unreadable notes why a file or text of the test cannot be read.
func (r *run) unreadable(path []string, err error) {
	var findings diag.Findings
	if !errors.As(err, &findings) {
		r.bad(ruleError, path, "%v", err)
		return
	}
	for _, f := range findings {
		if f.Range.Start.File == inline {
			// The text is in the test, and its lines are not those of a file.
			at := ""
			if f.Range.Start.Line > 0 && path[0] == "objects" {
				at = fmt.Sprintf("line %d of the objects: ", f.Range.Start.Line)
			}
			f.Range, f.Message = r.test.Positions.At(path...), at+f.Message
		}
		f.Subject = strings.TrimSuffix(r.subject()+": "+f.Subject, ": ")
		r.result.Errors = append(r.result.Errors, f)
	}
}

// inline stands for the name of a file where the text is the test's own.
const inline = "-"

// read adds objects to the snapshot.
func (r *run) read(path []string, text []byte) {
	if len(text) == 0 {
		return
	}
	more, err := snapshot.Read(bytes.NewReader(text), snapshot.ReadOptions{File: inline, Kinds: r.Kinds})
	if err != nil {
		r.unreadable(path, err)
		return
	}
	for _, k := range snapshot.Kinds() {
		there := map[string]bool{}
		for o := range k.All(r.snapshot) {
			there[o.GetNamespace()+"/"+o.GetName()] = true
		}
		for o := range k.All(more) {
			kind := fmt.Sprintf("%T", o)
			switch {
			case !there[o.GetNamespace()+"/"+o.GetName()]:
				k.Add(r.snapshot, o)
			case strings.HasSuffix(kind, ".Namespace"), strings.HasSuffix(kind, ".PriorityClass"):
				// Those that every cluster has.
			default:
				r.bad(ruleError, path, "%s %q is in the cluster twice", kind[strings.LastIndex(kind, ".")+1:], o.GetName())
			}
		}
	}
	r.snapshot.Version = cmp.Or(r.snapshot.Version, more.Version)
	r.snapshot.Schedulers = append(r.snapshot.Schedulers, more.Schedulers...)
}

// described returns the objects that the test describes, and those of the manifests
// that scheduling reads, as text.
func (r *run) described(others []*workload.Object) []byte {
	r.groups, r.templates, r.running = map[string]string{}, map[string]*corev1.Node{}, map[string][]simulate.Ref{}
	var objects []any
	for _, namespace := range r.namespaces(others) {
		objects = append(objects, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}})
	}
	for _, group := range slices.Sorted(maps.Keys(r.test.Nodes)) {
		g := r.test.Nodes[group]
		template, ok := r.template(group, g)
		if !ok {
			continue
		}
		count := max(1, len(g.Zones))
		if g.Count != nil {
			count = *g.Count
		}
		for i := range count {
			node := instance(template, fmt.Sprintf("%s-%d", group, i+1), g.Zones, i)
			r.groups[node.Name] = group
			objects = append(objects, node)
		}
		r.templates[group] = instance(template, group, g.Zones, 0)
	}
	for _, name := range slices.Sorted(maps.Keys(r.test.Running)) {
		objects = append(objects, r.runningPods(name, r.test.Running[name])...)
	}
	for _, o := range others {
		if _, known := snapshot.KindOf(schema.GroupKind{Group: o.Group, Kind: o.Kind}); known {
			objects = append(objects, o.Object)
		}
	}
	return documents(objects)
}

// documents writes objects as documents of YAML, which JSON is.
func documents(objects []any) []byte {
	var b bytes.Buffer
	for _, o := range objects {
		text, err := json.Marshal(o)
		if err != nil {
			continue // plain data has no such error
		}
		b.WriteString("---\n")
		b.Write(text)
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// namespaces are those that workloads and pods of the test name and no manifest
// declares, sorted.
func (r *run) namespaces(others []*workload.Object) []string {
	names := map[string]bool{metav1.NamespaceDefault: true}
	for _, w := range r.test.Workloads {
		names[cmp.Or(w.Namespace, metav1.NamespaceDefault)] = true
	}
	for _, p := range r.test.Running {
		names[cmp.Or(p.Namespace, metav1.NamespaceDefault)] = true
	}
	for _, o := range others {
		names[cmp.Or(o.Namespace, metav1.NamespaceDefault)] = true
	}
	for _, o := range others {
		if o.Kind == "Namespace" && o.Group == "" {
			delete(names, o.Name)
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// template returns a node of the group that has no name and no zone yet.
func (r *run) template(group string, g policy.TestNodes) (*corev1.Node, bool) {
	at := []string{"nodes", group}
	n := &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}}
	n.Labels = map[string]string{corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"}
	if pool := r.Placement.Pool(group); pool != nil {
		ofPool(n, pool)
	}
	maps.Copy(n.Labels, g.Labels)
	if g.Region != "" {
		n.Labels[corev1.LabelTopologyRegion] = g.Region
	}
	for _, name := range slices.Sorted(maps.Keys(g.Taints)) {
		t := g.Taints[name]
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(cmp.Or(t.Effect, string(corev1.TaintEffectNoSchedule)))})
	}
	resources := maps.Clone(defaultResources)
	maps.Copy(resources, g.Resources)
	n.Status.Allocatable = corev1.ResourceList{}
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		quantity, err := resource.ParseQuantity(resources[name])
		if err != nil {
			r.bad(ruleError, append(at, "resources", name), "%q is no quantity: %v", resources[name], err)
			return nil, false
		}
		n.Status.Allocatable[corev1.ResourceName(name)] = quantity
	}
	n.Status.Capacity = n.Status.Allocatable
	return n, true
}

// ofPool gives the node what nodes of the pool have, as far as the pool says it in
// plain values: the first of several.
func ofPool(n *corev1.Node, pool *policy.Pool) {
	maps.Copy(n.Labels, pool.Labels)
	for key, values := range pool.Nodes.Labels {
		if len(values) > 0 && !strings.ContainsAny(values[0], `*?[\<>`) {
			n.Labels[key] = values[0]
		}
	}
	for key, values := range map[string][]string{
		corev1.LabelTopologyZone: pool.Nodes.Zones, corev1.LabelTopologyRegion: pool.Nodes.Regions,
		corev1.LabelArchStable: pool.Nodes.Arch, corev1.LabelOSStable: pool.Nodes.OS,
	} {
		if len(values) > 0 {
			n.Labels[key] = values[0]
		}
	}
	if d := pool.Dedicated; d != nil && d.Taint != nil {
		taint := corev1.Taint{Key: d.Taint.Key, Effect: corev1.TaintEffect(d.Taint.Effect)}
		if d.Taint.Value != nil {
			taint.Value = *d.Taint.Value
		}
		n.Spec.Taints = append(n.Spec.Taints, taint)
	}
}

// instance is the i-th node of the group.
func instance(template *corev1.Node, name string, zones []string, i int) *corev1.Node {
	n := template.DeepCopy()
	n.Name = name
	n.Labels[corev1.LabelHostname] = name
	if len(zones) > 0 {
		n.Labels[corev1.LabelTopologyZone] = zones[i%len(zones)]
	}
	return n
}

// runningPods are the pods of one group of running ones.
func (r *run) runningPods(name string, p policy.TestRunning) []any {
	namespace := cmp.Or(p.Namespace, metav1.NamespaceDefault)
	labels := p.Labels
	if labels == nil {
		labels = map[string]string{"app": name}
	}
	var pods []any
	for i, node := range p.On {
		pod := fmt.Sprintf("%s-%d", name, i+1)
		r.running[name] = append(r.running[name], simulate.Ref{Kind: "Pod", Namespace: namespace, Name: pod})
		pods = append(pods, map[string]any{
			"apiVersion": "v1", "kind": "Pod",
			"metadata": map[string]any{"namespace": namespace, "name": pod, "labels": labels},
			"spec":     map[string]any{"nodeName": node, "containers": []any{container(p.Requests)}},
		})
	}
	return pods
}

// container is the one container of a pod that is described in a few lines.
func container(requests map[string]string) map[string]any {
	c := map[string]any{"name": "main", "image": "example.com/main"}
	if len(requests) > 0 {
		limits := map[string]string{}
		for name, quantity := range requests {
			// What is counted in whole devices must be limited as it is requested.
			if strings.Contains(name, "/") {
				limits[name] = quantity
			}
		}
		resources := map[string]any{"requests": requests}
		if len(limits) > 0 {
			resources["limits"] = limits
		}
		c["resources"] = resources
	}
	return c
}

// suggest ends a message about an unknown name.
func suggest(name string, known []string) string {
	if near, ok := diag.Nearest(name, known); ok {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	const most = 8
	if len(known) == 0 {
		return ""
	}
	if len(known) > most {
		return "; there are " + strings.Join(known[:most], ", ") + " and more"
	}
	return "; there are " + strings.Join(known, ", ")
}
