package guard

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/cel"
)

// pods watches pods as they are created and changed. Of a pod that is there
// already only what is added counts: pods that run stay as they are, and keep
// what they have.
func (p Pool) pods() Policy {
	const nodeName = `request.operation == "CREATE" ? object.spec.?nodeName.orValue("") : ""`
	return p.answering(p.policy(draft{
		subject: podsSubject,
		reason:  "anybody may write a toleration or name a node, so the taint alone keeps nobody off; the API server's own admission policies refuse such pods without a webhook",
		rules: []admissionv1.NamedRuleWithOperations{
			rule("", []admissionv1.OperationType{admissionv1.Create, admissionv1.Update}, "pods", "pods/ephemeralcontainers", "pods/resize"),
		},
		// Nearly all pods end at the first condition: the API server then looks at
		// nothing else of the policy.
		conditions: append(
			[]admissionv1.MatchCondition{p.couldUse()},
			p.orProbes(p.conditions(p.exemptNamespaces(), p.exemptAccounts("object.spec"), requester(p.Exempt.Users, p.Exempt.Groups), mirrorPods()))...,
		),
		variables: append(
			p.podVariables("object.spec"),
			variable("before", `request.operation == "UPDATE" ? oldObject.spec.?tolerations.orValue([]) : []`),
			variable("added", cel.And(`variables.tolerating.size() > 0`, cel.Not(fmt.Sprintf("variables.before.exists(t, %s)", tolerates("t", p.Taint))))),
			variable("nodeName", nodeName),
			variable("granted", p.granted("variables.namespaceLabels", "variables.account")),
			variable(complaint, cel.If("variables.granted", `""`,
				cel.If("variables.added", p.tolerationComplaint("the pod"),
					cel.If(`variables.nodeName != ""`, p.nodeNameComplaint("variables.nodeName"), `""`)))),
		),
		message: fmt.Sprintf("pool %q is dedicated, and nothing grants it to the pod", p.Name),
		actions: p.actions(),
	}))
}

// bindings watches bindings that somebody else than a scheduler makes. A binding
// does not show the pod, so its service account cannot be told.
func (p Pool) bindings() Policy {
	granted := cel.False
	if p.Grants.ServiceAccounts == nil {
		granted = p.granted("variables.namespaceLabels", "")
	}
	users := append([]string{schedulerUser}, p.Exempt.Users...)
	groups := append([]string{systemAccounts}, p.Exempt.Groups...)
	return p.policy(draft{
		subject: "bindings",
		reason:  "a binding puts a pod onto a node past every taint, so only schedulers may make one where the pool is not granted; a pod's admission never sees it",
		rules: []admissionv1.NamedRuleWithOperations{
			rule("", []admissionv1.OperationType{admissionv1.Create}, "pods/binding", "bindings"),
		},
		conditions: p.conditions(p.exemptNamespaces(), requester(users, groups)),
		variables: []admissionv1.Variable{
			variable("namespaceLabels", cel.LabelsOf("namespaceObject")),
			variable("granted", granted),
			variable(complaint, cel.If("variables.granted", `""`, p.bindingComplaint())),
		},
		message: fmt.Sprintf("pool %q is dedicated, and only schedulers may bind pods where it is not granted", p.Name),
		actions: p.actions(),
	})
}

// templates tells whoever applies a workload that its pods would be refused. It
// never refuses itself: a template is only text until a pod is made of it.
// Objects that belong to another are left out, for their owner was warned about,
// and so is what controllers do.
func (p Pool) templates() Policy {
	const pod = `dyn(request.kind.kind == "CronJob" ? dyn(object).spec.jobTemplate.spec.template.spec : dyn(object).spec.template.spec)`
	written := []admissionv1.OperationType{admissionv1.Create, admissionv1.Update}
	return p.policy(draft{
		subject: "templates",
		reason:  "a controller makes the pods later, and where it is refused only an event says so; a warning tells whoever applies the workload at once",
		rules: []admissionv1.NamedRuleWithOperations{
			rule("apps", written, "deployments", "statefulsets", "daemonsets", "replicasets"),
			rule("batch", written, "jobs", "cronjobs"),
			rule("", written, "replicationcontrollers"),
		},
		conditions: p.conditions(
			p.exemptNamespaces(),
			requester([]string{controllerManagerUser}, []string{systemAccounts}),
			admissionv1.MatchCondition{Name: "no-owner", Expression: "!has(object.metadata.ownerReferences)"},
		),
		variables: append(
			[]admissionv1.Variable{variable("pod", pod)},
			append(
				p.podVariables("variables.pod"),
				variable("nodeName", `variables.pod.?nodeName.orValue("")`),
				variable("granted", cel.Or(p.granted("variables.namespaceLabels", "variables.account"), p.exemptAccount("variables.account"))),
				variable(complaint, cel.If("variables.granted", `""`,
					cel.If("variables.tolerating.size() > 0", p.tolerationComplaint("the pods"),
						cel.If(`variables.nodeName != ""`, p.nodeNameComplaint("variables.nodeName"), `""`)))),
			)...,
		),
		message: fmt.Sprintf("pool %q is dedicated, and nothing grants it to the pods", p.Name),
		actions: []admissionv1.ValidationAction{admissionv1.Warn},
	})
}
