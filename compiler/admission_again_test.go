package compiler_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/admission"
	"github.com/kubectl-sched/kubectl-sched/compiler/admission/admissiontest"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// disturbances are what others may do to a pod after it was placed.
var disturbances = map[string]func(p *corev1.Pod){
	"nothing":       func(*corev1.Pod) {},
	"a label":       func(p *corev1.Pod) { metav1.SetMetaDataLabel(&p.ObjectMeta, "tier", "web") },
	"another label": func(p *corev1.Pod) { metav1.SetMetaDataLabel(&p.ObjectMeta, "elsewhere", "web") },
	"no label":      func(p *corev1.Pod) { p.Labels = nil },
	"no mark":       func(p *corev1.Pod) { p.Annotations = nil },
	"another mark":  func(p *corev1.Pod) { p.Annotations[admission.Annotation("")] += ",p-9" },
	"a cut mark": func(p *corev1.Pod) {
		p.Annotations[admission.Annotation("")] = p.Annotations[admission.Annotation("")][:11]
	},
	"no affinity":     func(p *corev1.Pod) { p.Spec.Affinity = nil },
	"no tolerations":  func(p *corev1.Pod) { p.Spec.Tolerations = nil },
	"no spreads":      func(p *corev1.Pod) { p.Spec.TopologySpreadConstraints = nil },
	"no nodeSelector": func(p *corev1.Pod) { p.Spec.NodeSelector = nil },
	"a nodeSelector":  func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"k1": "a"} },
	"another owner":   func(p *corev1.Pod) { p.OwnerReferences = nil },
	"no gates":        func(p *corev1.Pod) { p.Spec.SchedulingGates = nil },
	"no class":        func(p *corev1.Pod) { p.Spec.PriorityClassName, p.Spec.Priority = "", nil },
	"no scheduler":    func(p *corev1.Pod) { p.Spec.SchedulerName = "default-scheduler" },
	"no raw fields":   func(p *corev1.Pod) { p.Spec.RuntimeClassName, p.Spec.TerminationGracePeriodSeconds = nil, nil },
	"a fewer term": func(p *corev1.Pod) {
		if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil && len(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0 {
			a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution[1:]
		}
	},
}

// TestAdmissionAsksAgain holds that the place policy is asked about each pod at
// first, and again about each that it has something more to do for, whatever was
// done to the pod since; and that it mostly is not where it has not.
func TestAdmissionAsksAgain(t *testing.T) {
	t.Parallel()
	asked, left, settled, unsettled := 0, 0, 0, 0
	deadline := time.Now().Add(25 * time.Second)
	rapid.Check(t, func(t *rapid.T) {
		if time.Now().After(deadline) {
			return
		}
		w := admissiontest.Draw(t, 6, 20)
		plan, _ := compiler.Compile(compiler.Request{
			Placement: w.Placement, Surface: policy.SurfaceAdmission, Capabilities: w.Capabilities,
			Now: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC),
		})
		place := placePolicy(plan)
		if place == nil {
			return
		}
		p, err := admissiontest.Compile(place)
		if err != nil {
			t.Fatal(err)
		}
		matches := func(o runtime.Object, namespace string) bool {
			matches, _, err := p.Matches(t.Context(), o, namespace)
			if err != nil {
				t.Fatal(err)
			}
			return matches
		}
		once := func(o runtime.Object, namespace *corev1.Namespace) *corev1.Pod {
			out, _, err := p.Once(t.Context(), o, namespace)
			if err != nil {
				t.Fatal(err)
			}
			return out.(*corev1.Pod)
		}
		for _, o := range w.Workloads {
			object, err := admissiontest.Admitted(o)
			if err != nil {
				t.Fatal(err)
			}
			pod, ok := object.(*corev1.Pod)
			if !ok {
				continue
			}
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: pod.Namespace, Labels: w.Capabilities.Namespaces[pod.Namespace]}}
			if !matches(pod, pod.Namespace) {
				t.Fatalf("nobody asks the policy about %s", asJSON(pod))
			}
			placed := once(pod, namespace)
			if placed.Annotations[admission.Annotation("")] == "" {
				continue
			}
			for what, disturb := range disturbances {
				disturbed := placed.DeepCopy()
				disturb(disturbed)
				again := matches(disturbed, pod.Namespace)
				now := once(disturbed, namespace)
				diff := cmp.Diff(disturbed.Spec, now.Spec, cmpopts.EquateEmpty()) + cmp.Diff(disturbed.ObjectMeta, now.ObjectMeta, cmpopts.EquateEmpty())
				if diff != "" && !again {
					t.Fatalf("after %q nobody asks the policy again, which changes the pod:\n%s\n%s", what, diff, asJSON(disturbed))
				}
				switch {
				case diff != "":
					asked++
				case what != "nothing":
				case again:
					unsettled++
				default:
					settled++
				}
				if !again {
					left++
				}
			}
		}
	})
	t.Logf("%d disturbed pods changed again, %d left alone; of pods to which nothing was done %d are left alone and %d not", asked, left, settled, unsettled)
	if asked == 0 || settled == 0 {
		t.Error("the worlds hold too little")
	}
}

// TestAdmissionSettles holds of which placed pods the place policy is not asked
// again: of those whom it has nothing to merge with, where the selection does not
// need what a match condition cannot see.
func TestAdmissionSettles(t *testing.T) {
	t.Parallel()
	all := func(w policy.Workloads) *policy.Placement {
		return &policy.Placement{Policies: []policy.Policy{{
			Name: "all", Level: policy.Mandatory, Workloads: w, Positions: anywhere("policies", 0),
			Nodes: &policy.Nodes{
				Require: &policy.NodeTerm{Arch: []string{"amd64"}},
				Prefer:  &policy.Preference{NodeTerm: policy.NodeTerm{Zones: []string{"a"}}, Weight: 5},
			},
			Tolerate: &policy.Tolerate{Taints: map[string]policy.Taint{"x": {Key: "x"}}},
			Spread:   map[string]policy.Spread{"zone": {Strength: policy.Require, MaxSkew: 1, Of: policy.Subject{Kind: policy.EachWorkload}}},
			Apart:    map[string]policy.Colocation{"x": {On: "node", Strength: policy.Prefer, Weight: 5, Of: policy.Subject{Kind: policy.EachWorkload}}},
			Priority: &policy.Priority{Class: "high"},
		}}}
	}
	template := func() *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "shop", Labels: map[string]string{"app": "web"}}}
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "a"}}}
	shop := policy.Workloads{Namespaces: []string{"shop"}}
	for name, test := range map[string]struct {
		placement *policy.Placement
		pod       func(p *corev1.Pod)
		again     bool
	}{
		"a plain pod":                    {all(shop), func(*corev1.Pod) {}, false},
		"a pod with its own tolerations": {all(shop), func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Key: "own"}} }, false},
		"a pod with its own nodeSelector": {all(shop), func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{"own": "yes"}
		}, true},
		"a selection by the namespace's labels": {all(policy.Workloads{NamespaceLabels: map[string]policy.Values{"team": {"a"}}}), func(*corev1.Pod) {}, true},
	} {
		plan, findings := compiler.Compile(compiler.Request{Placement: test.placement, Surface: policy.SurfaceAdmission, Now: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)})
		if findings.HasErrors() {
			t.Fatal(findings)
		}
		place := placePolicy(plan)
		p, err := admissiontest.Compile(place)
		if err != nil {
			t.Fatal(err)
		}
		pod := template()
		test.pod(pod)
		matches := func(o runtime.Object) bool {
			matches, _, err := p.Matches(t.Context(), o, "shop")
			if err != nil {
				t.Fatal(err)
			}
			return matches
		}
		if !matches(pod) {
			t.Errorf("%s: nobody asks the policy", name)
		}
		out, _, err := p.Once(t.Context(), pod, namespace)
		if err != nil {
			t.Fatal(err)
		}
		if got := matches(out); got != test.again {
			t.Errorf("%s: the policy is asked again: %v, want %v", name, got, test.again)
		}
		// A mark with no policies in it is not ours, and has to go.
		elsewhere := template()
		elsewhere.Namespace, elsewhere.Annotations = "elsewhere", map[string]string{admission.Annotation(""): place.Annotations[admission.ContentAnnotation] + " "}
		if matches, _, err := p.Matches(t.Context(), elsewhere, "elsewhere"); err != nil || !matches {
			t.Errorf("%s: nobody asks about a mark without policies: %v", name, err)
		}
	}
}
