package admission

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler/cel"
)

// Objects are the objects of a set.
type Objects struct {
	// Content is the ContentAnnotation of the policies.
	Content string

	Place        *admissionregistrationv1.MutatingAdmissionPolicy
	PlaceBinding *admissionregistrationv1.MutatingAdmissionPolicyBinding

	Unmark        *admissionregistrationv1.MutatingAdmissionPolicy
	UnmarkBinding *admissionregistrationv1.MutatingAdmissionPolicyBinding

	Audit        *admissionregistrationv1.ValidatingAdmissionPolicy
	AuditBinding *admissionregistrationv1.ValidatingAdmissionPolicyBinding
}

// Objects returns the objects of the set; equal sets have equal ones.
func (s Set) Objects() Objects {
	p := s.compile()
	content := s.content(p)
	p.define("marked", "%s + variables.policyNames", cel.Quote(content+" "))
	out := Objects{Content: content}
	out.place(s, p)
	out.unmark(s)
	out.audit(s, p)
	return out
}

// content is a short hash of all that the set does.
func (s Set) content(p *program) string {
	h := sha256.New()
	for _, v := range p.variables {
		_, _ = io.WriteString(h, v.name+"\x00"+v.text+"\x00")
	}
	_, _ = io.WriteString(h, s.mutation(p, ""))
	_, _ = fmt.Fprintf(h, "%v %q", s.FailClosed, s.Exempt)
	return hex.EncodeToString(h.Sum(nil))[:10]
}

func (s Set) meta(role, content string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: Name(s.Name, role), Labels: map[string]string{RoleLabel: role}}
	if content != "" {
		m.Annotations = map[string]string{ContentAnnotation: content}
	}
	return m
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: kind}
}

// resources are what all policies act on: pods as they are created, and
// DaemonSets, whose controller picks the nodes before it makes the pods.
func (s Set) resources() *admissionregistrationv1.MatchResources {
	rule := func(group, resource string, operations ...admissionregistrationv1.OperationType) admissionregistrationv1.NamedRuleWithOperations {
		return admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: operations,
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{resource},
				Scope: new(admissionregistrationv1.NamespacedScope),
			},
		}}
	}
	namespaces := &metav1.LabelSelector{}
	if len(s.Exempt) > 0 {
		namespaces.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: s.Exempt}}
	}
	return &admissionregistrationv1.MatchResources{
		NamespaceSelector: namespaces,
		ObjectSelector:    &metav1.LabelSelector{},
		MatchPolicy:       new(admissionregistrationv1.Equivalent),
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
			rule("", "pods", admissionregistrationv1.Create),
			rule("apps", "daemonsets", admissionregistrationv1.Create, admissionregistrationv1.Update),
		},
	}
}

// conditions leave out what must stay as it is: pods made by a DaemonSet, whose
// template was placed, and mirrors of static pods. They must not depend on
// anything that another mutation can change, but as unsettledCondition does: a
// policy that did not match at first is not asked again. Each condition is
// evaluated by itself, which costs more than what it says, so there is one.
func conditions() []admissionregistrationv1.MatchCondition {
	return []admissionregistrationv1.MatchCondition{{Name: "neither-made-by-a-daemonset-nor-a-mirror", Expression: ours}}
}

const ours = `!object.metadata.?ownerReferences.orValue([]).exists(o, o.kind == "DaemonSet" && o.apiVersion.startsWith("apps/") && o.?controller.orValue(false))
&& !("kubernetes.io/config.mirror" in object.metadata.?annotations.orValue({}))`

func (s Set) failurePolicy() admissionregistrationv1.FailurePolicyType {
	if s.FailClosed {
		return admissionregistrationv1.Fail
	}
	return admissionregistrationv1.Ignore
}

func mutationBinding(m metav1.ObjectMeta) *admissionregistrationv1.MutatingAdmissionPolicyBinding {
	m.Annotations = nil
	return &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		TypeMeta: typeMeta("MutatingAdmissionPolicyBinding"), ObjectMeta: m,
		Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: m.Name},
	}
}

func (o *Objects) place(s Set, p *program) {
	o.Place = &admissionregistrationv1.MutatingAdmissionPolicy{
		TypeMeta: typeMeta("MutatingAdmissionPolicy"), ObjectMeta: s.meta(RolePlace, o.Content),
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			MatchConstraints:   s.resources(),
			MatchConditions:    conditions(),
			FailurePolicy:      new(s.failurePolicy()),
			ReinvocationPolicy: admissionregistrationv1.IfNeededReinvocationPolicy,
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch,
				JSONPatch: &admissionregistrationv1.JSONPatch{Expression: s.mutation(p, o.Content)},
			}},
		},
	}
	expression := &o.Place.Spec.Mutations[0].JSONPatch.Expression
	o.Place.Spec.Variables = inline(p.needed(*expression), expression)
	if unsettled, ok := s.unsettledCondition(p, o.Content); ok {
		o.Place.Spec.MatchConditions = []admissionregistrationv1.MatchCondition{unsettled}
	}
	o.PlaceBinding = mutationBinding(o.Place.ObjectMeta)
}

// unmark takes a mark of another content away, so that nobody opts out by writing
// one: it acts in the first pass alone, when the set's own is of this content, or
// not there yet. The API server calls policies in any order. Where the place
// policy came first and left the pod alone, this very change asks for the second
// pass, in which it does not.
//
// The place policy must be written before this one: then whoever goes by the new
// one of this goes by the new one of that, and a mark of the former version is
// never taken away between the passes of a request that saw both versions.
func (o *Objects) unmark(s Set) {
	key := Annotation(s.Name)
	// It acts in the first pass alone, so its conditions may depend on what others
	// change. Where they fail, which is nearly always, the API server does not have
	// to write the pod out and read it again, as it does for every mutation.
	foreign := admissionregistrationv1.MatchCondition{
		Name:       "marked-by-another-content",
		Expression: fmt.Sprintf("object.metadata.?annotations[?%s].optMap(m, !m.startsWith(%s)).orValue(false)\n&& %s", cel.Quote(key), cel.Quote(o.Content+" "), ours),
	}
	o.Unmark = &admissionregistrationv1.MutatingAdmissionPolicy{
		TypeMeta: typeMeta("MutatingAdmissionPolicy"), ObjectMeta: s.meta(RoleUnmark, o.Content),
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			MatchConstraints:   s.resources(),
			MatchConditions:    []admissionregistrationv1.MatchCondition{foreign},
			FailurePolicy:      new(s.failurePolicy()),
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch,
				JSONPatch: &admissionregistrationv1.JSONPatch{Expression: fmt.Sprintf(`[JSONPatch{op: "remove", path: %s}]`, cel.Quote(pointer("metadata", "annotations", key)))},
			}},
		},
	}
	o.UnmarkBinding = mutationBinding(o.Unmark.ObjectMeta)
}

// audit notes what was done. It never refuses anything. Its one validation fails
// for a pod that the set would still change, so that the API server's metric
// apiserver_validating_admission_policy_check_total counts those.
func (o *Objects) audit(s Set, p *program) {
	m := s.meta(RoleAudit, o.Content)
	o.Audit = &admissionregistrationv1.ValidatingAdmissionPolicy{
		TypeMeta: typeMeta("ValidatingAdmissionPolicy"), ObjectMeta: m,
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: s.resources(),
			MatchConditions:  conditions(),
			FailurePolicy:    new(admissionregistrationv1.Ignore),
			Validations: []admissionregistrationv1.Validation{{
				Expression: `variables.pending.size() == 0`,
				// The API server works it out for every pod, whether or not it says it.
				MessageExpression: `variables.pending.size() == 0 ? "" : "the placement policies " + variables.policies.join(", ") + " would change " + variables.pending.join(", ")`,
				Message:           "the placement policies would change the pod",
			}},
			// An empty value leaves the annotation out.
			AuditAnnotations: []admissionregistrationv1.AuditAnnotation{
				{Key: AuditPolicies, ValueExpression: `variables.placed ? variables.mark.substring(variables.mark.indexOf(" ") + 1) : variables.policyNames`},
				{Key: AuditContent, ValueExpression: fmt.Sprintf(`variables.placed || variables.policyNames != "" ? %s : ""`, cel.Quote(o.Content))},
				{Key: AuditPending, ValueExpression: `variables.pending.join(",")`},
			},
		},
	}
	// A mark is never the user's own, because those are taken away; without the
	// policy that does so, it is only trusted to say what it says.
	placed := admissionregistrationv1.Variable{Name: "placed", Expression: fmt.Sprintf(`variables.mark.startsWith(%s)`, cel.Quote(o.Content+" "))}
	pending := admissionregistrationv1.Variable{Name: "pending", Expression: `variables.placed || variables.policyNames == "" ? [""].filter(c, false) : variables.changes`}
	used := []string{placed.Expression, pending.Expression}
	validation := &o.Audit.Spec.Validations[0]
	expressions := []*string{&validation.Expression, &validation.MessageExpression}
	for i := range o.Audit.Spec.AuditAnnotations {
		expressions = append(expressions, &o.Audit.Spec.AuditAnnotations[i].ValueExpression)
	}
	for _, e := range expressions {
		used = append(used, *e)
	}
	o.Audit.Spec.Variables = inline(append(p.needed(used...), placed, pending), expressions...)
	m.Annotations = nil
	o.AuditBinding = &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		TypeMeta: typeMeta("ValidatingAdmissionPolicyBinding"), ObjectMeta: m,
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        m.Name,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Audit},
		},
	}
}
