package approval

import (
	"fmt"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/condition"
)

// AccountName is the name of the policy about the controller's account, and of its
// binding.
const AccountName = "account." + Name

// annotations is what the annotations begin with that our plugins write on pods.
const annotations = "kubectl-sched.github.io/"

// mutable are the fields of a pod that an update can change beside gates and
// annotations (ValidatePodUpdate in pkg/apis/core/validation). The API server
// itself refuses all others.
var mutable = []string{
	"metadata.?labels", "metadata.?finalizers", "metadata.?ownerReferences",
	"spec.?containers", "spec.?initContainers", "spec.?tolerations", "spec.?nodeSelector", "spec.?affinity",
	"spec.?activeDeadlineSeconds", "spec.?terminationGracePeriodSeconds",
}

// Account returns the policy, with its binding, that keeps the account of the
// controller to what it needs the right to patch pods for: the removal of gates of
// ours, and the annotations of our plugins. RBAC cannot say that.
func Account(controller string) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	same := make([]string, len(mutable))
	for i, field := range mutable {
		same[i] = fmt.Sprintf("object.%[1]s == oldObject.%[1]s", field)
	}
	return objects(AccountName, admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: pods([]admissionv1.OperationType{admissionv1.Update}, "pods"),
		MatchConditions: []admissionv1.MatchCondition{{
			Name: "our-account", Expression: "request.userInfo.username == " + strconv.Quote(controller),
		}},
		Variables: []admissionv1.Variable{
			{Name: "before", Expression: `oldObject.metadata.?annotations.orValue({})`},
			{Name: "after", Expression: `object.metadata.?annotations.orValue({})`},
			{Name: "changed", Expression: `variables.after.filter(k, variables.before[?k] != optional.of(variables.after[k])) + variables.before.filter(k, !(k in variables.after))`},
			{Name: "gates", Expression: `object.spec.?schedulingGates.orValue([]).map(g, g.name)`},
		},
		Validations: []admissionv1.Validation{
			{
				Expression: fmt.Sprintf(`oldObject.spec.?schedulingGates.orValue([]).all(g, g.name in variables.gates || g.name.startsWith(%s))`, strconv.Quote(condition.Prefix)),
				Message:    "the scheduler removes only scheduling gates that begin with " + condition.Prefix,
			},
			{
				Expression: fmt.Sprintf(`variables.changed.all(k, k.startsWith(%s))`, strconv.Quote(annotations)),
				Message:    "the scheduler writes only annotations that begin with " + annotations,
			},
			{
				Expression: strings.Join(same, " && "),
				Message:    "the scheduler changes nothing of a pod but its scheduling gates and annotations of its own",
			},
		},
	})
}
