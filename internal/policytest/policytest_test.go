package policytest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/internal/policytest"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

// policies are those that the tests of this file are about.
const policies = `package shop

clusters: prod: {
	schedulers: placement: bundled: true
	topology: rack: "example.com/rack"
}
pools: gpu: {nodes: labels: "example.com/class": "gpu", dedicated: {}}
policies: {
	"web-ha": {
		workloads: {namespaces: ["shop"], names: ["web*"]}
		spread: zone: strength: "require"
	}
	"members-apart": {
		workloads: {namespaces: ["shop"], names: ["quorum"]}
		apart: members: {on: "node", strength: "require"}
	}
	"near-quorum": {
		workloads: {namespaces: ["shop"], names: ["client"]}
		together: quorum: {on: "zone", strength: "require", of: labels: app: "quorum"}
	}
	"train": {
		workloads: {namespaces: ["shop"], names: ["train"]}
		nodes: require: pools: ["gpu"]
		tolerate: pools: ["gpu"]
		gang: min: "all"
	}
	"packed": {
		workloads: {namespaces: ["shop"], names: ["batch"]}
		pack: {}
	}
	"in-zone-a": {
		workloads: {namespaces: ["shop"], names: ["pinned"]}
		nodes: require: zones: ["a"]
	}
	"approved": {
		workloads: {namespaces: ["shop"], names: ["held"]}
		gates: approval: true
	}
	"missing-rack": {
		workloads: {namespaces: ["shop"], names: ["racked"]}
		spread: rack: strength: "require"
	}
}
`

// six is a cluster of six nodes in three zones.
const six = `nodes: web: {count: 6, zones: ["a", "b", "c"]}
`

// run runs one test, whose body is given, against the policies.
func run(t testing.TB, body string) policytest.Result {
	t.Helper()
	dir := t.TempDir()
	return runIn(t, dir, body)
}

func runIn(t testing.TB, dir, body string) policytest.Result {
	t.Helper()
	r := report(t, dir, map[string]string{"a.cue": policies, "tests.cue": "package shop\n\ntests: \"it\": {\n" + body + "\n}\n"}, policytest.Options{})
	if len(r.Results) != 1 {
		t.Fatalf("%d results", len(r.Results))
	}
	return r.Results[0]
}

func report(t testing.TB, dir string, files map[string]string, o policytest.Options) *policytest.Report {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, "placement", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	placement, findings := load.Evaluate(t.Context(), load.Options{Dir: dir, Paths: []string{"placement"}})
	if findings.HasErrors() {
		t.Fatal(findings)
	}
	o.Placement, o.Dir = placement, dir
	if o.Now.IsZero() {
		o.Now = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	}
	r, err := policytest.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestExpectations holds that each kind of expectation holds where it is true, and
// fails, at its own line and with what happened, where it is not.
func TestExpectations(t *testing.T) {
	t.Parallel()
	const (
		web    = six + "workloads: web: {namespace: \"shop\", replicas: 6}\nexpect: workloads: web: "
		quorum = six + "workloads: quorum: {kind: \"StatefulSet\", namespace: \"shop\", replicas: 7}\nexpect: workloads: quorum: "
		both   = six + "workloads: quorum: {kind: \"StatefulSet\", namespace: \"shop\", replicas: 1}\nworkloads: client: {namespace: \"shop\", replicas: 2}\nexpect: workloads: client: "
		gpu    = "nodes: gpu: {count: 2, zones: [\"a\"]}\nnodes: web: {zones: [\"a\", \"b\"]}\n"
		pinned = six + "workloads: pinned: {namespace: \"shop\", replicas: 2}\nexpect: workloads: pinned: "
	)
	train := func(replicas int, expect string) string {
		return gpu + fmt.Sprintf("workloads: train: {kind: \"Job\", namespace: \"shop\", replicas: %d, requests: cpu: \"5\"}\nexpect: workloads: train: ", replicas) + expect
	}
	tests := map[string]struct {
		body string
		// fails is what the failure says; empty where the expectation holds.
		fails string
		// at is the text at which the failure must point.
		at string
	}{
		"all are placed":              {web + `placed: "all"`, "", ""},
		"not all are placed":          {quorum + `placed: "all"`, "7 pods of StatefulSet shop/quorum must be on nodes, and 6 are; quorum-6 is pending: InterPodAffinity", `placed:`},
		"none is placed":              {quorum + `placed: "none"`, "0 pods of StatefulSet shop/quorum must be on nodes, and 6 are", `placed:`},
		"so many are placed":          {quorum + `placed: 6`, "", ""},
		"zones":                       {web + `zones: ["a", "b", "c"]`, "", ""},
		"other zones":                 {web + `zones: ["a", "b"]`, "(c)", `zones:`},
		"zones, and some are nowhere": {quorum + `zones: ["a", "b", "c"]`, "7 pods of StatefulSet shop/quorum must be on nodes", `quorum: zones`},
		"zones of those that fit":     {quorum + `{placed: 6, zones: ["a", "b", "c"]}`, "", ""},
		"pools":                       {train(2, `pools: ["gpu"]`), "", ""},
		"other pools":                 {train(2, `pools: ["web"]`), "must be in pools web", `pools:`},
		"nodes":                       {pinned + `nodes: ["web-1", "web-4"]`, "", ""},
		"other nodes":                 {pinned + `nodes: ["web-1", "web-2"]`, "web-4", `nodes:`},
		"labels of nodes":             {train(2, `nodeLabels: "example.com/class": "gpu"`), "", ""},
		"other labels of nodes":       {web + `nodeLabels: "example.com/class": ["gpu", "cpu"]`, "on nodes with example.com/class=gpu|cpu", `"example.com/class":`},
		"counts":                      {web + `perDomain: zone: {a: 2, b: 2, c: 2}`, "", ""},
		"other counts":                {web + `perDomain: zone: {a: 3, b: 2, c: 1}`, "must be a: 3, b: 2, c: 1, and are a: 2, b: 2, c: 2", `zone:`},
		"a count is missing":          {web + `perDomain: zone: {a: 2, b: 2}`, "are a: 2, b: 2, c: 2", `zone:`},
		"a count of none":             {pinned + `perDomain: zone: {a: 2, b: 0}`, "", ""},
		"skew":                        {web + `maxSkew: zone: 0`, "", ""},
		"more skew":                   {six + "workloads: web: {namespace: \"shop\", replicas: 7}\nexpect: workloads: web: maxSkew: zone: 0", "differ by 1: a: ", `zone:`},
		// Zone a alone may have pods, so that there is nothing to differ from.
		"skew where pods may run": {pinned + `maxSkew: zone: 0`, "", ""},
		"skew over empty domains": {"nodes: big: {zones: [\"a\"], resources: cpu: \"64\"}\nnodes: web: {zones: [\"b\"], resources: cpu: \"1\"}\nworkloads: other: {namespace: \"shop\", replicas: 2, requests: cpu: \"8\"}\nexpect: workloads: other: maxSkew: zone: 1", "differ by 2: a: 2, b: 0", `zone:`},
		"apart":                   {quorum + `{placed: 6, apart: quorum: "node"}`, "", ""},
		"not apart":               {web + `apart: web: "zone"`, "must share no zone with web", `web: "zone"`},
		"together":                {both + `together: quorum: "zone"`, "", ""},
		"not together":            {six + "workloads: quorum: {namespace: \"shop\"}\nworkloads: web: {namespace: \"shop\", replicas: 3}\nexpect: workloads: web: together: quorum: \"zone\"", "must each share their zone with quorum", `quorum: "zone"`},
		"pending":                 {quorum + `pending: {count: 1, plugin: "InterPodAffinity", reason: "anti-affinity", policy: "members-apart"}`, "", ""},
		"not pending":             {web + `pending: {}`, "a pod of Deployment shop/web must be pending, and none is", `pending:`},
		"fewer pending":           {quorum + `pending: count: 2`, "2 pods of StatefulSet shop/quorum must be pending, and 1 is", `count:`},
		"all pending":             {quorum + `pending: count: "all"`, "7 pods of StatefulSet shop/quorum must be pending, and 1 is", `count:`},
		"pending for another": {
			quorum + `pending: plugin: "NodeAffinity"`,
			"quorum-6 is pending, but not for the reason that is expected (plugin NodeAffinity): InterPodAffinity", `pending:`,
		},
		"pending, other words":    {quorum + `pending: reason: "no luck"`, "but not for the reason", `pending:`},
		"pending, another policy": {quorum + `pending: policy: "web-ha"`, "but not for the reason", `pending:`},
		"pending by a gate":       {six + "workloads: held: namespace: \"shop\"\nexpect: workloads: held: pending: {count: \"all\", plugin: \"SchedulingGates\", policy: \"approved\"}", "", ""},
		"needs nodes":             {"nodes: web: {zones: [\"a\"], grows: true}\nworkloads: quorum: {namespace: \"shop\", replicas: 3}\nexpect: workloads: quorum: needsNodes: {pool: \"web\", nodes: 2, pods: 2}", "", ""},
		"needs more nodes":        {"nodes: web: {zones: [\"a\"], grows: true}\nworkloads: quorum: {namespace: \"shop\", replicas: 3}\nexpect: workloads: quorum: needsNodes: {pool: \"web\", nodes: 3}", "3 new nodes of web must be needed, and 2 are", `nodes: 3`},
		"needs, and nobody makes": {quorum + `needsNodes: pool: "web"`, "has no grows: true", `needsNodes:`},
		"the gang starts":         {train(2, `gang: "whole"`), "", ""},
		"the gang does not start": {train(3, `gang: "whole"`), "all 3 members of Job shop/train must start, and 0 are on nodes", `gang:`},
		"the gang waits":          {train(3, `gang: "waits"`), "", ""},
		"the gang does not wait":  {train(2, `gang: "waits"`), "no member of Job shop/train may start before all can, and 2 of 2", `gang:`},
		"built in":                {web + `compiled: level: "builtin"`, "", ""},
		"not built in":            {six + "workloads: batch: namespace: \"shop\"\nexpect: workloads: batch: compiled: level: \"builtin\"", "must be of level builtin, and is of level profile: schedulerName", `level:`},
		"by a profile":            {six + "workloads: batch: namespace: \"shop\"\nexpect: workloads: batch: compiled: level: \"profile\"", "", ""},
		"nothing is added":        {six + "workloads: other: namespace: \"shop\"\nexpect: workloads: other: compiled: level: \"builtin\"", "the policies add nothing to Deployment shop/other", `level:`},
		"policies":                {web + `compiled: policies: ["web-ha"]`, "", ""},
		"other policies":          {web + `compiled: policies: []`, "must be none, and are web-ha", `policies:`},
		"fields":                  {web + `compiled: fields: topologySpreadConstraints: "\"topologyKey\":\"topology.kubernetes.io/zone\""`, "", ""},
		"other values":            {web + `compiled: fields: topologySpreadConstraints: "\"maxSkew\":2"`, `must have "maxSkew":2 in it, and is`, `topologySpreadConstraints:`},
		"other fields":            {web + `compiled: fields: tolerations: ""`, "policies add nothing to tolerations of Deployment shop/web; they add to topologySpreadConstraints", `tolerations:`},
		"a finding":               {web + "placed: \"all\"\nexpect: findings: [{rule: \"nodes/empty-pool\", severity: \"warning\"}]", "", ""},
		"an error is expected":    {six + "workloads: racked: namespace: \"shop\"\nexpect: findings: [{rule: \"compile/topology-missing\", severity: \"error\", text: \"example.com/rack\"}]", "", ""},
		"another finding":         {web + "placed: \"all\"\nexpect: findings: [{rule: \"nodes/empty-pool\", severity: \"error\"}]", "nodes/empty-pool is found, but not as expected", `{rule:`},
		"no such finding":         {web + "placed: \"all\"\nexpect: findings: [{rule: \"compile/topology-missing\"}]", "compile/topology-missing is not found", `{rule:`},
		"no findings":             {gpu + "workloads: pinned: namespace: \"shop\"\nworkloads: other: namespace: \"shop\"\nexpect: noFindings: true", "", ""},
		"findings":                {web + "placed: \"all\"\nexpect: noFindings: true", "no finding is expected, and there is nodes/empty-pool", `noFindings:`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run(t, test.body)
			if len(r.Errors) > 0 {
				t.Fatalf("errors: %v", r.Errors)
			}
			if r.Expectations == 0 {
				t.Error("nothing was judged")
			}
			if test.fails == "" {
				if len(r.Failures) > 0 {
					t.Errorf("it fails: %v", r.Failures)
				}
				return
			}
			if len(r.Failures) != 1 {
				t.Fatalf("%d failures: %v", len(r.Failures), r.Failures)
			}
			f := r.Failures[0]
			if !strings.Contains(f.Message, test.fails) {
				t.Errorf("it says %q, not %q", f.Message, test.fails)
			}
			lines := strings.Split("package shop\n\ntests: \"it\": {\n"+test.body, "\n")
			if at := f.Range.Start; at.Line < 1 || at.Line > len(lines) || !strings.HasPrefix(lines[at.Line-1][at.Column-1:], test.at) {
				t.Errorf("it points to %v, not to %q", at, test.at)
			}
		})
	}
}

// TestErrors holds that a test which speaks of what is not there, or cannot be
// judged, neither passes nor fails.
func TestErrors(t *testing.T) {
	t.Parallel()
	const web = six + "workloads: web: {namespace: \"shop\", replicas: 6}\n"
	tests := map[string]struct{ body, want string }{
		"a workload":            {web + `expect: workloads: wbe: placed: "all"`, `there is no workload "wbe" in the test; did you mean "web"?`},
		"a kind":                {web + `expect: workloads: "statefulset/web": placed: "all"`, `there is no workload "statefulset/web"`},
		"two of one name":       {web + "objects: \"{apiVersion: batch/v1, kind: Job, metadata: {name: web, namespace: shop}, spec: {template: {spec: {containers: [{name: a, image: a}], restartPolicy: Never}}}}\"\nexpect: workloads: web: placed: \"all\"", "write it as namespace/kind/name"},
		"a pool":                {web + `expect: workloads: web: pools: ["gpus"]`, `no node of the test is in a pool or group "gpus"`},
		"a zone":                {web + `expect: workloads: web: zones: ["a", "eu-b"]`, `no node of the test is in zone "eu-b"`},
		"a domain":              {web + `expect: workloads: web: perDomain: zone: d: 0`, `no node of the test is in zone "d"`},
		"a topology":            {web + `expect: workloads: web: maxSkew: rack: 1`, `no node of the test has a label for the topology "rack"`},
		"a node":                {web + `expect: workloads: web: nodes: ["web-7"]`, `there is no node "web-7"`},
		"a neighbour":           {web + `expect: workloads: web: apart: cache: "node"`, `there is no workload "cache"`},
		"a policy":              {web + `expect: workloads: web: pending: policy: "web"`, `there is no policy "web"`},
		"a policy in force":     {web + `expect: workloads: web: compiled: policies: ["web-hi"]`, `there is no policy "web-hi"; did you mean "web-ha"?`},
		"a rule":                {web + `expect: findings: [{rule: "compile/topology-mising"}]`, `there is no rule "compile/topology-mising"; did you mean "compile/topology-missing"?`},
		"no gang":               {web + `expect: workloads: web: gang: "whole"`, "is no gang"},
		"drained nodes":         {web + "after: [{drain: [\"web-9\"]}]\nexpect: workloads: web: placed: \"all\"", `there is no node "web-9"`},
		"lost nodes":            {web + "after: [{lose: zone: \"d\"}]\nexpect: workloads: web: placed: \"all\"", "there is nothing to lose"},
		"scaled workloads":      {web + "after: [{scale: api: 3}]\nexpect: workloads: web: placed: \"all\"", `there is no workload "api"`},
		"restarted workloads":   {web + "after: [{rollout: [\"api\"]}]\nexpect: workloads: web: placed: \"all\"", `there is no workload "api"`},
		"more nodes":            {web + "after: [{addNodes: gpu: 1}]\nexpect: workloads: web: placed: \"all\"", `no node is in a pool or group "gpu"`},
		"running on nothing":    {web + "running: hog: on: [\"web-9\"]\nexpect: workloads: web: placed: \"all\"", `there is no node "web-9"`},
		"a quantity":            {"nodes: web: resources: cpu: \"many\"\nworkloads: web: {}\nexpect: workloads: web: placed: \"all\"", "is no quantity"},
		"a group in no pool":    {"nodes: gpu: labels: \"example.com/class\": \"cpu\"\nworkloads: web: {}\nexpect: workloads: web: placed: \"all\"", `is not in pool "gpu"`},
		"objects":               {web + "objects: \"kind: Nod\"\nexpect: workloads: web: placed: \"all\"", "line 1 of the objects: "},
		"a snapshot":            {web + "snapshot: \"no.yaml\"\nexpect: workloads: web: placed: \"all\"", `there is no "no.yaml"`},
		"a file from elsewhere": {web + "manifests: [\"../../../../etc/hosts\"]\nexpect: workloads: web: placed: \"all\"", "leads out of the folder"},
		"an absolute path":      {web + "snapshot: \"/etc/hosts\"\nexpect: workloads: web: placed: \"all\"", "begins at the root of this machine"},
		"a fragment of a pod":   {six + "workloads: web: pod: tolerations: \"all\"\nexpect: workloads: web: placed: \"all\"", "tolerations"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run(t, test.body)
			if len(r.Errors) == 0 {
				t.Fatalf("no error; failures: %v", r.Failures)
			}
			if !strings.Contains(r.Errors[0].Message, test.want) {
				t.Errorf("it says %q, not %q", r.Errors[0].Message, test.want)
			}
			if at := r.Errors[0].Range.Start; at.File != "placement/tests.cue" || at.Line < 4 {
				t.Errorf("it points to %v", at)
			}
		})
	}
}

// TestNothingToJudge holds that an expectation about pods that are not there does not
// hold by itself: a test that checks nothing passes nowhere.
func TestNothingToJudge(t *testing.T) {
	t.Parallel()
	for _, expect := range []string{
		`zones: ["a"]`, `pools: ["web"]`, `nodes: ["web-1"]`, `perDomain: zone: a: 0`, `maxSkew: zone: 1`, `apart: web: "node"`,
		`together: web: "zone"`, `placed: "all"`, `pending: count: "all"`, `placed: 1`,
	} {
		r := run(t, six+"workloads: web: {namespace: \"shop\", replicas: 0}\nexpect: workloads: web: "+expect)
		if r.Passed() {
			t.Errorf("%s holds for a workload without pods", expect)
		}
	}
	// Nor does it where all pods wait.
	for _, expect := range []string{`{placed: "none", zones: ["a"]}`, `{pending: {}, apart: web: "node"}`} {
		r := run(t, six+"workloads: web: {namespace: \"shop\", requests: cpu: \"100\"}\nexpect: workloads: web: "+expect)
		if r.Passed() {
			t.Errorf("%s holds for a workload without pods on nodes", expect)
		}
	}
}

// TestScenarios holds that what happens after the workloads are there happens.
func TestScenarios(t *testing.T) {
	t.Parallel()
	const web = six + "workloads: other: {namespace: \"shop\", replicas: 6, requests: cpu: \"3\"}\n"
	tests := map[string]string{
		"drain":     "after: [{drain: [\"web-1\", \"web-4\"]}]\nexpect: workloads: other: zones: [\"b\", \"c\"]",
		"lose":      "after: [{lose: zone: \"a\"}]\nexpect: workloads: other: zones: [\"b\", \"c\"]",
		"lose node": "after: [{lose: {zone: \"a\", node: \"web-4\"}}]\nexpect: workloads: other: nodes: [\"web-1\", \"web-2\", \"web-3\", \"web-5\", \"web-6\"]",
		"lose pool": "after: [{lose: pool: \"web\"}]\nexpect: workloads: other: placed: \"none\"",
		"scale":     "after: [{scale: other: 13}]\nexpect: workloads: other: {placed: 12, pending: {count: 1, plugin: \"NodeResourcesFit\"}}",
		"add nodes": "after: [{lose: pool: \"web\"}, {addNodes: web: 3}]\nexpect: workloads: other: {pools: [\"web\"], placed: 6}",
		"rollout":   "after: [{rollout: [\"other\"]}]\nexpect: workloads: other: placed: 6",
		"replay":    "after: [{replay: true}]\nexpect: workloads: other: placed: 6",
	}
	for name, body := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if r := run(t, web+body); !r.Passed() {
				t.Error(r.Errors, r.Failures)
			}
		})
	}
}

// TestCompileErrors holds that what cannot be compiled fails a test that does not
// expect it, and that nothing is said of where pods would be then.
func TestCompileErrors(t *testing.T) {
	t.Parallel()
	const body = `workloads: train: {kind: "DaemonSet", namespace: "shop"}
nodes: gpu: {}
`
	r := run(t, body+"expect: workloads: train: placed: \"all\"")
	if len(r.Failures) == 0 || !strings.Contains(r.Failures[0].Message, "cannot be carried out") {
		t.Errorf("failures: %v", r.Failures)
	}
	if len(r.Errors) != 1 || !strings.Contains(r.Errors[0].Message, "cannot be judged") {
		t.Errorf("errors: %v", r.Errors)
	}
}

// TestGivenFiles holds that snapshots and manifests are found beside the test.
func TestGivenFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := map[string]string{
		"cluster.yaml": "apiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {topology.kubernetes.io/zone: a}}\nstatus: {allocatable: {cpu: 4, memory: 8Gi}}\n---\napiVersion: v1\nkind: Node\nmetadata: {name: n2, labels: {topology.kubernetes.io/zone: b}}\nstatus: {allocatable: {cpu: 4, memory: 8Gi}}\n",
		"m/web.yaml":   "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec:\n  replicas: 2\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: a, image: a, resources: {requests: {cpu: 1}}}]}\n",
	}
	for name, text := range files {
		path := filepath.Join(dir, "fixtures", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := runIn(t, dir, `snapshot: "../fixtures/cluster.yaml"
manifests: ["../fixtures/m"]
running: hog: {on: ["n1", "n2"], requests: cpu: "2"}
expect: workloads: web: {zones: ["a", "b"], compiled: policies: ["web-ha"], together: hog: "node"}`)
	if !r.Passed() {
		t.Error(r.Errors, r.Failures)
	}
	if diff := cmp.Diff([]string{"web-ha"}, r.Exercised); diff != "" {
		t.Error(diff)
	}
}

// TestReport holds the order of results, what is picked, and which policies are said
// to be untested; that it is the same however many tests run at once; and that a test
// that takes too long is an error.
func TestReport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tests := "package shop\n"
	for _, name := range []string{"z", "a", "m"} {
		tests += fmt.Sprintf("tests: %q: {\n%sworkloads: web: {namespace: \"shop\", replicas: 4}\nexpect: workloads: web: perDomain: zone: {a: 4, b: 0}\n}\n", name, six)
	}
	files := map[string]string{"a.cue": policies, "tests.cue": tests}
	one := report(t, dir, files, policytest.Options{Workers: 1})
	var names []string
	for _, r := range one.Results {
		names = append(names, r.Name)
	}
	if diff := cmp.Diff([]string{"z", "a", "m"}, names); diff != "" {
		t.Error(diff)
	}
	if n := len(one.Untested); n != one.Policies-1 {
		t.Errorf("%d of %d policies are untested", n, one.Policies)
	}
	if diff := cmp.Diff(one, report(t, dir, files, policytest.Options{Workers: 3})); diff != "" {
		t.Errorf("with three at once: %s", diff)
	}
	some := report(t, dir, files, policytest.Options{Run: regexp.MustCompile("^[am]$")})
	if len(some.Results) != 2 || some.Skipped != 1 {
		t.Errorf("%d run, %d not", len(some.Results), some.Skipped)
	}
	slow := report(t, dir, files, policytest.Options{Timeout: 1})
	if e := slow.Results[0].Errors; len(e) != 1 || !strings.Contains(e[0].Message, "took longer than") {
		t.Errorf("too slow: %v", e)
	}
}

// TestExpiredExceptions holds that a test says when it takes place.
func TestExpiredExceptions(t *testing.T) {
	t.Parallel()
	const excepting = `package shop

policies: "spread": {
	workloads: namespaces: ["shop"]
	spread: zone: strength: "require"
	except: one: {workloads: names: ["web"], reason: "moves", expires: "2026-05-31"}
}
tests: {
	"before": {
		now: "2026-05-01"
		nodes: web: zones: ["a"]
		workloads: web: namespace: "shop"
		expect: workloads: web: compiled: policies: []
	}
	"after": {
		now: "2026-06-01"
		nodes: web: zones: ["a"]
		workloads: web: namespace: "shop"
		expect: findings: [{rule: "policy/expired-exception"}]
	}
}
`
	r := report(t, t.TempDir(), map[string]string{"a.cue": excepting}, policytest.Options{})
	for _, result := range r.Results {
		if !result.Passed() {
			t.Errorf("%s: %v %v", result.Name, result.Errors, result.Failures)
		}
	}
}

// TestOneCountHolds holds that of all the numbers of pods that may be placed exactly
// one holds, whatever the cluster is.
func TestOneCountHolds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		nodes, replicas := rapid.IntRange(1, 4).Draw(rt, "nodes"), rapid.IntRange(1, 5).Draw(rt, "replicas")
		cpu := rapid.IntRange(1, 6).Draw(rt, "cpu")
		zones := rapid.SampledFrom([]string{`"a"`, `"a", "b"`}).Draw(rt, "zones")
		name := rapid.SampledFrom([]string{"web", "quorum", "other"}).Draw(rt, "name")
		tests := "package shop\n"
		for n := range replicas + 1 {
			tests += fmt.Sprintf("tests: \"%d\": {\nnodes: web: {count: %d, zones: [%s]}\nworkloads: %s: {namespace: \"shop\", replicas: %d, requests: cpu: \"%d\"}\nexpect: workloads: %s: placed: %d\n}\n", n, nodes, zones, name, replicas, cpu, name, n)
		}
		r := report(t, dir, map[string]string{"a.cue": policies, "tests.cue": tests}, policytest.Options{})
		passed := 0
		for _, result := range r.Results {
			if len(result.Errors) > 0 {
				rt.Fatal(result.Errors)
			}
			if result.Passed() {
				passed++
			}
		}
		if passed != 1 {
			rt.Errorf("%d numbers hold", passed)
		}
	})
}
