// Package imports_test holds that packages import in one direction only, and that
// the walls between them stand. It links none of them.
package imports_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/kubectl-sched/kubectl-sched"

// layers lists the packages that make up the plugin, lowest first. Each may
// import only what stands above it in the list.
var layers = []string{
	"policy/diag",
	"schedulerbin/args",
	"schedulerbin/imagename",
	"schedulerbin/gangkey",
	"schedulerbin/gates/condition",
	"policy",
	"policy/gates",
	"catalog",
	"policy/load",
	"policy/load/take",
	"internal/completion",
	"internal/revision",
	"internal/objectyaml",
	"internal/workload/plain",
	"internal/workload/ownership",
	"internal/workload/yamldoc",
	"internal/workload/yamledit",
	"internal/workload",
	"compiler/capability",
	"compiler/cel",
	"compiler/jsonfield",
	"compiler/profile",
	"compiler/nodeexpr",
	"compiler/admission",
	"compiler/guard",
	"compiler/nodelabel",
	"compiler",
	"compiler/emit",
	"internal/krm",
	"internal/cluster",
	"internal/cluster/trim",
	"internal/cluster/snapshot",
	"internal/cluster/anonymize",
	"schedulerbin/gates/condition",
	"internal/gating",
	"schedulerbin/gates/approval",
	"schedulerbin/deploy",
	"internal/cluster/capture",
	"internal/cluster/facts",
	"schedulerbin/contain",
	"schedulerbin/podgroup",
	"schedulerbin/queueing",
	"schedulerbin/room",
	"schedulerbin/plugins/gang",
	"schedulerbin/plugins/cachelocality",
	"schedulerbin/plugins/gpumemory",
	"schedulerbin/registry",
	"schedulerbin/recording/state",
	"internal/simulate/store",
	"internal/simulate/engine",
	"internal/simulate",
	"internal/preview",
	"internal/install",
	"internal/apply",
	"internal/review",
	"internal/adopt",
	"internal/lint",
	"internal/lint/fingerprint",
	"internal/lint/fix",
	"internal/lint/suppress",
	"internal/lint/settings",
	"internal/lint/baseline",
	"internal/policytest/naming",
	"internal/policytest",
	"internal/report/excerpt",
	"internal/report",
	"cmd/kubectl-sched/cli",
	"cmd/kubectl-sched",
}

// schedulerConfiguration is what reading and checking a scheduler's configuration
// takes of the Kubernetes servers: types, defaults and validation, and nothing that
// runs. compiler/profile alone asks for it.
var schedulerConfiguration = []string{
	"k8s.io/apiserver/pkg/features",
	"k8s.io/apiserver/pkg/util/feature",
	"k8s.io/client-go/features",
	"k8s.io/kubernetes/pkg/apis/core",
	"k8s.io/kubernetes/pkg/apis/core/helper",
	"k8s.io/kubernetes/pkg/apis/core/v1/helper",
	"k8s.io/kubernetes/pkg/features",
	"k8s.io/kubernetes/pkg/scheduler/apis/config",
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme",
	"k8s.io/kubernetes/pkg/scheduler/apis/config/v1",
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation",
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature",
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names",
}

// list runs "go list" and returns its lines.
func list(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// TestDataFlowsOneWay holds that no package of the plugin imports upward.
func TestDataFlowsOneWay(t *testing.T) {
	t.Parallel()
	for _, line := range list(t, "-deps", "-f", `{{if .Module}}{{if .Module.Main}}{{.ImportPath}} {{join .Imports " "}}{{end}}{{end}}`, module+"/cmd/kubectl-sched") {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		name := strings.TrimPrefix(words[0], module+"/")
		own := slices.Index(layers, name)
		if own < 0 {
			t.Errorf("%s is linked into the plugin and has no place in the list of layers", name)
			continue
		}
		for _, imported := range words[1:] {
			below, ours := strings.CutPrefix(imported, module+"/")
			if ours && slices.Index(layers, below) >= own {
				t.Errorf("%s imports %s, which is not below it", name, below)
			}
		}
	}
}

// TestWalls holds that some packages reach nothing of what would make them heavy
// or tie them to something that they must not know.
func TestWalls(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		packages  []string
		forbidden []string
		// but are allowed all the same.
		but []string
	}{
		{
			name:      "what writes to clusters reaches nothing of the Kubernetes servers but a scheduler's configuration",
			packages:  []string{"internal/apply", "internal/lint", "internal/install", "internal/gating", "internal/cluster/facts"},
			forbidden: []string{"k8s.io/kubernetes", "k8s.io/apiserver", "go.etcd.io/etcd", "sigs.k8s.io/kwok"},
			but:       schedulerConfiguration,
		},
		{
			name:      "the plugin has the scheduler inside, but no server's command",
			packages:  []string{"cmd/kubectl-sched"},
			forbidden: []string{"k8s.io/kubernetes/cmd", "k8s.io/kubernetes/pkg/kubelet", "k8s.io/kubernetes/pkg/controlplane", "k8s.io/apiserver/pkg/server", "go.etcd.io/etcd", "sigs.k8s.io/kwok"},
		},
		{
			name:     "the language and the compiler know no cluster, no command line and no evaluator",
			packages: []string{"policy", "compiler"},
			forbidden: []string{
				"github.com/spf13/cobra", "k8s.io/client-go", "k8s.io/cli-runtime",
				"cuelang.org/go",
			},
			but: schedulerConfiguration,
		},
		{
			name:     "policies are loaded, and entries of a catalog taken, without a cluster, a compiler and a command line",
			packages: []string{"catalog", "policy/load", "policy/load/take"},
			forbidden: []string{
				"github.com/spf13/cobra", "k8s.io/client-go", "k8s.io/cli-runtime", "k8s.io/api", "k8s.io/kubernetes", "k8s.io/kube-scheduler",
				module + "/compiler", module + "/internal",
			},
		},
		{
			name:      "what the bundled plugins are told is known without a scheduler and a cluster",
			packages:  []string{"schedulerbin/args"},
			forbidden: []string{"k8s.io/kubernetes", "k8s.io/kube-scheduler", "k8s.io/client-go", "k8s.io/api", "k8s.io/apiserver"},
		},
		{
			name:      "a plugin is contained, and is one, by the public framework alone",
			packages:  []string{"schedulerbin/contain", "schedulerbin/plugins/cachelocality", "schedulerbin/plugins/gpumemory"},
			forbidden: []string{"k8s.io/kubernetes"},
		},
		{
			name:      "what a scheduler saw is hashed by the public framework alone",
			packages:  []string{"schedulerbin/recording/state"},
			forbidden: []string{"k8s.io/kubernetes"},
		},
		{
			name:      "the scheduler is told of gangs, and its source of them knows no scheduler",
			packages:  []string{"schedulerbin/gangkey", "schedulerbin/podgroup", "schedulerbin/podstatus"},
			forbidden: []string{"k8s.io/kubernetes", "k8s.io/apiserver"},
		},
		{
			name:      "what names gangs in a pod template knows no cluster",
			packages:  []string{"schedulerbin/gangkey"},
			forbidden: []string{"k8s.io/client-go"},
		},
		{
			name:      "when a gate opens is known without a cluster",
			packages:  []string{"schedulerbin/gates/condition", "schedulerbin/gates/approval"},
			forbidden: []string{"k8s.io/kubernetes", "k8s.io/apiserver", "k8s.io/client-go", "github.com/spf13/cobra"},
		},
		{
			name:     "what a gate looks for in an object is found by the client's JSONPath alone",
			packages: []string{"schedulerbin/gates/fieldpath"},
			forbidden: []string{
				"k8s.io/kubernetes", "k8s.io/apiserver", "k8s.io/client-go/kubernetes", "k8s.io/client-go/rest",
				"k8s.io/client-go/dynamic", "k8s.io/client-go/informers", "k8s.io/client-go/tools", "github.com/spf13/cobra",
			},
		},
		{
			name:      "the gate controller knows no scheduler",
			packages:  []string{"schedulerbin/gates"},
			forbidden: []string{"k8s.io/kubernetes/pkg/scheduler/framework", "k8s.io/kubernetes/cmd", "k8s.io/kube-scheduler/framework"},
		},
		{
			name:      "a snapshot is read, compared and anonymised without a cluster",
			packages:  []string{"internal/cluster/trim", "internal/cluster/snapshot", "internal/cluster/anonymize"},
			forbidden: []string{"k8s.io/kubernetes", "k8s.io/apiserver", "k8s.io/client-go", "k8s.io/cli-runtime", "github.com/spf13/cobra", "cuelang.org/go"},
		},
		{
			name:      "a cluster is captured without any of the Kubernetes servers",
			packages:  []string{"internal/cluster/capture"},
			forbidden: []string{"k8s.io/kubernetes", "k8s.io/apiserver", "github.com/spf13/cobra", "cuelang.org/go"},
		},
		{
			name:      "a release is made without a cluster, and without what it is made of",
			packages:  []string{"cmd/release"},
			forbidden: []string{"k8s.io", "cuelang.org/go", "github.com/spf13/cobra", "github.com/docker/docker"},
		},
		{
			name:      "what anybody may send is read by packages that are fuzzed without a scheduler and a cluster's clients",
			packages:  []string{"internal/krm", "internal/report/excerpt", "internal/policytest/naming"},
			forbidden: []string{"k8s.io/kubernetes", "k8s.io/apiserver", "k8s.io/client-go", "cuelang.org/go", "github.com/spf13/cobra"},
			but:       schedulerConfiguration,
		},
		{
			name:      "only the loader reaches CUE",
			packages:  []string{"internal/workload", "compiler/emit", "internal/cluster", "internal/apply"},
			forbidden: []string{"cuelang.org/go"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for _, p := range test.packages {
				for _, dep := range list(t, "-deps", module+"/"+p) {
					for _, f := range test.forbidden {
						if (dep == f || strings.HasPrefix(dep, f+"/")) && !slices.Contains(test.but, dep) {
							t.Errorf("%s reaches %s", p, dep)
						}
					}
				}
			}
		})
	}
}

// TestDirectImports holds that a few modules are imported by those alone whose
// business they are.
func TestDirectImports(t *testing.T) {
	t.Parallel()
	allowed := map[string][]string{
		"cuelang.org/go":                           {"policy/load", "test/"},
		"github.com/spf13/cobra":                   {"cmd/", "docs/"},
		"k8s.io/cli-runtime/pkg/genericclioptions": {"cmd/"},
		"k8s.io/kubernetes":                        {"compiler/profile", "cmd/placement-scheduler", "cmd/sched-sandbox", "internal/sandbox", "internal/simulate", "schedulerbin/", "test/"},
		"k8s.io/kubernetes/cmd/kube-scheduler":     {"cmd/placement-scheduler", "cmd/sched-sandbox"},
		"sigs.k8s.io/kwok":                         {"cmd/sched-sandbox", "internal/sandbox", "test/"},
		"github.com/google/go-containerregistry":   {"internal/release", "test/"},
		"github.com/CycloneDX/cyclonedx-go":        {"internal/release/bom", "test/"},
	}
	for _, line := range list(t, "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"/...") {
		words := strings.Fields(line)
		name := strings.TrimPrefix(words[0], module+"/")
		for _, imported := range words[1:] {
			for restricted, to := range allowed {
				if imported != restricted && !strings.HasPrefix(imported, restricted+"/") {
					continue
				}
				if !slices.ContainsFunc(to, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
					t.Errorf("%s imports %s; only %s may", name, imported, strings.Join(to, ", "))
				}
			}
		}
	}
}
