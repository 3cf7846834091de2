package guard

import (
	"path"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/cel"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// Those who bind pods and make them from templates in every cluster.
const (
	schedulerUser         = "system:kube-scheduler"
	controllerManagerUser = "system:kube-controller-manager"
	// systemAccounts are the service accounts of kube-system: controllers, and
	// most schedulers beside the default one.
	systemAccounts = "system:serviceaccounts:" + systemNamespace
	nodesGroup     = "system:nodes"
)

func variable(name, expression string) admissionv1.Variable {
	return admissionv1.Variable{Name: name, Expression: expression}
}

// granted returns the condition that the pool is granted to a pod in the
// request's namespace with the service account. Both arguments are expressions:
// a map, and a name that is not read where no service account is asked for. It
// says what the compiler's own grants say.
func (p Pool) granted(namespaceLabels, account string) string {
	g := p.Grants
	var conditions []string
	if g.Namespaces != nil {
		conditions = append(conditions, grantedNamespace(g.Namespaces))
	}
	if g.ServiceAccounts != nil {
		conditions = append(conditions, accountMatches(account, g.ServiceAccounts))
	}
	return cel.And(append(conditions, cel.Labels(namespaceLabels, g.NamespaceLabels))...)
}

// grantedNamespace is the condition that the namespace is one of the patterns;
// kube-system is only if they name it.
func grantedNamespace(patterns []string) string {
	const namespace = "request.namespace"
	matches := cel.Matches(namespace, patterns)
	byGlob := func(pattern string) bool {
		ok, err := path.Match(pattern, systemNamespace)
		return ok && err == nil
	}
	if slices.Contains(patterns, systemNamespace) || !slices.ContainsFunc(patterns, byGlob) {
		return matches
	}
	return cel.And(namespace+" != "+cel.Quote(systemNamespace), matches)
}

// accountMatches is the condition that a service account of the request's
// namespace is one of the patterns, each "namespace/name" or "name".
func accountMatches(account string, patterns []string) string {
	var anywhere []string
	byNamespace := map[string][]string{}
	for _, pattern := range patterns {
		if namespace, name, ok := policy.SplitAccount(pattern); ok {
			byNamespace[namespace] = append(byNamespace[namespace], name)
		} else {
			anywhere = append(anywhere, name)
		}
	}
	conditions := []string{cel.Matches(account, anywhere)}
	namespaces := make([]string, 0, len(byNamespace))
	for namespace := range byNamespace {
		namespaces = append(namespaces, namespace)
	}
	slices.Sort(namespaces)
	for _, namespace := range namespaces {
		conditions = append(conditions, cel.And(
			cel.Matches("request.namespace", []string{namespace}),
			cel.Matches(account, byNamespace[namespace]),
		))
	}
	return cel.Or(conditions...)
}

// account is the service account of the pod spec that the expression stands for,
// with the default that admission fills in.
func account(spec string) string {
	return cel.If(spec+`.?serviceAccountName.orValue("") == ""`, `"default"`, spec+".serviceAccountName")
}

// watchedNamespaces leaves out the exempt namespaces that can be told by name
// alone: the API server then evaluates nothing there.
func (p Pool) watchedNamespaces() *metav1.LabelSelector {
	exempt := []string{systemNamespace}
	for _, n := range p.Exempt.Namespaces {
		if !cel.IsGlob(n) {
			exempt = append(exempt, n)
		}
	}
	slices.Sort(exempt)
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: slices.Compact(exempt),
	}}}
}

// exemptNamespaces is the match condition for the other exempt namespaces.
func (p Pool) exemptNamespaces() admissionv1.MatchCondition {
	globs := slices.DeleteFunc(slices.Clone(p.Exempt.Namespaces), func(n string) bool { return !cel.IsGlob(n) })
	return admissionv1.MatchCondition{Name: "not-an-exempt-namespace", Expression: cel.Not(cel.Matches("request.namespace", globs))}
}

// exemptAccount is the condition that the service account is exempt.
func (p Pool) exemptAccount(account string) string {
	return accountMatches(account, p.Exempt.ServiceAccounts)
}

// exemptAccounts is the match condition for pods with exempt service accounts.
func (p Pool) exemptAccounts(spec string) admissionv1.MatchCondition {
	// Match conditions know no variables, so the account is spelt out in each
	// place; its parentheses make it an operand.
	return admissionv1.MatchCondition{Name: "not-an-exempt-service-account", Expression: cel.Not(p.exemptAccount("(" + account(spec) + ")"))}
}

// requester is the match condition that the request comes from none of the users
// and groups.
func requester(users, groups []string) admissionv1.MatchCondition {
	user := cel.Matches("request.userInfo.username", users)
	group := cel.False
	if len(groups) > 0 {
		group = inGroup(groups)
	}
	return admissionv1.MatchCondition{Name: "not-an-exempt-requester", Expression: cel.Not(cel.Or(user, group))}
}

func inGroup(groups []string) string {
	return "request.userInfo.?groups.orValue([]).exists(g, " + cel.Matches("g", groups) + ")"
}

// mirrorPods is the match condition that leaves out how kubelets show their static
// pods, which no admission can refuse: they run already. The NodeRestriction
// plugin lets a kubelet create nothing else.
func mirrorPods() admissionv1.MatchCondition {
	mirror := cel.And(`request.operation == "CREATE"`, inGroup([]string{nodesGroup}), cel.Quote(corev1.MirrorPodAnnotationKey)+" in object.metadata.?annotations.orValue({})")
	return admissionv1.MatchCondition{Name: "not-a-mirror-pod", Expression: cel.Not(mirror)}
}

// conditions leaves out the match conditions that always hold.
func (p Pool) conditions(all ...admissionv1.MatchCondition) []admissionv1.MatchCondition {
	return slices.DeleteFunc(all, func(c admissionv1.MatchCondition) bool { return strings.TrimSpace(c.Expression) == cel.True })
}
