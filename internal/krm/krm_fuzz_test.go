package krm

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"sigs.k8s.io/kustomize/kyaml/fn/framework"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// FuzzResourceList holds that whatever an orchestrator sends, the function either
// answers with a ResourceList or says what is wrong; it never panics.
func FuzzResourceList(f *testing.F) {
	const head = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n"
	const item = "- apiVersion: apps/v1\n  kind: Deployment\n  metadata: {name: web, namespace: shop}\n  spec: {template: {metadata: {labels: {app: web}}, spec: {containers: []}}}\n"
	for _, s := range []string{
		head + "items:\n" + item, head + "items: []\n", head + "items: 3\n", head + "items:\n- 3\n- null\n- [a]\n" + item,
		head + "functionConfig: {spec: {policies: [a], cluster: x, namespace: y}}\nitems:\n" + item, head + "functionConfig: [a]\n", head + "functionConfig: {spec: 3}\n",
		head + "functionConfig: {spec: {policy: \"x: {\"}}\nitems:\n" + item, "", "a: [", "- a\n", "apiVersion: v1\nkind: List\nitems:\n" + item, item,
		head + "items:\n- apiVersion: apps/v1\n  kind: Deployment\n  metadata: 3\n  spec: []\n", head + "items:\n- {metadata: {annotations: {config.kubernetes.io/index: x, config.kubernetes.io/path: 3}}}\n",
		head + "items: &a [*a]\n", head + "results: 3\n", "\xff\xfe",
	} {
		f.Add([]byte(s))
	}
	fn := Function{
		Paths: []string{"placement"},
		Load: func(context.Context, []string) (*policy.Placement, diag.Findings) {
			return &policy.Placement{Policies: []policy.Policy{{
				Name: "web", Workloads: policy.Workloads{Namespaces: []string{"*"}},
				Nodes: &policy.Nodes{Require: &policy.NodeTerm{Labels: map[string]policy.Values{"class": {"web"}}}},
			}}}, nil
		},
		Kinds: func(*policy.Placement) (*workload.Kinds, diag.Findings) { return workload.NewKinds(nil) },
		Compile: func(ctx context.Context, p *policy.Placement, _ string, workloads []*workload.Workload, incomplete bool) (*compiler.Plan, diag.Findings, error) {
			plan, findings := compiler.CompileContext(ctx, compiler.Request{Placement: p, Workloads: workloads, Surface: policy.SurfaceRender, Incomplete: incomplete})
			return plan, findings, nil
		},
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var out bytes.Buffer
		err := fn.Run(t.Context(), "list.yaml", data, &out)
		var results framework.Results
		switch {
		case errors.As(err, &results) && len(results) == 0:
			t.Errorf("%q: refused without a result", data)
		case err != nil && err.Error() == "":
			t.Errorf("%q: refused without a word", data)
		case err == nil && out.Len() > 0:
			var list any
			if err := yaml.Unmarshal(out.Bytes(), &list); err != nil {
				t.Errorf("%q: the answer is no YAML: %v\n%s", data, err, out.String())
			}
		}
	})
}
