package workload

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Every path of the table parses, the paths of one template lead through the
// same wildcards, and no kind is there twice.
func TestKindsTable(t *testing.T) {
	t.Parallel()
	seen := map[GroupKind]bool{}
	for _, row := range builtinKinds() {
		for _, name := range row.names {
			if seen[name] {
				t.Errorf("%s is there twice", name)
			}
			seen[name] = true
			for _, path := range []string{row.replicas, row.selector} {
				if _, err := parsePattern(path); path != "" && err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			for _, template := range row.templates {
				checked := template
				checked.fields = map[Field]string{}
				for f, p := range template.fields {
					if !strings.HasPrefix(string(f), "affinity.") {
						checked.fields[f] = p
					}
				}
				if err := checked.check(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if template.when != "" && template.spec == "" && len(template.fields) == 0 {
					t.Errorf("%s: a template without anything", name)
				}
			}
		}
	}
	for _, want := range []string{"Pod", "apps/Deployment", "batch/CronJob", "argoproj.io/Rollout", "ray.io/RayJob", "kubeflow.org/TFJob", "kafka.strimzi.io/KafkaNodePool"} {
		group, kind, ok := strings.Cut(want, "/")
		if !ok {
			group, kind = "", want
		}
		if !seen[GroupKind{group, kind}] {
			t.Errorf("%s is missing", want)
		}
	}
}

func TestParsePattern(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"spec.groups[*groupName].template.spec": "",
		"spec.replicaSpecs.*.template.spec":     "",
		"spec..x":                               `"spec..x" has an empty key; separate the keys by single dots`,
		"spec.a[0].b":                           `"spec.a[0].b": write "[0]" as "[*field]", with the field that names the elements`,
		"spec.a[*].b":                           `"spec.a[*].b": write "[*]" as "[*field]", with the field that names the elements`,
		"spec.a*.b":                             `"spec.a*.b": "a*" is neither a key nor "*"`,
		"":                                      `"" has an empty key; separate the keys by single dots`,
	} {
		got := ""
		if _, err := parsePattern(text); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestNewKindsErrors(t *testing.T) {
	t.Parallel()
	at := diag.At(diag.Pos{File: "p.cue", Line: 3, Column: 1})
	for _, c := range []struct {
		spec KindSpec
		want string
	}{
		{KindSpec{Name: "Foo"}, `a kind is named "group/Kind", such as "argoproj.io/Rollout", not "Foo"`},
		{KindSpec{Name: "a.io/Foo"}, "the kind has no templates; give at least one with its path"},
		{KindSpec{Name: "a.io/Foo", Templates: map[string]TemplateSpec{"x": {}}}, `the template "x" has neither a path nor fields; give one of them`},
		{KindSpec{Name: "a.io/Foo", Templates: map[string]TemplateSpec{"x": {Fields: map[Field]string{"toleration": "spec.t"}}}}, `the template "x": "toleration" is no placement field; did you mean "tolerations"`},
		{KindSpec{Name: "a.io/Foo", Templates: map[string]TemplateSpec{"x": {Path: "spec.a[*name].spec", Labels: "spec.b[*name].labels"}}}, `the template "x": labels and path must lead through the same lists and maps`},
	} {
		c.spec.Range = at
		_, findings := NewKinds([]KindSpec{c.spec})
		if len(findings) != 1 || findings[0].Message != c.want || findings[0].Range != at || findings[0].Rule != "workload/invalid-kind" {
			t.Errorf("%v: %v", c.spec, findings)
		}
	}
}

// A kind that a user adds is read like any other, and may carry less.
func TestUserKinds(t *testing.T) {
	t.Parallel()
	kinds, findings := NewKinds([]KindSpec{{
		Name: "example.com/Cache",
		Templates: map[string]TemplateSpec{
			"shard": {Fields: map[Field]string{Tolerations: "spec.shards[*id].scheduling.tolerations"}, Labels: "spec.shards[*id].labels"},
			"proxy": {Path: "spec.proxy.podSpec", Labels: "spec.proxy.labels"},
		},
		PodLabels: map[string]string{"example.com/cache": "{name}", "example.com/part": "{template}"},
	}})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	object := map[string]any{
		"apiVersion": "example.com/v1", "kind": "Cache", "metadata": map[string]any{"name": "c"},
		"spec": map[string]any{
			"proxy":  map[string]any{"podSpec": map[string]any{"schedulerName": "x"}, "labels": map[string]any{"role": "proxy"}},
			"shards": []any{map[string]any{"id": "a"}, map[string]any{"id": "proxy"}},
		},
	}
	w, findings, ok := FromObject(object, Options{Kinds: kinds}, Source{})
	if !ok || len(findings) > 0 {
		t.Fatal(ok, findings)
	}
	var got []string
	for _, template := range w.Templates {
		got = append(got, fmt.Sprint(template.Name, " ", template.Paths[Tolerations], " ", len(template.Paths), " ", template.Labels["example.com/part"], template.Labels["role"]))
	}
	want := []string{
		"proxy spec.proxy.podSpec.tolerations 10 proxyproxy",
		"a spec.shards[0].scheduling.tolerations 2 a",
		"shard/proxy spec.shards[1].scheduling.tolerations 2 shard/proxy",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	after := w.Templates[1].Pods
	after.SchedulerName = "ours"
	if _, err := w.Write(map[int]PodFields{1: after}, Stamp{}); err == nil || err.Error() != `Cache.example.com default/c: the template "a" cannot carry schedulerName` {
		t.Error(err)
	}
}

// The numbers of a rollout are the controller's own: a surge rounds up, what may
// be unavailable down, and both are never nothing.
func TestRollout(t *testing.T) {
	t.Parallel()
	replicas := func(n int32) *int32 { return &n }
	for _, c := range []struct {
		rule     rolloutRule
		replicas *int32
		spec     string
		want     *Rollout
	}{
		{deploymentRollout, replicas(3), "", &Rollout{"RollingUpdate", 1, 0}},
		{deploymentRollout, replicas(10), "", &Rollout{"RollingUpdate", 3, 2}},
		{deploymentRollout, nil, "", &Rollout{"RollingUpdate", 1, 0}},
		{deploymentRollout, replicas(3), "strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 25%}}", &Rollout{"RollingUpdate", 0, 1}},
		{deploymentRollout, replicas(3), "strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 2}}", &Rollout{"RollingUpdate", 0, 2}},
		{deploymentRollout, replicas(3), "strategy: {type: Recreate}", &Rollout{"Recreate", 0, 0}},
		{deploymentRollout, replicas(3), "strategy: {rollingUpdate: {maxSurge: junk}}", &Rollout{"RollingUpdate", 1, 0}},
		{statefulSetRollout, replicas(3), "", &Rollout{"RollingUpdate", 0, 1}},
		{statefulSetRollout, replicas(3), "updateStrategy: {type: OnDelete}", &Rollout{"OnDelete", 0, 0}},
		{daemonSetRollout, nil, "", &Rollout{"RollingUpdate", 0, 1}},
		{daemonSetRollout, nil, "updateStrategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}", &Rollout{"RollingUpdate", 1, 0}},
		{noRollout, replicas(3), "", nil},
	} {
		set, findings := readText(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  template: {spec: {}}\n  "+c.spec+"\n")
		if len(findings) > 0 {
			t.Fatal(findings)
		}
		if diff := cmp.Diff(c.want, c.rule.resolve(set.Workloads[0].Object, c.replicas)); diff != "" {
			t.Errorf("%d %q: %s", c.rule, c.spec, diff)
		}
	}
	for n := range 20 { // against the library's own rounding
		r := int32(n)
		got := deploymentRollout.resolve(map[string]any{}, &r)
		surge, _ := intstr.GetScaledValueFromIntOrPercent(new(intstr.FromString("25%")), n, true)
		if int(got.MaxSurge) != surge {
			t.Errorf("%d replicas: surge %d, want %d", n, got.MaxSurge, surge)
		}
	}
}

// What placement depends on besides the placement itself.
func TestTemplateFacts(t *testing.T) {
	t.Parallel()
	set, findings := readText(t, `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  selector: {matchLabels: {app: db}, matchExpressions: [{key: x, operator: In, values: [a]}]}
  template:
    metadata: {labels: {app: db}}
    spec:
      serviceAccount: old
      volumes: [{name: v, persistentVolumeClaim: {claimName: shared}}]
  volumeClaimTemplates: [{metadata: {name: data}}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: once, ownerReferences: [{kind: CronJob, name: nightly, controller: true}], uid: u, resourceVersion: "7"}
spec: {parallelism: 4, template: {spec: {}}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec: {jobTemplate: {spec: {template: {spec: {}}}}}
---
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: canary}
spec: {workloadRef: {name: web}}
`)
	var got []string
	for _, w := range set.Workloads {
		for _, x := range w.Templates {
			got = append(got, fmt.Sprint(w.Ref(), x.ServiceAccount, x.Claims, x.RevisionLabel, x.RunLabel, x.PodLabels, x.Immutable, w.Controller, w.UID, w.ResourceVersion))
		}
	}
	want := []string{
		"StatefulSet default/dbold[shared data-db-0 data-db-1]controller-revision-hashmap[] false",
		"Job default/oncedefault[]map[batch.kubernetes.io/job-name:once job-name:once] trueCronJob/nightlyu7",
		"CronJob default/nightlydefault[]batch.kubernetes.io/job-namemap[] false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	selector := &Selector{MatchLabels: map[string]string{"app": "db"}, MatchExpressions: []Expression{{"x", "In", []string{"a"}}}}
	if diff := cmp.Diff(selector, set.Workloads[0].Selector); diff != "" {
		t.Error(diff)
	}
	if *set.Workloads[1].Replicas != 4 || set.Workloads[2].Replicas != nil {
		t.Error("replicas")
	}
	if diff := cmp.Diff([]string{"workload/no-template -:24:1: Rollout.argoproj.io default/canary: the object has no pod template, so that no policy can place its pods"}, lines(findings, "-nowhere-")); diff != "" {
		t.Error(diff)
	}
}

func TestPathOf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		apiVersion, kind string
		carries          string
		node, apart      string // where; empty if the kind has no place for it
	}{
		{
			"acid.zalan.do/v1", "postgresql",
			"[affinity.nodeAffinity tolerations topologySpreadConstraints priorityClassName schedulerName]",
			"/spec/nodeAffinity/x", "",
		},
		{
			"postgresql.cnpg.io/v1", "Cluster",
			"[nodeSelector affinity tolerations topologySpreadConstraints priorityClassName schedulerName metadata.labels metadata.annotations]",
			"/spec/affinity/nodeAffinity/x", "/spec/affinity/additionalPodAntiAffinity/x",
		},
		{
			"v1", "Pod",
			"[nodeSelector affinity tolerations topologySpreadConstraints priorityClassName preemptionPolicy schedulerName schedulingGates schedulingGroup metadata.labels metadata.annotations env]",
			"/spec/affinity/nodeAffinity/x", "/spec/affinity/podAntiAffinity/x",
		},
		{"tekton.dev/v1", "Task", "[]", "", ""},
	} {
		t.Run(test.kind, func(t *testing.T) {
			t.Parallel()
			w, _, ok := FromObject(map[string]any{
				"apiVersion": test.apiVersion, "kind": test.kind, "metadata": map[string]any{"name": "x"}, "spec": map[string]any{},
			}, Options{}, Source{})
			template := Template{}
			if ok {
				template = w.Templates[0]
			}
			if got := fmt.Sprint(template.Carries()); got != test.carries {
				t.Errorf("carries %s, want %s", got, test.carries)
			}
			for field, want := range map[Field]string{NodeAffinity: test.node, PodAntiAffinity: test.apart} {
				path, ok := template.PathOf(field, "x")
				if ok != (want != "") || ok && path.Pointer() != want {
					t.Errorf("%s is at %s (%v), want %q", field, path, ok, want)
				}
			}
		})
	}
}

// A template of fields is there where the object has what tells it from the
// others, and the parts of an affinity may be in different places.
func TestUserKindOfFields(t *testing.T) {
	t.Parallel()
	kinds, findings := NewKinds([]KindSpec{{Name: "example.com/Stack", Templates: map[string]TemplateSpec{
		"broker": {Fields: map[Field]string{Tolerations: "spec.broker.pod.tolerations", "podAntiAffinity": "spec.broker.pod.apart"}},
		"proxy":  {Fields: map[Field]string{Tolerations: "spec.proxy.pod.tolerations", Affinity: "spec.proxy.pod.affinity", "nodeAffinity": "spec.proxy.nodes"}},
	}}})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	for _, c := range []struct {
		spec map[string]any
		want []string
	}{
		{map[string]any{"broker": map[string]any{}}, []string{"broker [affinity.podAntiAffinity tolerations] spec.broker.pod.apart"}},
		{map[string]any{"proxy": map[string]any{"pod": map[string]any{}}}, []string{"proxy [affinity tolerations] spec.proxy.pod.affinity.podAntiAffinity"}},
		{map[string]any{}, nil},
	} {
		object := map[string]any{"apiVersion": "example.com/v1", "kind": "Stack", "metadata": map[string]any{"name": "s"}, "spec": c.spec}
		w, _, ok := FromObject(object, Options{Kinds: kinds}, Source{})
		if !ok {
			t.Fatal("not a workload")
		}
		var got []string
		for _, template := range w.Templates {
			path, _ := template.PathOf(PodAntiAffinity)
			got = append(got, fmt.Sprintf("%s %v %s", template.Name, template.Carries(), path))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.spec, diff)
		}
	}
}
