package scheduler_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/compiler/profile"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

// profilePolicies ask for what no field of a pod says.
const profilePolicies = `package placement

clusters: lab: schedulers: placement: bundled: true
policies: {
	batch: {
		workloads: names: ["batch-*"]
		pack: {}
	}
	picky: {
		workloads: names: ["picky"]
		nodes: prefer: {labels: disk: "ssd", mustWin: true}
	}
}
`

// TestCompiledProfiles holds that the scheduler serves the configuration that is
// compiled of policies, and that pods land as those say: packed, and where a
// preference must win, there, against the spread and the free room that keep the
// default scheduler off.
func TestCompiledProfiles(t *testing.T) {
	t.Parallel()
	withoutAPI.start(t)
	l := newLab(t, withoutAPI, 0)
	const empty, half, ssd, canary = 0, 1, 2, 3
	for i, labels := range []map[string]string{empty: {}, half: {}, ssd: {"disk": "ssd"}} {
		labels[corev1.LabelHostname] = l.nodeName(i)
		l.node(i, labels)
	}
	l.untilNodesKnown(canary)
	small := func(name, cpu string) *corev1.Pod {
		pod := l.pod(name, map[string]string{"app": name})
		pod.Spec.SchedulerName = ""
		pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(cpu)
		return pod
	}
	placed := func(name, cpu, app string, node int) {
		pod := small(name, cpu)
		pod.Labels["app"], pod.Spec.NodeName = app, l.nodeName(node)
		l.create(pod)
	}
	placed("there", "500m", "other", half)
	placed("picky-a", "100m", "picky", ssd)
	placed("picky-b", "100m", "picky", ssd)
	picky := func(name string) *corev1.Pod {
		pod := small(name, "200m")
		pod.Labels["app"] = "picky"
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "picky"}},
		}}
		return pod
	}

	plan := l.compiled(small("batch-1", "200m"), small("batch-2", "200m"), picky("picky"))
	l.serve(plan)
	for _, c := range plan.Changes {
		pod := small(c.Workload.Name, "200m")
		if c.Workload.Name == "picky" {
			pod = picky("picky")
		}
		pod.Spec.SchedulerName, pod.Spec.Affinity = c.After.SchedulerName, c.After.Affinity
		if pod.Spec.SchedulerName == "" {
			t.Fatalf("%s names no profile", pod.Name)
		}
		l.create(pod)
		want := map[string]int{"batch-1": half, "batch-2": half, "picky": ssd}[pod.Name]
		if got := l.untilPlaced(pod.Name); got != l.nodeName(want) {
			t.Errorf("%s is on %s, want %s", pod.Name, got, l.nodeName(want))
		}
	}
	// The default scheduler does otherwise with the same pods.
	plain := small("plain", "200m")
	l.create(plain)
	if got := l.untilPlaced("plain"); got == l.nodeName(half) {
		t.Errorf("the default scheduler packs too, so that nothing is shown")
	}
	unheard := picky("unheard")
	unheard.Spec.Affinity = plan.Changes[2].After.Affinity
	l.create(unheard)
	if got := l.untilPlaced("unheard"); got == l.nodeName(ssd) {
		t.Errorf("the default scheduler takes the preferred node too, so that nothing is shown")
	}
}

// compiled compiles profilePolicies for the pods.
func (l *lab) compiled(pods ...*corev1.Pod) *compiler.Plan {
	l.Helper()
	dir := l.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.cue"), []byte(profilePolicies), 0o600); err != nil {
		l.Fatal(err)
	}
	placement, findings := load.Evaluate(l.Context(), load.Options{Paths: []string{dir}})
	if findings.HasErrors() {
		l.Fatal(findings)
	}
	var manifests strings.Builder
	for _, pod := range pods {
		fmt.Fprintf(&manifests, "---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: %s, labels: {app: %s}}\nspec: {}\n", pod.Name, l.namespace, pod.Labels["app"])
	}
	set, findings := workload.Read(l.Context(), workload.Input{Files: []string{"-"}, Stdin: strings.NewReader(manifests.String())}, workload.Options{})
	if findings.HasErrors() {
		l.Fatal(findings)
	}
	plan, findings := compiler.Compile(compiler.Request{
		Placement: placement, Workloads: set.Workloads, Capabilities: capability.Capabilities{Cluster: "lab"},
	})
	if findings.HasErrors() {
		l.Fatal(findings)
	}
	return plan
}

// serve starts a scheduler with the configuration of the plan's profiles, and
// nothing else but the way to the API server.
func (l *lab) serve(plan *compiler.Plan) {
	l.Helper()
	var profiles []profile.Profile
	for _, u := range plan.Profiles {
		profiles = append(profiles, u.Profile)
	}
	text, err := profile.Configuration(profiles)
	if err != nil {
		l.Fatal(err)
	}
	text = fmt.Appendf(text, "clientConnection: {kubeconfig: %q}\n", l.sandbox.Kubeconfig())
	// The lease is the other scheduler's of this package.
	l.besides(string(text), "--leader-elect=false")
}
