package anonymize_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/anonymize"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
)

// random is a source of keys that a test can repeat.
func random(seed uint64) *rand.ChaCha8 {
	var key [32]byte
	key[0], key[1] = byte(seed), byte(seed>>8)
	return rand.NewChaCha8(key)
}

var (
	labelKeys = []string{"app", "acme.com/pool", "topology.kubernetes.io/zone", "pod-template-hash", "kubernetes.io/hostname", "acme.com/size"}
	words     = []string{"", "acme-a", "acme-b", "acme-c", "12", "9", "-3", "true", "linux", "acme-node-0", "acme-ns-0", "acme-x__acme-y"}
	spaces    = []string{"default", "acme-ns-0", "acme-ns-1", "kube-system"}
	images    = []string{"acme/web", "acme/web:latest", "acme/web:v2", "registry.acme.com:5000/web", "registry.acme.com:5000/web@sha256:aa"}
)

func drawLabels(t *rapid.T, name string) map[string]string {
	return rapid.MapOfN(rapid.SampledFrom(labelKeys), rapid.SampledFrom(words), 0, 4).Draw(t, name)
}

func drawLabelSelector(t *rapid.T, name string) *metav1.LabelSelector {
	if rapid.IntRange(0, 5).Draw(t, name+"-nil") == 0 {
		return nil
	}
	s := &metav1.LabelSelector{MatchLabels: rapid.MapOfN(rapid.SampledFrom(labelKeys), rapid.SampledFrom(words), 0, 2).Draw(t, name)}
	for range rapid.IntRange(0, 2).Draw(t, name+"-expressions") {
		r := metav1.LabelSelectorRequirement{
			Key:      rapid.SampledFrom(labelKeys).Draw(t, "key"),
			Operator: rapid.SampledFrom([]metav1.LabelSelectorOperator{metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist}).Draw(t, "operator"),
		}
		if r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn {
			r.Values = rapid.SliceOfN(rapid.SampledFrom(words), 1, 3).Draw(t, "values")
		}
		s.MatchExpressions = append(s.MatchExpressions, r)
	}
	return s
}

func drawNodeTerm(t *rapid.T, nodes []string) corev1.NodeSelectorTerm {
	var term corev1.NodeSelectorTerm
	for range rapid.IntRange(0, 2).Draw(t, "expressions") {
		r := corev1.NodeSelectorRequirement{
			Key: rapid.SampledFrom(labelKeys).Draw(t, "key"),
			Operator: rapid.SampledFrom([]corev1.NodeSelectorOperator{
				corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt,
			}).Draw(t, "operator"),
		}
		switch r.Operator {
		case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
			r.Values = rapid.SliceOfN(rapid.SampledFrom(words), 1, 3).Draw(t, "values")
		case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
			r.Values = []string{rapid.SampledFrom([]string{"10", "-4", "0"}).Draw(t, "bound")}
		default: // the others take no values
		}
		term.MatchExpressions = append(term.MatchExpressions, r)
	}
	if rapid.IntRange(0, 3).Draw(t, "fields") == 0 {
		term.MatchFields = []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{rapid.SampledFrom(nodes).Draw(t, "field")}}}
	}
	return term
}

func drawSnapshot(t *rapid.T) *snapshot.Snapshot {
	s := &snapshot.Snapshot{Cluster: "acme-prod"}
	taintKeys, nodes := []string{"acme.com/pool", "dedicated", "node.kubernetes.io/unschedulable"}, []string{"acme-node-0", "acme-node-1", "acme-node-2"}
	for _, name := range spaces {
		l := drawLabels(t, "namespace")
		l[corev1.LabelMetadataName] = name
		s.Namespaces = append(s.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: l}})
	}
	for _, name := range nodes {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: drawLabels(t, "node")}}
		for range rapid.IntRange(0, 2).Draw(t, "taints") {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: rapid.SampledFrom(taintKeys).Draw(t, "taint"), Value: rapid.SampledFrom(words).Draw(t, "value"), Effect: corev1.TaintEffectNoSchedule})
		}
		n.Status.Images = []corev1.ContainerImage{{Names: rapid.SliceOfN(rapid.SampledFrom(images), 0, 3).Draw(t, "images"), SizeBytes: 1}}
		s.Nodes = append(s.Nodes, n)
	}
	for i := range 3 {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("acme-claim-%d", i), Namespace: rapid.SampledFrom(spaces).Draw(t, "claim")}}
		claim.Annotations = map[string]string{"volume.kubernetes.io/selected-node": rapid.SampledFrom(nodes).Draw(t, "selected")}
		s.PersistentVolumeClaims = append(s.PersistentVolumeClaims, claim)
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "pods") {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("acme-pod-%d", i), Namespace: rapid.SampledFrom(spaces).Draw(t, "in"), UID: types.UID(fmt.Sprint("uid-", i)), Labels: drawLabels(t, "pod")}}
		if i > 0 {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: "acme-pod-0", UID: "uid-0"}}
		}
		p.Spec.NodeName = rapid.SampledFrom(append(nodes, "")).Draw(t, "on")
		p.Spec.SchedulerName = rapid.SampledFrom([]string{"default-scheduler", "acme-batch"}).Draw(t, "scheduler")
		p.Spec.NodeSelector = rapid.MapOfN(rapid.SampledFrom(labelKeys), rapid.SampledFrom(words), 0, 1).Draw(t, "nodeSelector")
		p.Spec.Containers = []corev1.Container{{Name: "acme", Image: rapid.SampledFrom(images).Draw(t, "image")}}
		p.Spec.Volumes = []corev1.Volume{{Name: "acme", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: fmt.Sprintf("acme-claim-%d", rapid.IntRange(0, 3).Draw(t, "mounts"))}}}}
		if rapid.Bool().Draw(t, "required") {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{}}}
			for range rapid.IntRange(1, 2).Draw(t, "terms") {
				terms := &p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
				*terms = append(*terms, drawNodeTerm(t, nodes))
			}
		}
		if rapid.Bool().Draw(t, "apart") {
			if p.Spec.Affinity == nil {
				p.Spec.Affinity = &corev1.Affinity{}
			}
			p.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: rapid.SampledFrom(labelKeys).Draw(t, "topologyKey"), LabelSelector: drawLabelSelector(t, "selector"), NamespaceSelector: drawLabelSelector(t, "namespaceSelector"),
				Namespaces: rapid.SliceOfN(rapid.SampledFrom(spaces), 0, 2).Draw(t, "namespaces"), MatchLabelKeys: rapid.SliceOfN(rapid.SampledFrom(labelKeys), 0, 1).Draw(t, "matchLabelKeys"),
			}}}
		}
		for range rapid.IntRange(0, 2).Draw(t, "tolerations") {
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{
				Key: rapid.SampledFrom(append(taintKeys, "")).Draw(t, "tolerates"), Value: rapid.SampledFrom(words).Draw(t, "value"),
				Operator: rapid.SampledFrom([]corev1.TolerationOperator{corev1.TolerationOpExists, corev1.TolerationOpEqual, corev1.TolerationOpGt, corev1.TolerationOpLt}).Draw(t, "how"),
			})
		}
		s.Pods = append(s.Pods, p)
	}
	s.Sort()
	return s
}

// relations says, in an order that names do not change, what matches what: by
// upstream's own matchers.
func relations(s *snapshot.Snapshot, order func(kind string) []string) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	nodes, namespaces, pods := map[string]*corev1.Node{}, map[string]*corev1.Namespace{}, map[string]*corev1.Pod{}
	for _, n := range s.Nodes {
		nodes[n.Name] = n
	}
	for _, n := range s.Namespaces {
		namespaces[n.Name] = n
	}
	for _, p := range s.Pods {
		pods[p.Name] = p
	}
	claims := map[string]bool{}
	for _, c := range s.PersistentVolumeClaims {
		claims[c.Namespace+"/"+c.Name] = true
		say("claim selected %v", slices.Index(order("nodes"), c.Annotations["volume.kubernetes.io/selected-node"]))
	}
	slices.Sort(out)
	selects := func(selector *metav1.LabelSelector, l map[string]string) string {
		match, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil {
			return "error"
		}
		return fmt.Sprint(match.Matches(labels.Set(l)))
	}
	for i, podName := range order("pods") {
		p := pods[podName]
		say("pod %d on %d, in %d, scheduler %v", i, slices.Index(order("nodes"), p.Spec.NodeName), slices.Index(order("namespaces"), p.Namespace), p.Spec.SchedulerName == "default-scheduler")
		say("pod %d claim %v", i, claims[p.Namespace+"/"+p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName])
		for _, o := range p.OwnerReferences {
			say("pod %d owner %v %v", i, pods[o.Name] != nil, pods[o.Name] != nil && pods[o.Name].UID == o.UID)
		}
		for j, nodeName := range order("nodes") {
			n := nodes[nodeName]
			fits, err := nodeaffinity.GetRequiredNodeAffinity(p).Match(n)
			say("pod %d node %d affinity %v %v", i, j, fits, err != nil)
			_, untolerated := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), n.Spec.Taints, p.Spec.Tolerations, nil, true)
			say("pod %d node %d untolerated %v", i, j, untolerated)
			say("pod %d node %d image %v", i, j, hasImage(n, p.Spec.Containers[0].Image))
		}
		if p.Spec.Affinity == nil || p.Spec.Affinity.PodAntiAffinity == nil {
			continue
		}
		term := p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
		for j, other := range order("pods") {
			o := pods[other]
			say("pod %d pod %d selects %s", i, j, selects(term.LabelSelector, o.Labels))
			for _, key := range term.MatchLabelKeys {
				say("pod %d pod %d same %v", i, j, p.Labels[key] == o.Labels[key])
			}
		}
		for j, name := range order("namespaces") {
			say("pod %d namespace %d %s %v", i, j, selects(term.NamespaceSelector, namespaces[name].Labels), slices.Contains(term.Namespaces, name))
		}
		for _, a := range order("nodes") {
			for _, b := range order("nodes") {
				x, hasX := nodes[a].Labels[term.TopologyKey]
				y, hasY := nodes[b].Labels[term.TopologyKey]
				say("pod %d domain %v %v %v", i, hasX, hasY, x == y)
			}
		}
	}
	return out
}

// hasImage is how ImageLocality looks an image up: by its name on the node, after
// the tag "latest" was added to what the pod asks for.
func hasImage(n *corev1.Node, image string) bool {
	if strings.LastIndex(image, ":") <= strings.LastIndex(image, "/") {
		image += ":latest"
	}
	return slices.ContainsFunc(n.Status.Images, func(i corev1.ContainerImage) bool { return slices.Contains(i.Names, image) })
}

// TestEveryRelationHolds holds that an anonymised snapshot has exactly the matches
// that it had, and nothing of the names.
func TestEveryRelationHolds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		names, err := anonymize.New(random(rapid.Uint64().Draw(t, "seed")))
		if err != nil {
			t.Fatal(err)
		}
		var before bytes.Buffer
		if err := snapshot.WriteYAML(&before, s); err != nil {
			t.Fatal(err)
		}
		hidden, err := anonymize.Snapshot(s, names)
		if err != nil {
			t.Fatal(err)
		}
		orders := map[string][]string{}
		for _, n := range s.Nodes {
			orders["nodes"] = append(orders["nodes"], n.Name)
		}
		for _, n := range s.Namespaces {
			orders["namespaces"] = append(orders["namespaces"], n.Name)
		}
		for _, p := range s.Pods {
			orders["pods"] = append(orders["pods"], p.Name)
		}
		original := func(kind string) []string { return orders[kind] }
		replaced := func(kind string) []string {
			var out []string
			for _, name := range orders[kind] {
				out = append(out, wordOf(hidden, names, name))
			}
			return out
		}
		was, is := relations(s, original), relations(hidden, replaced)
		if !slices.Equal(was, is) {
			for i := range was {
				if was[i] != is[i] {
					t.Fatalf("%s became %s", was[i], is[i])
				}
			}
		}
		var text, after bytes.Buffer
		if err := snapshot.WriteYAML(&text, hidden); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text.String(), "acme") {
			t.Fatalf("a name is left in\n%s", text.String())
		}
		if err := snapshot.WriteYAML(&after, s); err != nil {
			t.Fatal(err)
		}
		if after.String() != before.String() {
			t.Fatal("the snapshot itself was changed")
		}
	})
}

// wordOf finds what stands for the name in the snapshot.
func wordOf(s *snapshot.Snapshot, names *anonymize.Names, name string) string {
	for _, k := range snapshot.Kinds() {
		for o := range k.All(s) {
			if original, ok := names.Original(o.GetName()); ok && original == name || o.GetName() == name {
				return o.GetName()
			}
		}
	}
	return ""
}
