package admissiontest

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// workload draws an object of any of the built-in kinds.
func (d drawer) workload(i int, known bool) map[string]any {
	labels := map[string]any{"app": fmt.Sprintf("app-%d", i)}
	if d.one("tiered", 2) {
		labels["tier"] = pick(d, "tier", "web", "db")
	}
	selector := maps.Clone(labels)
	if known && d.one("narrow", 2) {
		delete(selector, "tier")
	}
	spec := d.podSpec()
	o := map[string]any{
		"apiVersion": "apps/v1",
		"metadata":   map[string]any{"name": fmt.Sprintf("w-%d", i), "namespace": pick(d, "namespace", "shop", "shop", "ml", "kube-system")},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": selector},
			"template": map[string]any{"metadata": d.templateMetadata(labels), "spec": spec},
		},
	}
	kinds := []string{"Deployment", "Deployment", "StatefulSet", "DaemonSet", "Job", "Pod", "ReplicaSet"}
	if known {
		kinds = append(kinds, "CronJob")
	}
	kind := pick(d, "kind", kinds...)
	o["kind"] = kind
	inside := o["spec"].(map[string]any)
	if d.one("counted", 2) && (kind == "Deployment" || kind == "StatefulSet") {
		inside["replicas"] = int64(rapid.IntRange(0, 6).Draw(d.t, "replicas"))
	}
	switch kind {
	case "StatefulSet":
		inside["serviceName"] = "x"
	case "Job":
		o["apiVersion"] = "batch/v1"
		delete(inside, "selector")
		spec["restartPolicy"] = "Never"
	case "CronJob":
		o["apiVersion"] = "batch/v1"
		spec["restartPolicy"] = "Never"
		o["spec"] = map[string]any{"schedule": "0 0 * * *", "jobTemplate": map[string]any{"spec": map[string]any{"template": inside["template"]}}}
	case "Pod":
		o["apiVersion"], o["spec"] = "v1", spec
		maps.Copy(o["metadata"].(map[string]any), d.templateMetadata(labels))
	}
	return o
}

// podSpec draws a pod spec with the placement that a manifest has already.
func (d drawer) podSpec() map[string]any {
	fields := d.placement()
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&fields)
	if err != nil {
		d.t.Fatal(err)
	}
	out["containers"] = []any{d.container("c"), d.container("d")}
	if d.one("init", 4) {
		out["initContainers"] = []any{d.container("init")}
	}
	if d.one("account", 4) {
		out["serviceAccountName"] = pick(d, "accountName", "trainer", "robot-1")
	}
	if d.one("patient", 5) {
		out["terminationGracePeriodSeconds"] = int64(60)
	}
	return out
}

// container draws a container, with or without an environment.
func (d drawer) container(name string) map[string]any {
	c := map[string]any{"name": name, "image": "i"}
	if env := pick(d, "env", nil, nil, []any{map[string]any{"name": "A", "value": "b"}}, []any{map[string]any{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}}); env != nil {
		c["env"] = env
	}
	return c
}

// templateMetadata draws the metadata of a template with the labels.
func (d drawer) templateMetadata(labels map[string]any) map[string]any {
	out := map[string]any{"labels": labels}
	if annotations := pick(d, "annotations", nil, nil, map[string]any{"a": "b"}, map[string]any{"kubectl-sched.github.io/datasets": "imagenet"}); annotations != nil {
		out["annotations"] = annotations
	}
	return out
}

func (d drawer) placement() workload.PodFields {
	var out workload.PodFields
	if d.one("gated", 6) {
		out.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/theirs"}}
	}
	if d.one("nodeSelector", 5) {
		out.NodeSelector = map[string]string{pick(d, "key", "k1", "k2", zoneLabel): pick(d, "value", "a", "b", "c")}
	}
	a := &corev1.Affinity{}
	for range max(0, rapid.IntRange(-2, 2).Draw(d.t, "terms")) {
		if a.NodeAffinity == nil {
			a.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{}}
		}
		s := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		s.NodeSelectorTerms = append(s.NodeSelectorTerms, d.selectorTerm())
	}
	for range max(0, rapid.IntRange(-2, 2).Draw(d.t, "preferences")) {
		if a.NodeAffinity == nil {
			a.NodeAffinity = &corev1.NodeAffinity{}
		}
		a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: int32(rapid.IntRange(1, 60).Draw(d.t, "weight")), Preference: d.selectorTerm()})
	}
	if d.one("podAffinity", 5) {
		a.PodAffinity = &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 5, PodAffinityTerm: d.podTerm()}}}
	}
	if d.one("podAntiAffinity", 5) {
		a.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{d.podTerm()}}
	}
	if a.NodeAffinity != nil || a.PodAffinity != nil || a.PodAntiAffinity != nil {
		out.Affinity = a
	}
	for range max(0, rapid.IntRange(-1, 2).Draw(d.t, "tolerations")) {
		taint := d.taint()
		tol := corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpExists, Effect: taint.Effect}
		if d.one("equal", 2) {
			tol.Operator, tol.Value = pick(d, "operator", corev1.TolerationOpEqual, ""), taint.Value
		}
		out.Tolerations = append(out.Tolerations, tol)
	}
	if d.one("constraint", 4) {
		c := corev1.TopologySpreadConstraint{
			MaxSkew: int32(rapid.IntRange(1, 3).Draw(d.t, "skew")), TopologyKey: pick(d, "topology", zoneLabel, hostLabel),
			WhenUnsatisfiable: pick(d, "when", corev1.DoNotSchedule, corev1.ScheduleAnyway), LabelSelector: d.selector(),
		}
		if d.one("policy", 3) {
			c.NodeAffinityPolicy = new(pick(d, "inclusion", corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore))
		}
		if d.one("taints", 3) {
			c.NodeTaintsPolicy = new(pick(d, "inclusion", corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore))
		}
		if c.WhenUnsatisfiable == corev1.DoNotSchedule && d.one("min", 3) {
			c.MinDomains = new(int32(3))
		}
		out.TopologySpreadConstraints = append(out.TopologySpreadConstraints, c)
	}
	return out
}

func (d drawer) selector() *metav1.LabelSelector {
	return pick(d, "selector",
		&metav1.LabelSelector{MatchLabels: map[string]string{"tier": "web"}},
		&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"web"}}}},
		&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"web", "db"}}}},
		&metav1.LabelSelector{MatchLabels: map[string]string{"app": "app-0"}},
	)
}

func (d drawer) podTerm() corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: pick(d, "topology", zoneLabel, hostLabel), LabelSelector: d.selector()}
}

func (d drawer) selectorTerm() corev1.NodeSelectorTerm {
	var out corev1.NodeSelectorTerm
	for range rapid.IntRange(1, 3).Draw(d.t, "requirements") {
		op := pick(d, "op", corev1.NodeSelectorOpIn, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt)
		r := corev1.NodeSelectorRequirement{Key: pick(d, "key", "k1", "k2", zoneLabel), Operator: op}
		switch op {
		case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
			r.Values = rapid.SliceOfN(rapid.SampledFrom([]string{"c", "b", "a"}), 1, 3).Draw(d.t, "values")
		case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
			r.Key, r.Values = "size", []string{pick(d, "bound", "0", "1", "2", "3")}
		default:
		}
		out.MatchExpressions = append(out.MatchExpressions, r)
	}
	if d.one("field", 5) {
		out.MatchFields = []corev1.NodeSelectorRequirement{{
			Key: "metadata.name", Operator: pick(d, "fieldOp", corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn), Values: []string{pick(d, "name", "n0", "n1")},
		}}
	}
	return out
}
