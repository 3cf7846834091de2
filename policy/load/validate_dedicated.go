package load

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-sched/kubectl-sched/policy"
)

// dedicated checks the taint of a pool, who may use it, and its guard.
func (s subject) dedicated(d *policy.Dedicated) {
	path := []string{"dedicated"}
	s.labelKey(join(path, "taint", "key"), d.Taint.Key)
	if d.Taint.Value != nil {
		s.labelValue(join(path, "taint", "value"), *d.Taint.Value)
	}
	if d.Grants != nil {
		s.grants(join(path, "grants"), d.Grants)
	}
	guarded := d.Guard != "" && d.Guard != policy.GuardOff
	if guarded && d.Grants == nil {
		s.bad("policy/guard-without-grants", join(path, "guard"), "guard %q needs grants: without them everybody may use the pool; say in grants who may, or take guard out", d.Guard)
	}
	if d.Exempt == nil {
		return
	}
	if !guarded {
		s.bad("policy/exempt-without-guard", join(path, "exempt"), "exempt spares somebody a guard, and the pool has none; set guard to \"audit\", \"warn\" or \"deny\", or take exempt out")
	}
	s.exempt(join(path, "exempt"), d.Exempt)
}

func (s subject) grants(path []string, g *policy.Grants) {
	if len(g.Namespaces)+len(g.NamespaceLabels)+len(g.ServiceAccounts) == 0 {
		s.bad("policy/empty-selector", path, "grants that say nothing would let everybody in; say who may use the pool, or leave grants out")
	}
	s.namespaces(join(path, "namespaces"), g.Namespaces)
	s.selectorLabels(join(path, "namespaceLabels"), g.NamespaceLabels)
	for i, account := range g.ServiceAccounts {
		s.serviceAccount(join(path, "serviceAccounts", nth(i)), account)
	}
}

func (s subject) exempt(path []string, e *policy.GuardExempt) {
	if len(e.Namespaces)+len(e.ServiceAccounts)+len(e.Users)+len(e.Groups) == 0 {
		s.bad("policy/empty-selector", path, "exempt says nothing; name namespaces, serviceAccounts, users or groups, or take it out")
	}
	s.namespaces(join(path, "namespaces"), e.Namespaces)
	for i, account := range e.ServiceAccounts {
		here := join(path, "serviceAccounts", nth(i))
		if !s.serviceAccount(here, account) {
			continue
		}
		if _, _, ok := policy.SplitAccount(account); !ok {
			s.bad("policy/bad-name", here, "%q is a service account of any namespace, and anybody who has one may make it; write \"namespace/%s\"", account, account)
		}
	}
	for i, user := range e.Users {
		s.user(join(path, "users", nth(i)), user)
	}
	for i, group := range e.Groups {
		s.group(join(path, "groups", nth(i)), group)
	}
}

// serviceAccount checks "name" or "namespace/name", where both may be patterns.
// It reports whether it is fine.
func (s subject) serviceAccount(at []string, account string) bool {
	if accountPrefix(account) != "" {
		s.bad("policy/bad-name", at, "%q is the name of a user, not of a service account; write %q", account, strings.Replace(accountPrefix(account), ":", "/", 1))
		return false
	}
	if strings.Count(account, "/") > 1 {
		s.bad("policy/bad-name", at, "%q is no service account; write its name, or \"namespace/name\"", account)
		return false
	}
	namespace, name, ok := policy.SplitAccount(account)
	if ok && !s.glob(at, namespace) || !s.glob(at, name) {
		return false
	}
	if ok && !isGlob(namespace) && len(validation.IsDNS1123Label(namespace)) > 0 {
		s.bad("policy/bad-name", at, "%q cannot be a namespace: its name %s", namespace, nameRule)
		return false
	}
	if !isGlob(name) && len(validation.IsDNS1123Subdomain(name)) > 0 {
		s.bad("policy/bad-name", at, "%q cannot be a service account's name: it must be lower-case letters, digits, \"-\" and \".\"", name)
		return false
	}
	return true
}

// The prefixes of the users and groups that service accounts are to the API
// server (k8s.io/apiserver/pkg/authentication/serviceaccount).
const (
	accountUser   = "system:serviceaccount:"
	accountsGroup = "system:serviceaccounts"
)

// accountPrefix returns "namespace:name" of the user that a service account is;
// empty if the name is not such a user's.
func accountPrefix(user string) string {
	account, ok := strings.CutPrefix(user, accountUser)
	if !ok {
		return ""
	}
	return account
}

// user checks the exact name of a user who is exempt.
func (s subject) user(at []string, user string) {
	account := accountPrefix(user)
	namespace, name, whole := strings.Cut(account, ":")
	plainNamespace, plainName, slash := strings.Cut(user, "/")
	switch {
	case s.notExact(at, user):
	case strings.HasPrefix(user, accountsGroup):
		s.bad("policy/bad-name", at, "%q is a group; name it in groups", user)
	case account != "" && (!whole || namespace == "" || name == ""):
		s.bad("policy/bad-name", at, "%q is no service account; write \"system:serviceaccount:namespace:name\"", user)
	case slash && len(validation.IsDNS1123Label(plainNamespace)) == 0 && len(validation.IsDNS1123Subdomain(plainName)) == 0:
		s.bad("policy/bad-name", at, "%q reads like a service account, which is the user %q; write that, or name it in serviceAccounts, if its pods are meant", user, accountUser+plainNamespace+":"+plainName)
	case namespace == "kube-system" && strings.HasSuffix(name, "-controller"), user == "system:kube-controller-manager":
		s.bad("policy/exempts-everybody", at, "%q makes the pods of everybody's workloads, so nobody would be watched; name the workloads' namespaces or service accounts", user)
	}
}

// group checks the exact name of a group that is exempt.
func (s subject) group(at []string, group string) {
	// These hold everybody, or the controllers that make everybody's pods.
	everybody := []string{"system:authenticated", "system:unauthenticated", accountsGroup, accountsGroup + ":kube-system"}
	switch {
	case s.notExact(at, group):
	case slices.Contains(everybody, group):
		s.bad("policy/exempts-everybody", at, "group %q has those in it who make the pods of everybody's workloads, so nobody would be watched; name a smaller group, or namespaces or service accounts", group)
	case accountPrefix(group) != "" || group == "system:kube-scheduler" || group == "system:admin":
		s.bad("policy/bad-name", at, "%q is a user; name it in users", group)
	}
}

// notExact reports names of users and groups that are empty or patterns.
func (s subject) notExact(at []string, name string) bool {
	switch {
	case name == "":
		s.bad("policy/bad-name", at, "a name cannot be empty")
		return true
	case strings.ContainsAny(name, "*?"):
		s.bad("policy/bad-glob", at, "%q is a pattern, and users and groups are named exactly; the service accounts of a namespace are the group \"system:serviceaccounts:NAMESPACE\"", name)
		return true
	}
	return false
}
