package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubectl-sched/kubectl-sched/compiler/admission"
	"github.com/kubectl-sched/kubectl-sched/compiler/guard"
)

// probe creates a pod as a dry run, and returns the content of the place policy
// that saw it; empty if none did.
func (a *Applier) probe(ctx context.Context, set Set, namespace string) (string, error) {
	pod := probePod(set.Label())
	made, err := a.Client.Kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{FieldManager: a.manager(), DryRun: dryRunOption(true)})
	if err != nil {
		return "", err
	}
	if answer := made.Annotations[admission.ProbeAnnotation]; answer != set.Label() {
		return answer, nil
	}
	return "", nil
}

// probePod is a pod that asks what the value says, to be created as a dry run.
func probePod(value string) *corev1.Pod {
	no, yes := false, true
	small := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("1Mi")}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "kubectl-sched-probe-", Annotations: map[string]string{admission.ProbeAnnotation: value}},
		// So little that no quota and no rule of pod security minds.
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: &no,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "probe", Image: "registry.k8s.io/pause:3.10",
				Resources: corev1.ResourceRequirements{Requests: small, Limits: small},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}

// anotherContent is what a guard answers that is of a version which does not
// answer.
const anotherContent = "another"

// probeGuard asks the guard whose policy has the name, by a pod that tolerates
// everything: it refuses it or warns of it, and says its content. It is empty if no
// such guard is in force.
func (a *Applier) probeGuard(ctx context.Context, name, namespace string) (string, error) {
	pod := probePod(name)
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	heard := &warnings{}
	err := a.Client.Kube.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").
		VersionedParams(&metav1.CreateOptions{FieldManager: a.manager(), DryRun: dryRunOption(true)}, scheme.ParameterCodec).
		WarningHandler(heard).Body(pod).Do(ctx).Error()
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		heard.HandleWarningHeader(0, "", status.Status().Message)
	}
	for _, text := range heard.texts {
		if !strings.Contains(text, fmt.Sprintf("'%s'", name)) {
			continue
		}
		if _, content, ok := strings.Cut(text, guard.Answer("")); ok {
			return content, nil
		}
		return anotherContent, nil
	}
	return "", err
}

// warnings collects what the API server warns of.
type warnings struct{ texts []string }

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) { w.texts = append(w.texts, text) }
