package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// The Kubernetes minor versions that a run is written for: server-side apply as
// it is used here exists from 1.22 on, and the API types are those of 1.37.
const (
	oldestMinor = 22
	builtMinor  = 37
)

// permission is one thing that a run will do.
type permission struct {
	verb, group, resource, namespace string
}

func (p permission) String() string {
	s := p.verb + " " + p.resource
	if p.group != "" {
		s += "." + p.group
	}
	if p.namespace != "" {
		s += " in namespace " + p.namespace
	}
	return s
}

// Preflight asks the API server, before the first write, whether the run may do
// all that it is going to, and whether the server is one that it was made for.
// With an Error among the findings nothing must be written.
func (a *Applier) Preflight(ctx context.Context, cs *ChangeSet) (diag.Findings, error) {
	minor, err := a.Client.Minor(ctx)
	if err != nil {
		return nil, err
	}
	var findings diag.Findings
	switch {
	case minor < oldestMinor:
		findings = append(findings, diag.Finding{
			Rule: "apply/version", Severity: diag.Error,
			Message: fmt.Sprintf("the API server is version 1.%d, and live apply needs 1.%d or later; compile into manifests instead", minor, oldestMinor),
		})
	case minor < builtMinor-1 || minor > builtMinor+1:
		findings = append(findings, diag.Finding{
			Rule: "apply/version", Severity: diag.Warning,
			Message: fmt.Sprintf("the API server is version 1.%d, and this kubectl-sched is made for 1.%d to 1.%d", minor, builtMinor-1, builtMinor+1),
		})
	}
	var denied []permission
	reasons := map[string]bool{}
	for _, p := range a.permissions(cs) {
		allowed, reason, err := a.allowed(ctx, p)
		if err != nil {
			return findings, err
		}
		if !allowed {
			denied = append(denied, p)
			reasons[reason] = true
		}
	}
	if len(denied) > 0 {
		findings = append(findings, deniedFinding(denied, slices.Sorted(maps.Keys(reasons))))
	}
	return findings, nil
}

// deniedFinding says in one finding all that the user may not do.
func deniedFinding(denied []permission, reasons []string) diag.Finding {
	// The verbs of one resource in one namespace belong together.
	var order []permission
	verbs := map[permission][]string{}
	state := false
	for _, p := range denied {
		key := permission{"", p.group, p.resource, p.namespace}
		if verbs[key] == nil {
			order = append(order, key)
		}
		verbs[key] = append(verbs[key], p.verb)
		state = state || p.resource == "configmaps"
	}
	parts := make([]string, len(order))
	for i, key := range order {
		key.verb = strings.Join(verbs[key], ", ")
		parts[i] = key.String()
	}
	f := diag.Finding{Rule: "apply/no-permission", Severity: diag.Error, Message: "you may not " + strings.Join(parts, "; ")}
	if reasons = slices.DeleteFunc(reasons, func(r string) bool { return r == "" }); len(reasons) > 0 {
		f.Message += " (" + strings.Join(reasons, "; ") + ")"
	}
	if state {
		f.Fix = &diag.Fix{Message: "keep the state of the set in a namespace that you may write, with --set-namespace"}
	}
	return f
}

// permissions lists what the run will do, each once, in the order of its phases.
func (a *Applier) permissions(cs *ChangeSet) []permission {
	var list []permission
	add := func(p permission) {
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	for _, verb := range []string{"get", "list", "create", "update", "patch", "delete"} {
		add(permission{verb, "", "configmaps", cs.Set.Namespace})
	}
	for _, o := range cs.Objects {
		for _, verb := range verbsOf(o) {
			add(permission{verb, o.mapping.Resource.Group, o.mapping.Resource.Resource, o.Namespace})
		}
	}
	for _, n := range cs.Nodes {
		if n.Action != Keep {
			add(permission{"patch", "", "nodes", ""})
		}
	}
	for _, w := range cs.Workloads {
		if w.Action != Update && w.Action != Withdraw {
			continue
		}
		mapping, err := a.Client.Resource(w.target.groupKind(), w.Workload.Version)
		if err != nil {
			// Its dry run has been answered, so this does not happen; and if it
			// does, the write says so.
			continue
		}
		add(permission{"patch", mapping.Resource.Group, mapping.Resource.Resource, w.Workload.Namespace})
	}
	return list
}

// verbsOf returns what writing an object of our making takes.
func verbsOf(o ObjectChange) []string {
	switch o.Action {
	case Create:
		return []string{"patch", "create"}
	case Update:
		if o.overwrite {
			return []string{"patch", "update"}
		}
		return []string{"patch"}
	case Delete:
		return []string{"delete"}
	case Replace:
		return []string{"delete", "create", "patch"}
	default:
		return nil
	}
}

// allowed asks about one permission.
func (a *Applier) allowed(ctx context.Context, p permission) (bool, string, error) {
	review, err := a.Client.Kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: p.verb, Group: p.group, Resource: p.resource, Namespace: p.namespace,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, "", fmt.Errorf("ask whether you may %s: %w", p, err)
	}
	return review.Status.Allowed, review.Status.Reason, nil
}
