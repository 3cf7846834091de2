package apply

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// conflictsIn returns the conflicts that the API server names in the error of a
// server-side apply; none if the error is another one.
func conflictsIn(err error, subject string, origins map[string][]compiler.Origin) []Conflict {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var conflicts []Conflict
	for _, cause := range status.Status().Details.Causes {
		if cause.Type != metav1.CauseTypeFieldManagerConflict {
			continue
		}
		conflicts = append(conflicts, Conflict{
			Subject: subject,
			Field:   cause.Field,
			Owner:   ownerIn(cause.Message),
			Origins: originsAt(origins, pointerOfField(cause.Field)),
		})
	}
	return conflicts
}

// The server words a cause as: conflict with "helm" using apps/v1 at <time>.
var conflictOwner = regexp.MustCompile(`^conflict with "([^"]*)"`)

func ownerIn(message string) string {
	if m := conflictOwner.FindStringSubmatch(message); m != nil {
		return m[1]
	}
	return message
}

// pointerOfField turns the server's name of a field into a JSON pointer. What
// follows a list's key ("[name=…]") is cut off: our fields end at their lists.
func pointerOfField(field string) string {
	field, _, _ = strings.Cut(field, "[")
	return policy.Pointer(strings.Split(strings.Trim(field, "."), ".")...)
}

// fieldOfPointer is the inverse for fields without a list on their way.
func fieldOfPointer(at string) string { return "." + strings.Join(splitPointer(at), ".") }

// takesNothing reports whether all conflicts are with writes of our own that were
// made by patch, or about what nobody chose: then taking the fields over takes
// nothing from anybody.
func (a *Applier) takesNothing(w *workload.Workload, conflicts []Conflict) bool {
	return !slices.ContainsFunc(conflicts, func(c Conflict) bool {
		return c.Owner != a.manager() && !nobodysChoice(w, pointerOfField(c.Field), a.manager())
	})
}

// Finding is the conflict as something that the user must mend: field, owner,
// and the policy line that asks for it.
func (c Conflict) Finding() diag.Finding {
	message, owner := fmt.Sprintf("field %s is owned by %q", c.Field, c.Owner), fmt.Sprintf("%q", c.Owner)
	if c.Owner == "" {
		message, owner = fmt.Sprintf("field %s has a value that somebody else set", c.Field), "its owner"
	}
	f := diag.Finding{
		Rule:     "apply/conflict",
		Severity: diag.Error,
		Subject:  c.Subject,
		Message:  message,
		Fix: &diag.Fix{Message: fmt.Sprintf(
			"let the policy be compiled into the manifest that %s applies (surface \"render\"), take the field out of that manifest, or take it over with --force-conflicts", owner)},
	}
	for i, origin := range c.Origins {
		if i == 0 {
			f.Policy, f.Range = origin.Policy, origin.Range
			continue
		}
		f.Related = append(f.Related, diag.Related{Range: origin.Range, Message: fmt.Sprintf("policy %q asks for it too", origin.Policy)})
	}
	return f
}
