package apply

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// keeper is who writes an object again and again, and so would undo what we
// write, or be undone by it.
type keeper struct {
	// name says who in words ("Argo CD application \"shop\"").
	name string
	// remedy says what to do instead.
	remedy string
	// gitOps says that the object is what git says.
	gitOps bool
}

// keeperOf returns who keeps the object; nil if nobody does.
//
// The label app.kubernetes.io/instance is no sign: Argo CD can track by it, and
// nearly every chart sets it as well. What Argo CD itself has written shows in
// the managers.
func keeperOf(w *workload.Workload) *keeper {
	u := &unstructured.Unstructured{Object: w.Object}
	first := func(m map[string]string, keys ...string) (string, bool) {
		for _, key := range keys {
			if value, ok := m[key]; ok {
				return value, true
			}
		}
		return "", false
	}
	const render = "compile the policies into its manifests instead (kubectl sched compile --in-place, surface \"render\")"
	if id, ok := first(w.Annotations, "argocd.argoproj.io/tracking-id"); ok {
		return &keeper{fmt.Sprintf("Argo CD (%s)", id), render, true}
	}
	if app, ok := first(w.Labels, "argocd.argoproj.io/instance"); ok {
		return &keeper{fmt.Sprintf("Argo CD application %q", app), render, true}
	}
	if name, ok := first(w.Labels, "kustomize.toolkit.fluxcd.io/name"); ok {
		return &keeper{fmt.Sprintf("Flux Kustomization %q", name), render, true}
	}
	if name, ok := first(w.Labels, "helm.toolkit.fluxcd.io/name"); ok {
		return &keeper{fmt.Sprintf("Flux HelmRelease %q", name), render, true}
	}
	managers := managersOf(u)
	for _, manager := range []string{"argocd-controller", "argocd-application-controller"} {
		if slices.Contains(managers, manager) {
			return &keeper{"Argo CD", render, true}
		}
	}
	for _, manager := range []string{"kustomize-controller", "helm-controller"} {
		if slices.Contains(managers, manager) {
			return &keeper{"Flux", render, true}
		}
	}
	if release, ok := first(w.Annotations, "meta.helm.sh/release-name"); ok {
		return &keeper{fmt.Sprintf("Helm release %q", release), "give `kubectl sched compile` to helm as post-renderer, or compile the output of helm template (surface \"render\")", false}
	}
	if owner := metav1.GetControllerOf(u); owner != nil {
		return &keeper{fmt.Sprintf("%s %q (its controller)", owner.Kind, owner.Name), "set placement in the object that the controller reads", false}
	}
	return nil
}

func managersOf(u *unstructured.Unstructured) []string {
	var managers []string
	for _, entry := range u.GetManagedFields() {
		managers = append(managers, entry.Manager)
	}
	return managers
}

// finding refuses the workload because of its keeper.
func (k *keeper) finding(w *workload.Workload, skip bool) diag.Finding {
	f := diag.Finding{
		Rule: "apply/owned", Severity: diag.Error, Subject: w.Ref(),
		Message: fmt.Sprintf("it is kept by %s, which would undo the change", k.name),
		Fix:     &diag.Fix{Message: k.remedy + "; or leave such objects alone with --skip-owned"},
	}
	if skip {
		f.Severity = diag.Warning
		f.Message += "; it is left as it is"
		f.Fix = &diag.Fix{Message: k.remedy}
	}
	return f
}
