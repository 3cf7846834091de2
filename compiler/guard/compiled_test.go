package guard_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/auth/nodeidentifier"
	"k8s.io/kubernetes/plugin/pkg/admission/noderestriction"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/compiler/guard/guardtest"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// guardedPool is a placement with one guarded pool, and a policy that sends
// everything there.
func guardedPool(nodes policy.NodeTerm, grants policy.Grants) *policy.Placement {
	taint := policy.Taint{Key: "example.com/gpu", Effect: "NoSchedule"}
	return &policy.Placement{
		Pools: []policy.Pool{{
			Name: "gpu", Nodes: nodes, ManagedBy: policy.ManagedNodeGroup,
			Dedicated: &policy.Dedicated{Taint: &taint, Grants: &grants, Guard: policy.GuardDeny},
		}},
		Policies: []policy.Policy{{
			Name: "all", Level: policy.Mandatory, Workloads: policy.Workloads{Namespaces: []string{"*", "kube-system"}},
			Tolerate: &policy.Tolerate{Pools: []string{"gpu"}},
		}},
	}
}

// deployment is a Deployment whose pods have the service account.
func deployment(t rapid.TB, namespace, account string) *workload.Workload {
	t.Helper()
	w, findings, ok := workload.FromObject(map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "with-" + account, "namespace": namespace},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
				"spec":     map[string]any{"serviceAccountName": account},
			},
		},
	}, workload.Options{}, workload.Source{})
	if !ok || findings.HasErrors() {
		t.Fatalf("read the Deployment: %v, %v", ok, findings)
	}
	return w
}

func rules(findings diag.Findings) []string {
	var out []string
	for _, f := range findings {
		out = append(out, f.Rule)
	}
	return out
}

// TestGuardGrants holds that the API server grants a pool exactly to the pods to
// which the compiler does, kube-system aside, which no guard watches.
func TestGuardGrants(t *testing.T) {
	t.Parallel()
	namespaces := []string{"a", "ab", "b", "ml-1", "ml-2", "kube-public", "kube-system"}
	accounts := []string{"default", "train", "train.x", "run", "a"}
	globs := rapid.SampledFrom([]string{"*", "a*", "*b", "?", "ml-[1]", "ml-[^1]", "*-*", "a", "b", "ml-2", "kube-*", "kube-system", "train*", "run", "default", "[a-r]*"})
	patterns := func(t *rapid.T, name string) []string {
		if !rapid.Bool().Draw(t, "has "+name) {
			return nil
		}
		return rapid.SliceOfN(globs, 1, 3).Draw(t, name)
	}
	values := rapid.SliceOfN(rapid.SampledFrom([]string{"*", "x", "y", "x*", "?"}), 1, 2)
	rapid.Check(t, func(t *rapid.T) {
		grants := policy.Grants{Namespaces: patterns(t, "namespaces")}
		for _, name := range patterns(t, "accounts") {
			if rapid.Bool().Draw(t, "in a namespace") {
				name = globs.Draw(t, "namespace") + "/" + name
			}
			grants.ServiceAccounts = append(grants.ServiceAccounts, name)
		}
		for _, key := range []string{"team", "tier", corev1.LabelMetadataName} {
			if rapid.IntRange(0, 2).Draw(t, "wants "+key) == 0 {
				if grants.NamespaceLabels == nil {
					grants.NamespaceLabels = map[string]policy.Values{}
				}
				grants.NamespaceLabels[key] = values.Draw(t, key)
				if key == corev1.LabelMetadataName {
					grants.NamespaceLabels[key] = rapid.SliceOfN(globs, 1, 2).Draw(t, "names")
				}
			}
		}
		labels := rapid.SampledFrom([]string{"", "x", "y", "xy"})
		// One of each namespace and service account, so that a guard is compiled once
		// for many pods.
		request := compiler.Request{
			Placement:    guardedPool(policy.NodeTerm{Names: []string{"n"}}, grants),
			Capabilities: capability.Capabilities{Namespaces: map[string]map[string]string{}, NamespacesKnown: true},
		}
		live := map[string]*corev1.Namespace{}
		for _, namespace := range namespaces {
			more := map[string]string{}
			for _, key := range []string{"team", "tier"} {
				if value := labels.Draw(t, namespace+" "+key); value != "" {
					more[key] = value
				}
			}
			live[namespace] = guardtest.Namespace(namespace, more)
			request.Capabilities.Namespaces[namespace] = live[namespace].Labels
			for _, account := range accounts {
				request.Workloads = append(request.Workloads, deployment(t, namespace, account))
			}
		}
		plan, findings := compiler.Compile(request)
		evaluator, err := guardtest.New(guardOf(t, plan, "guard-pods"))
		if err != nil {
			t.Fatal(err)
		}
		refusedByCompiler := map[string]bool{}
		for _, f := range findings {
			if f.Rule == "compile/no-grant" {
				refusedByCompiler[f.Subject] = true
			}
		}
		for _, w := range request.Workloads {
			want := refusedByCompiler[w.Ref()] && w.Namespace != "kube-system"
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: w.Namespace}, Spec: corev1.PodSpec{
				ServiceAccountName: w.Templates[0].ServiceAccount,
				Tolerations:        []corev1.Toleration{{Key: "example.com/gpu", Operator: corev1.TolerationOpExists}},
			}}
			messages, _, err := evaluator.Complaints(t.Context(), guardtest.Pod(pod, nil, live[w.Namespace], &user.DefaultInfo{Name: "anna"}))
			if err != nil {
				t.Fatal(err)
			}
			if got := len(messages) > 0; got != want {
				t.Fatalf("grants %+v: the guard refuses %s with namespace labels %v: %v (%q), the compiler does: %v", grants, w.Ref(), live[w.Namespace].Labels, got, messages, want)
			}
		}
	})
}

func guardOf(t rapid.TB, plan *compiler.Plan, subject string) *admissionv1.ValidatingAdmissionPolicy {
	t.Helper()
	for _, o := range plan.Objects {
		if p, ok := o.Object.(*admissionv1.ValidatingAdmissionPolicy); ok && strings.Contains(p.Name, subject) {
			return p
		}
	}
	t.Fatalf("the plan has no %s", subject)
	return nil
}

// TestForgeableLabels holds that a label is called forgeable exactly where the
// NodeRestriction plugin lets a node give it to itself.
func TestForgeableLabels(t *testing.T) {
	t.Parallel()
	plugin := noderestriction.NewPlugin(nodeidentifier.NewDefaultNodeIdentifier())
	self := &user.DefaultInfo{Name: "system:node:n", Groups: []string{"system:nodes"}}
	domains := rapid.SampledFrom([]string{
		"", "example.com/", "kubernetes.io/", "k8s.io/", "x.kubernetes.io/", "x.k8s.io/", "karpenter.k8s.aws/", "notkubernetes.io/",
		"node-restriction.kubernetes.io/", "team.node-restriction.kubernetes.io/", "not-node-restriction.kubernetes.io/",
		"node.kubernetes.io/", "x.node.kubernetes.io/", "kubelet.kubernetes.io/", "x.kubelet.kubernetes.io/", "node-role.kubernetes.io/",
		"topology.kubernetes.io/", "failure-domain.beta.kubernetes.io/", "beta.kubernetes.io/", "cloud.google.com/", "karpenter.sh/",
	})
	names := rapid.SampledFrom([]string{"class", "zone", "region", "hostname", "os", "arch", "instance-type", "gpu", "windows-build"})
	rapid.Check(t, func(t *rapid.T) {
		key := domains.Draw(t, "domain") + names.Draw(t, "name")
		labelled := &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{key: "gpu"}}}
		admits := plugin.Admit(t.Context(), admission.NewAttributesRecord(
			labelled, &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, core.Kind("Node").WithVersion("version"), "", "n",
			core.Resource("nodes").WithVersion("version"), "", admission.Update, &metav1.UpdateOptions{}, false, self,
		), nil) == nil
		_, findings := compiler.Compile(compiler.Request{
			Placement: guardedPool(policy.NodeTerm{Labels: map[string]policy.Values{key: {"gpu"}}}, policy.Grants{Namespaces: []string{"a"}}),
		})
		if got := slices.Contains(rules(findings), "guard/forgeable-labels"); got != admits {
			t.Fatalf("%s: forgeable is %v, a node may set it on itself is %v (%v)", key, got, admits, findings)
		}
	})
}

// TestGuardSets holds that a set's name is in the names of its guards, and that a
// pool that is not guarded has none.
func TestGuardSets(t *testing.T) {
	t.Parallel()
	placement := guardedPool(policy.NodeTerm{Names: []string{"n"}}, policy.Grants{Namespaces: []string{"a"}})
	names := func(set string) (out []string) {
		plan, _ := compiler.Compile(compiler.Request{Placement: placement, Set: set})
		for _, o := range plan.Objects {
			out = append(out, o.Kind()+" "+o.Object.GetName())
		}
		return out
	}
	want := []string{
		"ValidatingAdmissionPolicy shop.guard-bindings.gpu.kubectl-sched.github.io",
		"ValidatingAdmissionPolicy shop.guard-pods.gpu.kubectl-sched.github.io",
		"ValidatingAdmissionPolicy shop.guard-templates.gpu.kubectl-sched.github.io",
		"ValidatingAdmissionPolicyBinding shop.guard-bindings.gpu.kubectl-sched.github.io",
		"ValidatingAdmissionPolicyBinding shop.guard-pods.gpu.kubectl-sched.github.io",
		"ValidatingAdmissionPolicyBinding shop.guard-templates.gpu.kubectl-sched.github.io",
	}
	if diff := cmp.Diff(want, names("shop")); diff != "" {
		t.Errorf("objects differ (-want +got):\n%s", diff)
	}
	placement.Pools[0].Dedicated.Guard = policy.GuardOff
	if got := names("shop"); got != nil {
		t.Errorf("a pool that is not guarded has %v", got)
	}
}
