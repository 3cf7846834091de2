package admission_test

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-sched/kubectl-sched/compiler/admission"
	"github.com/kubectl-sched/kubectl-sched/compiler/admission/admissiontest"
	"github.com/kubectl-sched/kubectl-sched/compiler/nodeexpr"
)

func everything() admission.Set {
	web, gpu := admission.InForce("web-ha"), admission.InForce("gpu")
	label := func(k string, v ...string) nodeexpr.Expr { return nodeexpr.In(nodeexpr.Label(k), v...) }
	return admission.Set{
		Policies:   []admission.Policy{{Name: "gpu", Selects: "true"}, {Name: "web-ha", Selects: `variables.kind == "Deployment"`, ReplacedBy: []string{"x"}}, {Name: "x", Selects: "false"}},
		Grants:     []admission.Grant{{Pool: "g-1", Holds: `variables.namespaceLabels[?"a"].orValue("") == "b"`}},
		NodeLabels: []admission.NodeLabel{{When: web, Key: "a", Value: "b"}},
		Required: admission.Required{
			Table: nodeexpr.NewTable([]nodeexpr.Expr{label("zone", "a", "b"), nodeexpr.Or(label("class", "gpu"), label("pool", "x"))}),
			When:  []string{web, gpu},
		},
		Preferred: []admission.Preferred{{
			Term:    corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "spot", Operator: "DoesNotExist"}}},
			Weights: []admission.Weight{{web, 20}, {gpu, 30}},
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
		Leaves: []admission.Leaf{
			{web, []string{"terminationGracePeriodSeconds"}, 60},
			{web, []string{"securityContext", "fsGroup"}, 60},
			{gpu, []string{"dnsConfig", "options"}, []any{map[string]any{"name": "a", "value": "1"}, map[string]any{"name": "a"}}},
		},
		Kinds: []admission.Kind{{Group: "apps", Kind: "Deployment", MatchKeys: []string{"pod-template-hash"}}},
		Known: []admission.Known{{Namespace: "shop", Group: "apps", Kind: "Deployment", Name: "web", Domains: map[string]int32{"zone": 3}}},
	}
}

func TestEverything(t *testing.T) {
	objects := everything().Objects()
	text, _ := yaml.Marshal(objects.Place)
	t.Log(string(text))
	p, err := admissiontest.Compile(objects.Place)
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "shop", Labels: map[string]string{"app": "web", "pod-template-hash": "12"}, OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-12", Controller: new(true)}}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(30)),
			TopologySpreadConstraints:     []corev1.TopologySpreadConstraint{{TopologyKey: "zone", WhenUnsatisfiable: "DoNotSchedule", MaxSkew: 1, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}},
			Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: "In", Values: []string{"b"}}}}}},
			}},
		},
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	out, cost, err := p.Mutate(t.Context(), pod, ns)
	if err != nil {
		t.Fatal(err)
	}
	data, _ := yaml.Marshal(out)
	t.Log(cost, string(data))
	again, cost, err := p.Mutate(t.Context(), out, ns)
	a, _ := json.Marshal(out)
	b, _ := json.Marshal(again)
	t.Log(string(a) == string(b), cost, err)
}
