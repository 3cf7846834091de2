package compiler_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1conversion "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// TestValid checks that the API server would take whatever is compiled, and
// that every spread of a workload counts its own pods.
func TestValid(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := &world{numbers: true}
		nodes := w.nodes(t)
		placement := w.placement(t)
		for i := range placement.Policies {
			p := &placement.Policies[i]
			p.Nodes.Prefer, p.Nodes.Disfavor = w.preference(t), w.preference(t)
			w.counting(t, p)
		}
		subject := w.workload(t)
		plan, findings := compiler.Compile(request(placement, nodes, subject))
		if broken(findings) {
			return
		}
		after := plan.Changes[0].After
		checkValid(t, after)
		template := subject.Templates[0]
		for _, c := range after.TopologySpreadConstraints {
			pod := labels.Set{}
			for k, v := range template.Labels {
				pod[k] = v
			}
			if template.RunLabel != "" {
				pod["batch.kubernetes.io/job-name"], pod["batch.kubernetes.io/controller-uid"] = "run-1", "uid"
			}
			selector, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
			if err != nil || selector.Empty() || !selector.Matches(pod) {
				t.Fatalf("%s: the spread %s does not count the pods %v (%v)", subject.Ref(), asJSON(c), pod, err)
			}
		}
	})
}

// workload draws a workload of any kind.
func (w *world) workload(t *rapid.T) *workload.Workload {
	o := object(t, workload.PodFields{})
	spec := o["spec"].(map[string]any)
	kind := rapid.SampledFrom([]string{"Deployment", "StatefulSet", "Job", "CronJob", "Pod", "torn"}).Draw(t, "kind")
	switch kind {
	case "StatefulSet":
		o["kind"] = kind
	case "Job":
		o["apiVersion"], o["kind"] = "batch/v1", kind
		delete(spec, "selector")
	case "CronJob":
		o["apiVersion"], o["kind"] = "batch/v1", kind
		template := spec["template"]
		if rapid.Bool().Draw(t, "bare") {
			template = map[string]any{"spec": map[string]any{}}
		}
		o["spec"] = map[string]any{"jobTemplate": map[string]any{"spec": map[string]any{"template": template}}}
	case "Pod":
		o["apiVersion"], o["kind"], o["spec"] = "v1", kind, map[string]any{}
		o["metadata"].(map[string]any)["labels"] = map[string]any{"app": "web"}
	case "torn":
		spec["selector"] = map[string]any{"matchLabels": map[string]any{"app": "other"}}
	}
	if rapid.Bool().Draw(t, "counted") {
		spec["replicas"] = int64(rapid.IntRange(0, 6).Draw(t, "replicas"))
	}
	return fromObject(t, o)
}

// checkValid runs the API server's own validation of a pod with the placement.
func checkValid(t *rapid.T, p workload.PodFields) {
	grace := int64(30)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "shop"},
		Spec: corev1.PodSpec{
			Containers:    []corev1.Container{{Name: "c", Image: "i", ImagePullPolicy: corev1.PullAlways, TerminationMessagePolicy: corev1.TerminationMessageReadFile}},
			RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst, TerminationGracePeriodSeconds: &grace,
			SecurityContext: &corev1.PodSecurityContext{},
			NodeSelector:    p.NodeSelector, Affinity: p.Affinity, Tolerations: p.Tolerations,
			TopologySpreadConstraints: p.TopologySpreadConstraints, PriorityClassName: p.PriorityClassName,
			PreemptionPolicy: p.PreemptionPolicy, SchedulerName: "default-scheduler",
		},
	}
	var internal core.Pod
	if err := corev1conversion.Convert_v1_Pod_To_core_Pod(pod, &internal, nil); err != nil {
		t.Fatal(err)
	}
	errs := validation.ValidatePodSpec(&internal.Spec, &internal.ObjectMeta, field.NewPath("spec"), validation.PodValidationOptions{
		AllowMatchLabelKeysInPodTopologySpread: true, AllowMatchLabelKeysInPodTopologySpreadSelectorMerge: true,
	})
	if len(errs) > 0 {
		t.Fatalf("the API server would refuse it: %v\n%s", errs.ToAggregate(), asJSON(p))
	}
}
