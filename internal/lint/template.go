package lint

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// template is one pod template under examination.
type template struct {
	*judgement
	w *workload.Workload
	t *workload.Template
	// pods is what would run.
	pods workload.PodFields
	// change is what the policies come to for the template; nil if none is for it.
	change *compiler.Change

	// gang is what the gang of its pods is called, or empty.
	gang string
	// labels are those of the pods, with what the policies put there.
	labels labels.Set
	// reached are the nodes that the pods can use, once asked for.
	reached *reach
}

// report adds a finding of the present rule about a field of the template.
func (t *template) report(severity diag.Severity, message string, f workload.Field, below ...any) *diag.Finding {
	var at diag.Range
	if path, ok := t.t.PathOf(f, below...); ok {
		at = t.w.Source.At(path...)
	}
	return t.judgement.report(diag.Finding{Severity: severity, Subject: t.subject(), Range: at, Message: message})
}

// reportAt adds a finding about any field of the object.
func (t *template) reportAt(message string, path ...any) *diag.Finding {
	return t.judgement.report(diag.Finding{Subject: t.subject(), Range: t.w.Source.At(path...), Message: message})
}

// subject names the template for people.
func (t *template) subject() string {
	subject := t.w.Ref()
	if len(t.w.Templates) > 1 && t.t.Name != "" {
		subject += " (" + t.t.Name + ")"
	}
	return subject
}

// is reports whether the workload is of a built-in kind.
func (t *template) is(group, kind string) bool { return t.w.Group == group && t.w.Kind == kind }

// isDaemonSet reports whether the pods are one for each node.
func (t *template) isDaemonSet() bool { return t.is("apps", "DaemonSet") }

// replicas is how many pods the template has at a time, and whether that is known:
// what a scaler leaves at the least, else what the object says.
func (t *template) replicas() (int, bool) {
	if s := t.known.scalerOf(t.w); s != nil {
		return int(s.min), true
	}
	if t.t.Count == nil {
		return 0, false
	}
	return int(*t.t.Count), true
}

// eachSpread calls do for each spread constraint of the manifest that is still
// there as it was when the policies are compiled in.
func (t *template) eachSpread(do func(i int, c corev1.TopologySpreadConstraint)) {
	for i, c := range t.t.Pods.TopologySpreadConstraints {
		if slices.ContainsFunc(t.pods.TopologySpreadConstraints, func(o corev1.TopologySpreadConstraint) bool { return reflect.DeepEqual(c, o) }) {
			do(i, c)
		}
	}
}

// affinityTerm is one required term of the manifest's affinity between pods.
type affinityTerm struct {
	corev1.PodAffinityTerm
	field workload.Field
	index int
}

func (a affinityTerm) path() []any { return []any{requiredTerms, a.index} }

func (t *template) affinityTerms() []affinityTerm { return affinityTermsOf(t.t.Pods) }

func affinityTermsOf(pods workload.PodFields) []affinityTerm {
	var out []affinityTerm
	a := pods.Affinity
	if a == nil {
		return nil
	}
	if a.PodAffinity != nil {
		for i, term := range a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			out = append(out, affinityTerm{term, workload.PodAffinity, i})
		}
	}
	if a.PodAntiAffinity != nil {
		for i, term := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			out = append(out, affinityTerm{term, workload.PodAntiAffinity, i})
		}
	}
	return out
}

// looksAt reports whether the term looks at pods of the namespace.
func (t *template) looksAt(a corev1.PodAffinityTerm, namespace string) bool {
	if slices.Contains(a.Namespaces, namespace) || len(a.Namespaces) == 0 && a.NamespaceSelector == nil && namespace == t.w.Namespace {
		return true
	}
	if a.NamespaceSelector == nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(a.NamespaceSelector)
	if err != nil {
		return false
	}
	its, known := t.caps().Namespaces[namespace]
	return selector.Empty() || known && selector.Matches(labels.Set(its))
}

// reach is which known nodes the pods can use. It is worked out once for all
// templates that say the same of nodes: there may be a thousand of each.
type reach struct {
	// allowed are those that the node affinity allows, whatever their taints; usable
	// are those of them whose taints are tolerated.
	allowed, usable []*capability.Node
	keptOff         map[*capability.Node]bool
	// domains are the values that the usable nodes have for a label, and lacking the
	// names of those that have none, both once asked for.
	domains map[string]map[string]bool
	lacking map[string][]string
	// met is how many of the usable nodes meet a preferred term, by what it says.
	met map[string]int
}

// of sorts the usable nodes by a label.
func (r *reach) of(key string) {
	if r.domains[key] != nil {
		return
	}
	if r.domains == nil {
		r.domains, r.lacking = map[string]map[string]bool{}, map[string][]string{}
	}
	r.domains[key] = map[string]bool{}
	for _, n := range r.usable {
		if v, ok := n.Labels[key]; ok {
			r.domains[key][v] = true
		} else {
			r.lacking[key] = append(r.lacking[key], n.Name)
		}
	}
}

// allowedNodes returns the known nodes that the node affinity allows, whatever
// their taints.
func (t *template) allowedNodes() []*capability.Node { return t.reach().allowed }

// usableNodes returns the allowed nodes without taints that keep the pods off.
func (t *template) usableNodes() []*capability.Node { return t.reach().usable }

func (t *template) reach() *reach {
	if t.reached == nil {
		t.reached = t.reachBy(t.pods)
	}
	return t.reached
}

// reachBy is the reach by what pods say of nodes, with the tolerations of t.
func (t *template) reachBy(pods workload.PodFields) *reach {
	if !t.caps().NodesKnown {
		return &reach{}
	}
	key := fmt.Sprint(pods.NodeSelector, t.pods.Tolerations)
	if a := pods.Affinity; a != nil && a.NodeAffinity != nil {
		key += fmt.Sprint(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	if known := t.reaches[key]; known != nil {
		return known
	}
	r := &reach{keptOff: map[*capability.Node]bool{}}
	required := nodeaffinity.NewRequiredNodeAffinity(pods.NodeSelector, pods.Affinity)
	nodes := t.caps().Nodes
	for i := range nodes {
		n := &nodes[i]
		if ok, err := required.Match(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}}); err != nil || !ok {
			continue
		}
		r.allowed = append(r.allowed, n)
		if len(t.keptOffBy(n)) == 0 {
			r.usable = append(r.usable, n)
		} else {
			r.keptOff[n] = true
		}
	}
	t.reaches[key] = r
	return r
}

// domains returns the values that the usable nodes have for a label.
func (t *template) domains(key string) map[string]bool {
	r := t.reach()
	r.of(key)
	return r.domains[key]
}

// keptOffBy returns the taints of the node that keep the pods off for good; what
// says how a node fares at the moment does not count.
func (t *template) keptOffBy(n *capability.Node) []corev1.Taint {
	var out []corev1.Taint
	for _, taint := range n.Taints {
		if !isTransient(taint.Key) && !borne(t.pods.Tolerations, taint) && taint.Effect != corev1.TaintEffectPreferNoSchedule {
			out = append(out, taint)
		}
	}
	return out
}

// isTransient reports whether a taint says how a node fares at the moment.
func isTransient(key string) bool {
	return strings.HasPrefix(key, "node.kubernetes.io/") || strings.HasPrefix(key, "node.cloudprovider.kubernetes.io/")
}

// borne reports whether any of the tolerations tolerates the taint.
func borne(tolerations []corev1.Toleration, taint corev1.Taint) bool {
	return slices.ContainsFunc(tolerations, func(tol corev1.Toleration) bool { return tol.ToleratesTaint(klog.Logger{}, &taint, false) })
}

// selectsOwn reports whether the selector selects the template's own pods.
func (t *template) selectsOwn(s *metav1.LabelSelector) bool { return t.selectedBy(s) }

// selectedBy reports whether the selector selects the template's pods.
func (t *template) selectedBy(s *metav1.LabelSelector) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(t.labels)
}

// allLabels are those of the pods, with what the policies put there.
func (t *template) allLabels() labels.Set {
	if len(t.pods.Labels) == 0 {
		return t.t.Labels
	}
	all := labels.Set{}
	maps.Copy(all, t.t.Labels)
	maps.Copy(all, t.pods.Labels)
	return all
}

// podSpec is the whole pod spec as the API has it; nil where the kind does not
// carry one, or carries what is none.
func (t *template) podSpec() *corev1.PodSpec {
	if t.t.PodSpec == nil {
		return nil
	}
	v, _ := workload.Lookup(t.w.Object, t.t.PodSpec...)
	object, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	var spec corev1.PodSpec
	if runtime.DefaultUnstructuredConverter.FromUnstructured(object, &spec) != nil {
		return nil
	}
	return &spec
}
