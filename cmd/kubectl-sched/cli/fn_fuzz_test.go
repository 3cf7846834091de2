package cli

import (
	"bytes"
	"context"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// FuzzResourceList holds that whatever an orchestrator sends, the KRM function
// either answers with a ResourceList or says what is wrong; it never panics.
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
	f.Fuzz(func(t *testing.T, data []byte) {
		var out, errOut bytes.Buffer
		a := newApp(genericiooptions.IOStreams{In: bytes.NewReader(data), Out: &out, ErrOut: &errOut})
		a.load = func(context.Context, policyOptions) (*policy.Placement, diag.Findings) {
			return &policy.Placement{Policies: []policy.Policy{{
				Name: "web", Workloads: policy.Workloads{Namespaces: []string{"*"}},
				Nodes: &policy.Nodes{Require: &policy.NodeTerm{Labels: map[string]policy.Values{"class": {"web"}}}},
			}}}, nil
		}
		switch code := run(context.Background(), a, []string{"fn", "-p", "placement"}); {
		case code != 0 && errOut.Len() == 0:
			t.Errorf("%q: exit code %d without a word", data, code)
		case code == 0 && out.Len() > 0:
			var list any
			if err := yaml.Unmarshal(out.Bytes(), &list); err != nil {
				t.Errorf("%q: the answer is no YAML: %v\n%s", data, err, out.String())
			}
		}
	})
}
