package admission_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/admission"
)

// demanding is a policy with demands, each a source, a key and patterns.
func demanding(name string, demands ...[]string) admission.Policy {
	p := admission.Policy{Name: name}
	for _, d := range demands {
		p.Selects.Demand(admission.Source(d[0]), d[1], d[2:])
	}
	return p
}

// tolerating is a set in which each policy asks for one toleration of its name.
func tolerating(policies ...admission.Policy) admission.Set {
	s := admission.Set{Policies: policies}
	for _, p := range policies {
		s.Tolerations = append(s.Tolerations, admission.Toleration{
			When: admission.Any(admission.InForce(p.Name)), Toleration: corev1.Toleration{Key: p.Name, Operator: corev1.TolerationOpExists},
		})
	}
	return s
}

// TestCells holds which policies are in force for a pod by what they demand, where
// that is worked out by the pod's cell and where it is not, which more conditions
// than are worked out for every pod bring about.
func TestCells(t *testing.T) {
	t.Parallel()
	namespace := func(names ...string) []string { return append([]string{string(admission.OfNamespace), ""}, names...) }
	label := func(key string, values ...string) []string {
		return append([]string{string(admission.OfLabels), key}, values...)
	}
	replaced := demanding("replaced", label("team", "a", "b"))
	replaced.ReplacedBy = []string{"shop-b"}
	never := demanding("never", namespace("shop"), namespace("other"))
	conditional := demanding("conditional", namespace("shop"))
	conditional.Selects.Condition(`variables.labels[?"tier"].orValue("") != "web"`)
	policies := []admission.Policy{
		conditional,
		demanding("everyone"),
		demanding("in-shop", namespace("shop")),
		never,
		demanding("no-value", label("odd", "")),
		replaced,
		demanding("shop-b", namespace("shop", "b,c"), label("team", "b", "c")),
		demanding("with-team", label("team", "*")),
	}
	slow := slices.Clone(policies)
	for i := range 5 {
		p := demanding(fmt.Sprintf("zz-%d", i), namespace("shop"))
		p.Selects.Condition(fmt.Sprintf(`variables.labels[?"no-such-label"].orValue("") == "%d"`, i))
		slow = append(slow, p)
	}
	for name, set := range map[string]admission.Set{"by cell": tolerating(policies...), "by fact": tolerating(slow...)} {
		objects := set.Objects()
		uses := slices.ContainsFunc(objects.Place.Spec.Variables, func(v admissionregistrationv1.Variable) bool { return v.Name == "cell" })
		if uses != (name == "by cell") {
			t.Fatalf("%s: there are cells: %v", name, uses)
		}
		p := compiled(t, set)
		for _, test := range []struct {
			namespace string
			labels    map[string]string
			want      string
		}{
			{"shop", nil, "conditional everyone in-shop"},
			{"shop", map[string]string{"tier": "web"}, "everyone in-shop"},
			{"shop", map[string]string{"team": "a"}, "conditional everyone in-shop replaced with-team"},
			{"shop", map[string]string{"team": "b"}, "conditional everyone in-shop shop-b with-team"},
			{"shop", map[string]string{"team": "c", "tier": "web"}, "everyone in-shop shop-b with-team"},
			{"shop", map[string]string{"team": "d", "odd": ""}, "conditional everyone in-shop no-value with-team"},
			{"other", map[string]string{"team": "b", "odd": "x"}, "everyone replaced with-team"},
			{"other", map[string]string{"odd": ""}, "everyone no-value"},
			{"shop-b", map[string]string{"team": ""}, "everyone with-team"},
		} {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: test.namespace, Labels: test.labels}}
			out, _, err := p.Mutate(t.Context(), pod, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: test.namespace}})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, toleration := range out.(*corev1.Pod).Spec.Tolerations {
				got = append(got, toleration.Key)
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("%s, namespace %s, labels %v (-want +got):\n%s", name, test.namespace, test.labels, diff)
			}
			mark, _ := admission.ParseMark(out.(*corev1.Pod).Annotations[admission.Annotation("")])
			if diff := cmp.Diff(test.want, strings.Join(mark.Policies, " ")); diff != "" {
				t.Errorf("%s, namespace %s, labels %v: the mark (-want +got):\n%s", name, test.namespace, test.labels, diff)
			}
		}
	}
}

// TestManyCells holds that a set of more kinds of pods than tables may have rows
// does without them.
func TestManyCells(t *testing.T) {
	t.Parallel()
	for _, n := range []int{10, 30} {
		var policies []admission.Policy
		for i := range n {
			policies = append(policies,
				demanding(fmt.Sprintf("namespace-%02d", i), []string{string(admission.OfNamespace), "", fmt.Sprintf("n%d", i)}),
				demanding(fmt.Sprintf("team-%02d", i), []string{string(admission.OfLabels), "team", fmt.Sprintf("t%d", i)}))
		}
		set := tolerating(policies...)
		if uses := slices.ContainsFunc(set.Objects().Place.Spec.Variables, func(v admissionregistrationv1.Variable) bool { return v.Name == "cell" }); uses != (n == 10) {
			t.Errorf("of %d namespaces and as many teams there are cells: %v", n, uses)
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n7", Labels: map[string]string{"team": "t3"}}}
		out, _, err := compiled(t, set).Mutate(t.Context(), pod, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n7"}})
		if err != nil {
			t.Fatal(err)
		}
		want := []corev1.Toleration{{Key: "team-03", Operator: "Exists"}, {Key: "namespace-07", Operator: "Exists"}} // as the set lists them
		if diff := cmp.Diff(want, out.(*corev1.Pod).Spec.Tolerations); diff != "" {
			t.Errorf("of %d namespaces and as many teams (-want +got):\n%s", n, diff)
		}
	}
}

// TestSpreadsOfCells holds that constraints of many kinds in one set, for which there
// are long tables, and several that look up how many domains there are, give each pod
// what its own policy asks.
func TestSpreadsOfCells(t *testing.T) {
	t.Parallel()
	var policies []admission.Policy
	var spreads []admission.Spread
	const n = 120
	for i := range n {
		p := demanding(fmt.Sprintf("team-%03d", i), []string{string(admission.OfLabels), "team", fmt.Sprintf("t%d", i)})
		policies = append(policies, p)
		subject := admission.Subject{Own: i%2 == 0}
		if !subject.Own {
			subject.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprintf("a%d", i)}}
		}
		when := admission.Any(admission.InForce(p.Name))
		spreads = append(spreads,
			admission.Spread{When: when, Key: "zone", Subject: subject, Require: true, MaxSkew: int32(i + 1)},
			admission.Spread{When: when, Key: "host", Subject: subject, Require: i%3 > 0, MaxSkew: int32(i + 1)})
	}
	set := admission.Set{Policies: policies, Spreads: spreads, Known: []admission.Known{
		{Namespace: "shop", Kind: "Pod", Name: "p", Domains: map[string]int32{"zone": 3}},
	}}
	p := compiled(t, set)
	for _, i := range []int{0, 7, n - 1} {
		labels := map[string]string{"team": fmt.Sprintf("t%d", i)}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "shop", Labels: labels}}
		out, _, err := p.Mutate(t.Context(), pod, shop)
		if err != nil {
			t.Fatal(err)
		}
		selector := &metav1.LabelSelector{MatchLabels: labels}
		if i%2 == 1 {
			selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprintf("a%d", i)}}
		}
		var want []corev1.TopologySpreadConstraint
		for _, key := range []string{"host", "zone"} {
			c := corev1.TopologySpreadConstraint{
				MaxSkew: int32(i + 1), TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector,
				NodeTaintsPolicy: new(corev1.NodeInclusionPolicyHonor),
			}
			switch {
			case key == "zone":
				c.MinDomains = new(int32(3))
			case i%3 > 0:
				c.MinDomains = new(int32(2))
			default:
				c.WhenUnsatisfiable = corev1.ScheduleAnyway
			}
			want = append(want, c)
		}
		if diff := cmp.Diff(want, out.(*corev1.Pod).Spec.TopologySpreadConstraints); diff != "" {
			t.Errorf("team t%d (-want +got):\n%s", i, diff)
		}
	}
}
