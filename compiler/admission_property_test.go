package compiler_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/admission"
	"github.com/kubectl-sched/kubectl-sched/compiler/admission/admissiontest"
	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// placePolicy returns the policy of the plan that places pods, or nil.
func placePolicy(plan *compiler.Plan) *admissionregistrationv1.MutatingAdmissionPolicy {
	for _, o := range plan.Objects {
		if p, ok := o.Object.(*admissionregistrationv1.MutatingAdmissionPolicy); ok && p.Labels[admission.RoleLabel] == admission.RolePlace {
			return p
		}
	}
	return nil
}

// rendered returns the object, whose template got what the change says.
func rendered(t rapid.TB, object map[string]any, c compiler.Change) runtime.Object {
	t.Helper()
	out, err := admissiontest.Admitted(object)
	if err == nil {
		err = admissiontest.Place(out, c.After)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestAdmissionEqualsRender holds that a pod gets under admission what its
// template gets by render, field by field, and that doing it again changes
// nothing: over random policies and workloads, by the API server's own code.
func TestAdmissionEqualsRender(t *testing.T) {
	t.Parallel()
	compared, contradictions, silent := 0, 0, 0
	highest := int64(0)
	deadline := time.Now().Add(25 * time.Second)
	rapid.Check(t, func(t *rapid.T) {
		if time.Now().After(deadline) {
			return
		}
		w := admissiontest.Draw(t, 6, 60)
		var ws []*workload.Workload
		for _, o := range w.Workloads {
			ws = append(ws, fromObject(t, o))
		}
		r := compiler.Request{
			Placement: w.Placement, Workloads: ws, Surface: policy.SurfaceRender, Capabilities: w.Capabilities,
			Now: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC),
		}
		plan, findings := compiler.Compile(r)
		bad := admissiontest.Unfinished(findings)
		if bad[""] {
			return
		}
		r.Surface = policy.SurfaceAdmission
		if !w.Known {
			r.Workloads = nil
		}
		admitted, findings := compiler.Compile(r)
		for _, f := range findings {
			if f.Severity == diag.Error && f.Subject == "" {
				t.Fatalf("only the admission surface finds %v", f)
			}
		}
		p, err := admissiontest.Compile(placePolicy(admitted))
		if err != nil {
			t.Fatal(err)
		}
		for i, subject := range ws {
			if bad[subject.Ref()] {
				contradictions++
				continue
			}
			before, err := admissiontest.Admitted(w.Workloads[i])
			if err != nil {
				t.Fatal(err)
			}
			want := before
			var policies []string
			for _, c := range plan.Changes {
				if c.Workload == subject {
					want, policies = rendered(t, w.Workloads[i], c), c.Policies
				}
			}
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: subject.Namespace, Labels: w.Capabilities.Namespaces[subject.Namespace]}}
			got, cost, err := p.Mutate(t.Context(), before, namespace)
			if err != nil {
				t.Fatalf("%s: %v\n%s", subject.Ref(), err, asJSON(w.Workloads[i]))
			}
			highest = max(highest, cost)
			mark, marked := admission.ParseMark(got.(metav1.Object).GetAnnotations()[admission.Annotation("")])
			if marked != (len(policies) > 0) || !slices.Equal(mark.Policies, policies) {
				t.Fatalf("%s is marked by %q, want %q", subject.Ref(), mark.Policies, policies)
			}
			if diff := cmp.Diff(admissiontest.Comparable(want), admissiontest.Comparable(got)); diff != "" {
				t.Fatalf("%s, policies %v, differs (-render +admission):\n%s\nbefore %s\npolicies %s", subject.Ref(), policies, diff, asJSON(before), asJSON(w.Placement.Policies))
			}
			again, _, err := p.Mutate(t.Context(), got, namespace)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, again); diff != "" {
				t.Fatalf("%s: once more changes it:\n%s", subject.Ref(), diff)
			}
			if len(policies) == 0 {
				silent++
			} else {
				compared++
			}
		}
	})
	t.Logf("%d compared, %d left alone, %d contradictions; the highest cost was %d", compared, silent, contradictions, highest)
}

// What is in the cluster already has been placed, by this content or a former
// one: its fields contradict nothing that comes.
func TestAdmissionLeavesAloneWhatIsThere(t *testing.T) {
	t.Parallel()
	placement := &policy.Placement{Policies: []policy.Policy{{
		Name: "second", Level: policy.Mandatory, Positions: anywhere("policies", 0),
		Workloads: policy.Workloads{Namespaces: []string{"shop"}},
		Nodes:     &policy.Nodes{Require: &policy.NodeTerm{Labels: map[string]policy.Values{"version": {"two"}}}},
	}}}
	object := func(kind, uid, mark string) *workload.Workload {
		metadata := map[string]any{"name": "web", "namespace": "shop", "annotations": map[string]any{"admission.kubectl-sched.github.io/placement": mark}}
		if uid != "" {
			metadata["uid"] = uid
		}
		if mark == "" {
			delete(metadata, "annotations")
		}
		pods := map[string]any{"nodeSelector": map[string]any{"version": "one"}, "containers": []any{map[string]any{"name": "main", "image": "example.com/main:1"}}}
		if kind == "Pod" {
			return fromObject(t, map[string]any{"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": pods})
		}
		labels := map[string]any{"app": "web"}
		return fromObject(t, map[string]any{"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": map[string]any{
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": pods},
		}})
	}
	for name, test := range map[string]struct {
		w    *workload.Workload
		want bool
	}{
		"a pod that runs":                 {object("Pod", "u", ""), false},
		"a pod that is to come":           {object("Pod", "", ""), true},
		"a DaemonSet that was placed":     {object("DaemonSet", "u", "95a0cb00a8 first"), false},
		"a DaemonSet from before the set": {object("DaemonSet", "u", ""), true},
		"a Deployment, which is not":      {object("Deployment", "u", ""), true},
	} {
		request := compiler.Request{
			Placement: placement, Workloads: []*workload.Workload{test.w}, Surface: policy.SurfaceAdmission,
			Capabilities: capability.Capabilities{Minor: 37},
		}
		plan, findings := compiler.Compile(request)
		if findings.HasErrors() != test.want || (len(plan.Changes) > 0) != test.want || len(plan.Unmatched) > 0 {
			t.Errorf("%s: errors %v, changes %v, unmatched %v; want errors and changes: %v", name, findings, plan.Changes, plan.Unmatched, test.want)
		}
		request.WithPlaced = true
		plan, findings = compiler.Compile(request)
		if findings.HasErrors() != test.want || len(plan.Changes) != 1 {
			t.Errorf("%s, to be explained: errors %v, changes %v", name, findings, plan.Changes)
		}
	}
}
