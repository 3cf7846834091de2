package admission_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-sched/kubectl-sched/compiler/admission"
	"github.com/kubectl-sched/kubectl-sched/compiler/admission/admissiontest"
	"github.com/kubectl-sched/kubectl-sched/compiler/nodeexpr"
)

// nobody selects no pod.
func nobody() admission.Selection {
	var s admission.Selection
	s.Condition("false")
	return s
}

// everything is a set with wishes of every kind.
func everything() admission.Set {
	inWeb, inGPU := admission.InForce("web-ha"), admission.InForce("gpu")
	web, gpu := admission.Any(inWeb), admission.Any(inGPU)
	var deployments admission.Selection
	deployments.Demand(admission.OfKind, "", []string{"Deployment"})
	label := func(k string, v ...string) nodeexpr.Expr { return nodeexpr.In(nodeexpr.Label(k), v...) }
	return admission.Set{
		Policies:   []admission.Policy{{Name: "gpu"}, {Name: "web-ha", Selects: deployments, ReplacedBy: []string{"x"}}, {Name: "x", Selects: nobody()}},
		Grants:     []admission.Grant{{Pool: "g-1", Holds: `variables.namespaceLabels[?"a"].orValue("") == "b"`}},
		NodeLabels: []admission.NodeLabel{{When: web, Key: "a", Value: "b"}},
		Required: admission.Required{
			Table: nodeexpr.NewTable([]nodeexpr.Expr{label("zone", "a", "b"), nodeexpr.Or(label("class", "gpu"), label("pool", "x"))}),
			When:  []admission.When{web, gpu},
		},
		Preferred: []admission.Preferred{{
			Term:    corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "spot", Operator: "DoesNotExist"}}},
			Weights: []admission.Weight{{inWeb, 20}, {inGPU, 30}},
		}},
		Tolerations: []admission.Toleration{
			{When: web, Toleration: corev1.Toleration{Key: "t", Operator: "Exists"}, Covers: []int{1}},
			{When: gpu, Toleration: corev1.Toleration{Key: "t", Operator: "Equal", Value: "x", Effect: "NoExecute", TolerationSeconds: new(int64(5))}},
		},
		Spreads: []admission.Spread{
			{When: web, Key: "zone", Subject: admission.Subject{Own: true}, Require: true, MaxSkew: 2},
			{When: gpu, Key: "zone", Subject: admission.Subject{Own: true}, MaxSkew: 1},
			{When: gpu, Key: "host", Subject: admission.Subject{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}, MaxSkew: 1},
		},
		RawSpreads: []admission.RawSpread{{When: web, Constraint: corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: "host", WhenUnsatisfiable: "ScheduleAnyway", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}},
		Colocations: []admission.Colocation{
			{When: web, Apart: true, Required: true, Own: true, Term: corev1.PodAffinityTerm{TopologyKey: "host"}},
			{When: web, Weight: 20, Term: corev1.PodAffinityTerm{TopologyKey: "zone", Namespaces: []string{"shop"}, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis"}}}},
			{When: gpu, Weight: 90, Term: corev1.PodAffinityTerm{TopologyKey: "zone", Namespaces: []string{"shop"}, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis"}}}},
		},
		Scalars: []admission.Scalar{{web, "priorityClassName", "low"}, {web, "preemptionPolicy", "Never"}, {gpu, "schedulerName", "mine"}},
		Keys: []admission.Key{
			{When: web, Key: "pod-group.scheduling.sigs.k8s.io/name", Computed: true, Value: "variables.name"},
			{When: gpu, Annotation: true, Key: "kubectl-sched.github.io/datasets", Value: "imagenet=120Gi"},
			{When: web, Annotation: true, Key: "kubectl-sched.github.io/datasets", Value: "vocab"},
		},
		Gates:   []admission.Gate{{gpu, "gates.kubectl-sched.github.io/gpu.quota"}, {web, "example.com/theirs"}},
		Devices: []admission.Devices{{When: web, Variable: "NVIDIA_VISIBLE_DEVICES", Annotation: "kubectl-sched.github.io/gpu-index", Containers: []string{"main"}}},
		Leaves: []admission.Leaf{
			{web, []string{"terminationGracePeriodSeconds"}, 60},
			{web, []string{"securityContext", "fsGroup"}, 60},
			{gpu, []string{"dnsConfig", "options"}, []any{map[string]any{"name": "a", "value": "1"}, map[string]any{"name": "a"}}},
		},
		Kinds: []admission.Kind{{Group: "apps", Kind: "Deployment", MatchKeys: []string{"pod-template-hash"}}},
		Known: []admission.Known{{Namespace: "shop", Group: "apps", Kind: "Deployment", Name: "web", Domains: map[string]int32{"zone": 3}}},
	}
}

// webPod is a pod of Deployment shop/web with some placement of its own.
func webPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "a", Namespace: "shop", Labels: map[string]string{"app": "web", "pod-template-hash": "12"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-12", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(30)),
			Containers:                    []corev1.Container{{Name: "main", Env: []corev1.EnvVar{{Name: "A", Value: "b"}}}, {Name: "side"}},
			SchedulingGates:               []corev1.PodSchedulingGate{{Name: "example.com/theirs"}},
			TopologySpreadConstraints:     []corev1.TopologySpreadConstraint{{TopologyKey: "zone", WhenUnsatisfiable: "DoNotSchedule", MaxSkew: 1, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}},
			Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
					{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: "In", Values: []string{"b"}}}},
					{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: "In", Values: []string{"n"}}}},
				}},
			}},
		},
	}
}

func compiled(t *testing.T, s admission.Set) *admissiontest.Policy {
	t.Helper()
	p, err := admissiontest.Compile(s.Objects().Place)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var shop = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}

// TestEverything holds one pod that gets something of every kind against
// testdata/everything.yaml; UPDATE=1 writes that anew.
func TestEverything(t *testing.T) {
	t.Parallel()
	p := compiled(t, everything())
	out, _, err := p.Mutate(t.Context(), webPod(), shop)
	if err != nil {
		t.Fatal(err)
	}
	got, err := yaml.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/everything.yaml"
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(golden, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("the pod differs (-want +got), UPDATE=1 rewrites it:\n%s", diff)
	}
	again, _, err := p.Mutate(t.Context(), out, shop)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(out, again); diff != "" {
		t.Errorf("once more changes it:\n%s", diff)
	}
}

// TestMarks holds whom a mark keeps off.
func TestMarks(t *testing.T) {
	t.Parallel()
	s := everything()
	p, content := compiled(t, s), s.Objects().Content
	s.Policies = []admission.Policy{{Name: "gpu", Selects: nobody()}, {Name: "web-ha", Selects: nobody()}}
	none, other := compiled(t, s), s.Objects().Content
	for _, test := range []struct {
		name       string
		policy     *admissiontest.Policy
		mark, want string
	}{
		{"none", p, "", content + " gpu,web-ha"},
		{"of this content, whoever wrote it", p, content + " lies", content + " gpu,web-ha"},
		{"of another content", p, "0123456789 x", "0123456789 x"},
		{"that is none", p, "x", "x"},
		{"of this content, where no policy selects", none, other + " lies", ""},
		{"none, where no policy selects", none, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			pod := webPod()
			key := admission.Annotation("")
			if test.mark != "" {
				pod.Annotations = map[string]string{key: test.mark}
			}
			out, _, err := test.policy.Mutate(t.Context(), pod, shop)
			if err != nil {
				t.Fatal(err)
			}
			got := out.(*corev1.Pod)
			if got.Annotations[key] != test.want {
				t.Errorf("the mark is %q, want %q", got.Annotations[key], test.want)
			}
			if placed, want := len(got.Spec.Tolerations) > 0, test.want != test.mark && test.want != "" || test.want == content+" gpu,web-ha"; placed != want {
				t.Errorf("the pod is placed: %v, want %v", placed, want)
			}
		})
	}
}

func TestParseMark(t *testing.T) {
	t.Parallel()
	m, ok := admission.ParseMark("0123456789 a,b")
	if diff := cmp.Diff(admission.Mark{Content: "0123456789", Policies: []string{"a", "b"}}, m); diff != "" || !ok || m.String() != "0123456789 a,b" {
		t.Errorf("read %v %v:\n%s", m, ok, diff)
	}
	for _, bad := range []string{"", "x", " a", "x "} {
		if m, ok := admission.ParseMark(bad); ok {
			t.Errorf("%q reads as %v", bad, m)
		}
	}
}

// TestContent holds that equal sets have equal objects, and that a change of
// what is done to pods shows in the content.
func TestContent(t *testing.T) {
	t.Parallel()
	a, b := everything().Objects(), everything().Objects()
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("equal sets differ:\n%s", diff)
	}
	changed := everything()
	changed.Tolerations[0].Toleration.Key = "other"
	closed := everything()
	closed.FailClosed = true
	for name, s := range map[string]admission.Set{"a toleration": changed, "the failure policy": closed} {
		if s.Objects().Content == a.Content {
			t.Errorf("%s changes, and the content does not", name)
		}
	}
}
