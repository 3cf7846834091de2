package guard_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/apis/admissionregistration"
	internalv1 "k8s.io/kubernetes/pkg/apis/admissionregistration/v1"
	"k8s.io/kubernetes/pkg/apis/admissionregistration/validation"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-sched/kubectl-sched/compiler/guard"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// gpu is a pool with every kind of grant and exemption.
func gpu() guard.Pool {
	return guard.Pool{
		Name:  "gpu",
		Taint: corev1.Taint{Key: "example.com/gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule},
		Guard: policy.GuardDeny,
		Grants: policy.Grants{
			Namespaces:      []string{"ml-*", "lab"},
			NamespaceLabels: map[string]policy.Values{"team": {"ml", "vision-*"}},
			ServiceAccounts: []string{"train*", "lab/runner"},
		},
		Exempt: policy.GuardExempt{
			Namespaces:      []string{"monitoring", "infra-*"},
			ServiceAccounts: []string{"ops/agent"},
			Users:           []string{"ops@example.com"},
			Groups:          []string{"ops"},
		},
	}
}

// spot is a pool with the least that a guard needs.
func spot(g policy.Guard) guard.Pool {
	return guard.Pool{
		Name: "spot", Taint: corev1.Taint{Key: "kubectl-sched.github.io/pool", Value: "spot", Effect: corev1.TaintEffectNoExecute},
		Guard: g, Grants: policy.Grants{Namespaces: []string{"batch"}}, Set: "shop.team-a",
	}
}

// TestObjects compares the objects with the files in testdata; UPDATE=1 writes
// them anew.
func TestObjects(t *testing.T) {
	t.Parallel()
	number := spot(policy.GuardDeny)
	number.Name, number.Taint.Value = "number", "5"
	for name, pool := range map[string]guard.Pool{
		"deny": gpu(), "warn": spot(policy.GuardWarn), "audit": spot(policy.GuardAudit), "off": spot(policy.GuardOff), "number": number,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got bytes.Buffer
			for _, p := range pool.Policies() {
				for _, object := range []any{p.Policy, p.Binding} {
					text, err := yaml.Marshal(object)
					if err != nil {
						t.Fatal(err)
					}
					got.WriteString("---\n")
					got.Write(text)
				}
				if p.Reason == "" {
					t.Errorf("%s has no reason", p.Policy.Name)
				}
			}
			file := filepath.Join("testdata", name+".yaml")
			if os.Getenv("UPDATE") != "" {
				if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("objects differ (-want +got), UPDATE=1 rewrites them:\n%s", diff)
			}
		})
	}
}

// TestValid holds that the API server takes the objects, and would change nothing
// in them by its defaults (what differs is applied again and again).
func TestValid(t *testing.T) {
	t.Parallel()
	for _, pool := range []guard.Pool{gpu(), spot(policy.GuardAudit), spot(policy.GuardWarn)} {
		for _, p := range pool.Policies() {
			defaulted := p.Policy.DeepCopy()
			internalv1.SetObjectDefaults_ValidatingAdmissionPolicy(defaulted)
			if diff := cmp.Diff(p.Policy, defaulted); diff != "" {
				t.Errorf("%s: defaults are missing (-have +defaulted):\n%s", p.Policy.Name, diff)
			}
			var internal admissionregistration.ValidatingAdmissionPolicy
			if err := internalv1.Convert_v1_ValidatingAdmissionPolicy_To_admissionregistration_ValidatingAdmissionPolicy(p.Policy, &internal, nil); err != nil {
				t.Fatal(err)
			}
			if problems := validation.ValidateValidatingAdmissionPolicy(&internal); len(problems) > 0 {
				t.Errorf("%s: %v", p.Policy.Name, problems.ToAggregate())
			}
			var binding admissionregistration.ValidatingAdmissionPolicyBinding
			if err := internalv1.Convert_v1_ValidatingAdmissionPolicyBinding_To_admissionregistration_ValidatingAdmissionPolicyBinding(p.Binding, &binding, nil); err != nil {
				t.Fatal(err)
			}
			if problems := validation.ValidateValidatingAdmissionPolicyBinding(&binding); len(problems) > 0 {
				t.Errorf("%s: %v", p.Binding.Name, problems.ToAggregate())
			}
		}
	}
}

// TestNames holds that no two pools of no two sets share a name.
func TestNames(t *testing.T) {
	t.Parallel()
	seen := map[string]guard.Pool{}
	for _, name := range []string{"a", "pods", "guard-pods", "bindings", "placement"} {
		for _, set := range []string{"", "a", "pods", "a.pods", "pods.a", "guard-pods", "bindings.guard-pods"} {
			pool := spot(policy.GuardDeny)
			pool.Name, pool.Set = name, set
			for _, p := range pool.Policies() {
				if other, ok := seen[p.Policy.Name]; ok {
					t.Errorf("%q is the name for pool %q of set %q, and for pool %q of set %q", p.Policy.Name, name, set, other.Name, other.Set)
				}
				seen[p.Policy.Name] = pool
				if p.Binding.Name != p.Policy.Name || p.Binding.Spec.PolicyName != p.Policy.Name || !strings.Contains(p.Policy.Name, name) {
					t.Errorf("the binding of %q is %q, of policy %q", p.Policy.Name, p.Binding.Name, p.Binding.Spec.PolicyName)
				}
			}
		}
	}
}

// TestActions holds what each guard does, and that only one that refuses refuses
// what cannot be evaluated.
func TestActions(t *testing.T) {
	t.Parallel()
	type does struct {
		Actions []admissionv1.ValidationAction
		Failure admissionv1.FailurePolicyType
	}
	want := map[policy.Guard][]does{
		policy.GuardOff:   nil,
		policy.GuardAudit: {{[]admissionv1.ValidationAction{"Audit"}, "Ignore"}, {[]admissionv1.ValidationAction{"Audit"}, "Ignore"}},
		policy.GuardWarn: {
			{[]admissionv1.ValidationAction{"Warn", "Audit"}, "Ignore"},
			{[]admissionv1.ValidationAction{"Warn", "Audit"}, "Ignore"},
			{[]admissionv1.ValidationAction{"Warn"}, "Ignore"},
		},
		policy.GuardDeny: {
			{[]admissionv1.ValidationAction{"Deny", "Audit"}, "Fail"},
			{[]admissionv1.ValidationAction{"Deny", "Audit"}, "Fail"},
			{[]admissionv1.ValidationAction{"Warn"}, "Ignore"},
		},
	}
	for g, want := range want {
		var got []does
		for _, p := range spot(g).Policies() {
			got = append(got, does{p.Binding.Spec.ValidationActions, *p.Policy.Spec.FailurePolicy})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("guard %q (-want +got):\n%s", g, diff)
		}
	}
}
