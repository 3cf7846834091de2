package apply

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-sched/kubectl-sched/compiler/admission"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Step is how far the admission policies of a set are rolled out.
type Step struct {
	// Surface is how the set reaches workloads; empty for SurfaceLive.
	Surface policy.Surface `json:"surface,omitempty"`
	// Observe says that nothing is changed: only the policy that notes in the
	// audit log what would be is in the cluster.
	Observe bool `json:"observe,omitempty"`
}

// Admission reports whether the set gives pods their placement as they are
// created, or only observes what that would do.
func (s Step) Admission() bool { return s.Surface == policy.SurfaceAdmission }

// Source is what a plan was compiled from.
type Source struct {
	// Placement is the document, and Cluster its name for the cluster; empty if it
	// has none.
	Placement *policy.Placement `json:"placement,omitempty"`
	Cluster   string            `json:"cluster,omitempty"`
}

// cause says which command leads to the step.
func (s Step) cause(scope Scope) string {
	words := []string{"apply"}
	if s.Observe {
		words = append(words, "--observe")
	}
	switch {
	case !s.Admission():
	case len(scope.Namespaces) > 0:
		words = append(words, "-n", strings.Join(scope.Namespaces, ","))
	case !s.Observe:
		words = append(words, "-A")
	}
	return strings.Join(words, " ")
}

// objects returns the objects of the step: of all that the plan makes only what
// observes, if that is what the step is, and nothing that acts outside of the
// scope.
func (s Step) objects(all []wantedObject, scope Scope) ([]wantedObject, diag.Findings, error) {
	var step []wantedObject
	var left, narrowed []string
	for _, w := range all {
		audits := w.object.GetLabels()[admission.RoleLabel] == admission.RoleAudit
		if s.Observe && !audits {
			if w.kind().Kind == validating {
				left = append(left, w.object.GetName())
			}
			continue
		}
		if binds(w) && len(scope.Namespaces) > 0 {
			within, err := inNamespaces(w.object, scope.Namespaces)
			if err != nil {
				return nil, nil, err
			}
			w.object = within
			if w.kind().Kind == validatingBind && !audits {
				narrowed = append(narrowed, w.object.GetName())
			}
		}
		step = append(step, w)
	}
	var findings diag.Findings
	if len(left) > 0 {
		findings = append(findings, diag.Finding{
			Rule: "apply/observe-only", Severity: diag.Info,
			Message: fmt.Sprintf("observing changes nothing, so the guards of dedicated pools are left out: %s", strings.Join(left, ", ")),
		})
	}
	if len(narrowed) > 0 {
		findings = append(findings, diag.Finding{
			Rule: "apply/guard-narrowed", Severity: diag.Warning,
			Message: fmt.Sprintf("the guards of dedicated pools hold in %s alone, and keep nobody out of the pools elsewhere: %s", scope.Where(), strings.Join(narrowed, ", ")),
			Fix:     &diag.Fix{Message: "apply with -A once the step has proved itself"},
		})
	}
	return step, findings, nil
}

// contentOf is the content of the place policy among the objects; empty without
// one.
func contentOf(objects []wantedObject) string {
	for _, w := range objects {
		if w.kind().Kind == mutatingPolicy && w.object.GetLabels()[admission.RoleLabel] == admission.RolePlace {
			return w.object.GetAnnotations()[admission.ContentAnnotation]
		}
	}
	return ""
}

// binds reports whether the object says where an admission policy is in force.
func binds(w wantedObject) bool {
	return w.kind().Kind == mutatingBinding || w.kind().Kind == validatingBind
}

// inNamespaces returns the binding with the namespaces as a further condition.
func inNamespaces(binding *unstructured.Unstructured, namespaces []string) (*unstructured.Unstructured, error) {
	binding = binding.DeepCopy()
	path := []string{"spec", "matchResources", "namespaceSelector", "matchExpressions"}
	list, _, err := unstructured.NestedSlice(binding.Object, path...)
	if err == nil {
		values := make([]any, len(namespaces))
		for i, n := range namespaces {
			values[i] = n
		}
		list = append(list, map[string]any{"key": corev1.LabelMetadataName, "operator": "In", "values": values})
		err = unstructured.SetNestedSlice(binding.Object, list, path...)
	}
	if err != nil {
		return nil, fmt.Errorf("restrict %s to namespaces: %w", objectRef(binding), err)
	}
	return binding, nil
}

// fitStep is fit for admission policies. The set has one of each for all its
// namespaces, so a run for others moves it there: which is what a rollout in
// steps does, if the user has said so.
func (s Scope) fitStep(state *State, change, everywhere bool) diag.Findings {
	set, recorded, before := state.Set, state.Scope, state.step()
	switch {
	case change:
		return nil
	case !slices.Equal(s.Folders, recorded.Folders):
		_, findings := s.fit(set, recorded, false)
		return findings
	case len(s.Namespaces) == 0 && !everywhere && len(recorded.Namespaces) > 0:
		return diag.Findings{{
			Rule: "apply/other-scope", Severity: diag.Error, Subject: "set " + set.Name,
			Message: fmt.Sprintf("its policies act in %s so far, and this run says nothing of namespaces", recorded.Where()),
			Fix:     &diag.Fix{Message: fmt.Sprintf("give -n %s to leave it at that, or -A for all namespaces", strings.Join(recorded.Namespaces, ","))},
		}}
	case before.Admission() && !before.Observe && !s.coversNamespaces(recorded):
		return diag.Findings{{Rule: "apply/narrowed", Severity: diag.Warning, Subject: "set " + set.Name, Message: fmt.Sprintf(
			"its policies acted in %s and now act in %s; pods that are created outside from now on get nothing, pods that run keep what they have",
			recorded.Where(), s.Where())}}
	}
	return nil
}
