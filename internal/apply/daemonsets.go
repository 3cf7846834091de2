package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/admission"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// The pods of a DaemonSet are placed by their template, because the controller
// picks the nodes before it makes the pods. Admission policies see the template
// when the DaemonSet is written, and no sooner; and what they have put into it
// stays, since they act on what comes and not on what is there.

func isDaemonSet(w *workload.Workload) bool {
	return w.Group == appsv1.GroupName && w.Kind == "DaemonSet"
}

// outdated is the finding on DaemonSets that a former content has placed, or this
// one in parts; none if there are no such.
func (s Step) outdated(set Set, scope Scope, content string, read []*workload.Workload) diag.Findings {
	if !s.Admission() || s.Observe {
		return nil
	}
	var names []string
	for _, w := range read {
		mark, ok := admission.ParseMark(w.Annotations[admission.Annotation(set.Label())])
		if ok && mark.Content != content && isDaemonSet(w) && (len(scope.Namespaces) == 0 || slices.Contains(scope.Namespaces, w.Namespace)) {
			names = append(names, w.Namespace+"/"+w.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return diag.Findings{{
		Rule: "apply/outdated", Severity: diag.Warning, Subject: "DaemonSet " + shortList(names),
		Message: "its template has the placement of a former revision, and gets the new one on top of it when it is next written",
		Fix:     &diag.Fix{Message: "put its manifest in place as a whole, so that nothing of the former is left: kubectl replace -f"},
	}}
}

// nextWrites is the finding on DaemonSets that are there already and get their
// placement only when somebody writes them; none if there are no such.
func (s Step) nextWrites(scope Scope, changes []compiler.Change) diag.Findings {
	if !s.Admission() || s.Observe {
		return nil
	}
	var names, commands []string
	for _, c := range changes {
		w := c.Workload
		if !isDaemonSet(w) || len(c.Effects) == 0 {
			continue
		}
		if len(scope.Namespaces) > 0 && !slices.Contains(scope.Namespaces, w.Namespace) {
			continue
		}
		names = append(names, w.Namespace+"/"+w.Name)
		commands = append(commands, fmt.Sprintf("kubectl rollout restart daemonset/%s -n %s", w.Name, w.Namespace))
	}
	if len(names) == 0 {
		return nil
	}
	return diag.Findings{{
		Rule: "apply/next-write", Severity: diag.Info, Subject: "DaemonSet " + shortList(names),
		Message: "its pods are placed by its template, which gets the placement when it is next written, and with that its pods restart; until then they stay as they are",
		Fix:     &diag.Fix{Message: "to have that now: " + commands[0]},
	}}
}

// lasting is the finding on DaemonSets whose template keeps what admission
// policies wrote into it, although the policies go; none if there are no such.
// Who may not list them is told nothing about them.
func (a *Applier) lasting(ctx context.Context, cs *ChangeSet) (diag.Findings, error) {
	place := cs.placePolicy()
	if place == nil || place.Action != Delete {
		return nil, nil
	}
	key := admission.Annotation(cs.Set.Label())
	list, err := a.Client.Metadata.Resource(appsv1.SchemeGroupVersion.WithResource("daemonsets")).List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list daemonsets: %w", err)
	}
	var marked []string
	for _, d := range list.Items {
		if d.Annotations[key] != "" {
			marked = append(marked, d.Namespace+"/"+d.Name)
		}
	}
	if len(marked) == 0 {
		return nil, nil
	}
	return diag.Findings{{
		Rule: "apply/stays", Severity: diag.Warning, Subject: "DaemonSet " + shortList(marked),
		Message: fmt.Sprintf("its template keeps the placement that the admission policies wrote into it (it is marked with the annotation %q)", key),
		Fix:     &diag.Fix{Message: "apply its manifest as a whole once the policies are gone: kubectl replace -f"},
	}}, nil
}

// shortList names the first of many.
func shortList(names []string) string {
	const most = 5
	list := strings.Join(names[:min(most, len(names))], ", ")
	if len(names) > most {
		list += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return list
}
