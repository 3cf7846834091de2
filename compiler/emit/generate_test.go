package emit

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
)

// read reads a stream of manifests.
func read(t rapid.TB, text []byte) *workload.Set {
	t.Helper()
	set, findings := workload.Read(context.Background(), workload.Input{Files: []string{"-"}, Stdin: bytes.NewReader(text)}, workload.Options{})
	if findings.HasErrors() {
		t.Fatalf("read: %v\n%s", findings, text)
	}
	return set
}

// manifests draws a stream of workloads as people and templates write them.
var manifests = rapid.Custom(func(t *rapid.T) string {
	var docs []string
	for i := range rapid.IntRange(1, 4).Draw(t, "documents") {
		docs = append(docs, document(t, i))
	}
	text := rapid.SampledFrom([]string{"", "---\n", "# a stream\n---\n"}).Draw(t, "head") + strings.Join(docs, rapid.SampledFrom([]string{"---\n", "--- # next\n", "---\n---\n"}).Draw(t, "separator"))
	if rapid.Bool().Draw(t, "crlf") {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	if rapid.Bool().Draw(t, "no newline at the end") {
		text = strings.TrimRight(text, "\r\n")
	}
	return text
})

func document(t *rapid.T, i int) string {
	pick := func(name string, choices ...string) string { return rapid.SampledFrom(choices).Draw(t, name) }
	annotations := pick("annotations", "", "  annotations: {}\n", "  annotations:\n    a: \"1\" # why\n", "  annotations: {a: b}\n", "  annotations:\n")
	tolerations := pick("tolerations", "", "      tolerations: []\n", "      tolerations:\n      - key: a\n        operator: Exists # any\n", "      tolerations:\n        - {key: b, value: \"true\"}\n\n", "      tolerations: [{key: c, operator: Exists}, {operator: Exists, effect: NoExecute}]\n", "      tolerations:\n")
	affinity := pick("affinity", "", "      affinity: {}\n", "      affinity:\n        nodeAffinity:\n          requiredDuringSchedulingIgnoredDuringExecution:\n            nodeSelectorTerms:\n            # one\n            - matchExpressions:\n              - {key: x, operator: In, values: [\"1\", '2']}\n", "      affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: zone}}]}}\n")
	selector := pick("nodeSelector", "", "      nodeSelector:\n        kubernetes.io/os: linux\n", "      nodeSelector: {disk: ssd} # fast\n")
	spread := pick("spread", "", "      topologySpreadConstraints:\n      - maxSkew: 1\n        topologyKey: zone\n        whenUnsatisfiable: DoNotSchedule\n        labelSelector: {matchLabels: {app: web}}\n")
	env := pick("env", "", "        env: []\n", "        env:\n        - name: A\n          value: \"1\" # first\n", "        env: [{name: A, value: b}, {name: B, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]\n", "        env:\n", "        env:\n        - name: NVIDIA_VISIBLE_DEVICES\n          value: all\n")
	gates := pick("gates", "", "      schedulingGates: [{name: example.com/a}]\n", "      schedulingGates:\n      - name: example.com/b # theirs\n", "      schedulingGates: []\n")
	metadata := pick("metadata", "    metadata: {labels: {app: web}}\n", "    metadata:\n      labels:\n        app: web # ours\n      annotations: {a: b}\n", "    metadata:\n      labels: {app: web, scheduling.x-k8s.io/pod-group: theirs}\n      annotations:\n        a: b\n")
	containers := "      containers:\n      - name: c\n        image: \"registry.example/c:1\"\n        args:\n        - |\n          some text:\n            tolerations: []\n" + env + pick("second", "", "      - {name: d, image: d}\n")
	body := []string{tolerations, affinity, selector, spread, containers, pick("priority", "", "      priorityClassName: low\n"), pick("scheduler", "", "      schedulerName: \"mine\"\n"), gates}
	body = rapid.Permutation(body).Draw(t, "order")
	return fmt.Sprintf("apiVersion: apps/v1\nkind: %s\nmetadata:\n  name: w%d\n%sspec:\n  # the pods\n  template:\n%s    spec:\n%s", pick("kind", "Deployment", "StatefulSet", "DaemonSet"), i, annotations, metadata, strings.Join(body, ""))
}

// plan draws a plan for the workloads: any of them may change in any field.
func plan(t *rapid.T, workloads []*workload.Workload) *compiler.Plan {
	p := &compiler.Plan{}
	for _, w := range workloads {
		for i := range w.Templates {
			if rapid.Bool().Draw(t, "matched") {
				p.Changes = append(p.Changes, compiler.Change{Workload: w, Template: i, Policies: []string{"p"}, After: after(t, w.Templates[i].Pods, w.Templates[i].Containers())})
			}
		}
	}
	return p
}

// after draws what policies could make of a placement: the manifest's first,
// then ours; required node terms cut down or crossed.
func after(t *rapid.T, pods workload.PodFields, containers []string) workload.PodFields {
	a := *clone(t, &pods)
	is := func(name string) bool { return rapid.IntRange(0, 2).Draw(t, name) == 0 }
	if is("toleration") {
		a.Tolerations = append(a.Tolerations, corev1.Toleration{Key: "pool", Operator: corev1.TolerationOpEqual, Value: "gpu", Effect: corev1.TaintEffectNoSchedule})
	}
	if is("spread") {
		a.TopologySpreadConstraints = append(a.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: "topology.kubernetes.io/zone", WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, MatchLabelKeys: []string{"pod-template-hash"},
		})
	}
	if is("required") {
		nodes(&a).RequiredDuringSchedulingIgnoredDuringExecution = required(nodes(&a).RequiredDuringSchedulingIgnoredDuringExecution)
	}
	if is("preferred") {
		nodes(&a).PreferredDuringSchedulingIgnoredDuringExecution = append(nodes(&a).PreferredDuringSchedulingIgnoredDuringExecution, corev1.PreferredSchedulingTerm{
			Weight: 50, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "spot", Operator: corev1.NodeSelectorOpExists}}},
		})
	}
	if is("apart") {
		if a.Affinity == nil {
			a.Affinity = &corev1.Affinity{}
		}
		if a.Affinity.PodAntiAffinity == nil {
			a.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{}
		}
		pa := a.Affinity.PodAntiAffinity
		pa.RequiredDuringSchedulingIgnoredDuringExecution = append(pa.RequiredDuringSchedulingIgnoredDuringExecution, corev1.PodAffinityTerm{TopologyKey: "kubernetes.io/hostname", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}})
	}
	if is("priority") {
		a.PriorityClassName = "high"
	}
	if is("gate") {
		a.SchedulingGates = append(a.SchedulingGates, corev1.PodSchedulingGate{Name: "gates.kubectl-sched.github.io/p.quota"})
	}
	if is("group") {
		a.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new("train")}
	}
	set := func(m *map[string]string, key, value string) {
		if *m == nil {
			*m = map[string]string{}
		}
		(*m)[key] = value
	}
	if is("label") {
		set(&a.Labels, gangkey.LabelOldest, "train")
	}
	if is("annotations") {
		set(&a.Annotations, args.PodDatasets, "imagenet=120Gi")
		set(&a.Annotations, "gates.kubectl-sched.github.io/p.quota", `{"quota":{"name":"ml"}}`)
	}
	if is("devices") {
		for _, c := range containers {
			if len(a.Env[c]) > 0 {
				continue
			}
			if a.Env == nil {
				a.Env = map[string][]corev1.EnvVar{}
			}
			a.Env[c] = []corev1.EnvVar{{Name: args.VisibleDevices, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + args.PodGPUIndex + "']"}}}}
		}
	}
	return a
}

func nodes(p *workload.PodFields) *corev1.NodeAffinity {
	if p.Affinity == nil {
		p.Affinity = &corev1.Affinity{}
	}
	if p.Affinity.NodeAffinity == nil {
		p.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	return p.Affinity.NodeAffinity
}

// required ANDs a requirement into each term.
func required(s *corev1.NodeSelector) *corev1.NodeSelector {
	ours := corev1.NodeSelectorRequirement{Key: "pool", Operator: corev1.NodeSelectorOpIn, Values: []string{"gpu"}}
	if s == nil || len(s.NodeSelectorTerms) == 0 {
		return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{ours}}}}
	}
	for i := range s.NodeSelectorTerms {
		s.NodeSelectorTerms[i].MatchExpressions = append(s.NodeSelectorTerms[i].MatchExpressions, ours)
	}
	return s
}

// again returns the plan for workloads that were read anew from what a plan was
// written into: the same changes for the same names.
func again(t rapid.TB, p *compiler.Plan, workloads []*workload.Workload) *compiler.Plan {
	t.Helper()
	by := map[string]*workload.Workload{}
	for _, w := range workloads {
		by[w.Ref()] = w
	}
	q := &compiler.Plan{Objects: p.Objects}
	for _, c := range p.Changes {
		c.Workload = by[c.Workload.Ref()]
		q.Changes = append(q.Changes, c)
	}
	return q
}
