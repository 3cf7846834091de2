// Package lint finds what people have written into pod templates by hand and
// that does something else than they think.
//
// It maps workloads, the plan for them and what is known of the cluster to
// findings. One file holds one rule; table.go lists them. The package must not
// know where workloads come from, nor how findings are printed.
package lint

import (
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Check runs every rule over the pod templates of a compilation, and returns
// what it finds, sorted. It judges what would run, the policies' part included,
// but speaks only of what the manifests say: what comes of the policies is the
// compiler's to report. The plan may be nil; then nothing is compiled in.
func Check(r compiler.Request, plan *compiler.Plan) diag.Findings {
	type key struct {
		w *workload.Workload
		i int
	}
	changes := map[key]*compiler.Change{}
	if plan != nil {
		for i := range plan.Changes {
			changes[key{plan.Changes[i].Workload, plan.Changes[i].Template}] = &plan.Changes[i]
		}
	}
	after := func(w *workload.Workload, i int) workload.PodFields {
		if change := changes[key{w, i}]; change != nil {
			return change.After
		}
		return w.Templates[i].Pods
	}
	var findings diag.Findings
	for _, w := range r.Workloads {
		for i := range w.Templates {
			t := &template{Request: &r, w: w, t: &w.Templates[i], pods: after(w, i), after: after, change: changes[key{w, i}]}
			for _, rule := range rules {
				t.rule = rule
				rule.check(t)
			}
			findings = append(findings, t.findings...)
		}
	}
	return findings.Sort()
}

// template is one pod template under examination.
type template struct {
	*compiler.Request
	w *workload.Workload
	t *workload.Template
	// pods is what would run.
	pods workload.PodFields
	// after returns what would run of any template.
	after func(*workload.Workload, int) workload.PodFields
	// change is what the policies come to for the template; nil if none is for it.
	change *compiler.Change

	rule     Rule
	findings diag.Findings
	// allowed are the nodes that the node affinity allows, once asked for.
	allowed []*capability.Node
	asked   bool
}

// report adds a finding of the present rule about a field of the template.
func (t *template) report(severity diag.Severity, message string, f workload.Field, below ...any) *diag.Finding {
	var at diag.Range
	if path, ok := t.t.PathOf(f, below...); ok {
		at = t.w.Source.At(path...)
	}
	subject := t.w.Ref()
	if len(t.w.Templates) > 1 && t.t.Name != "" {
		subject += " (" + t.t.Name + ")"
	}
	t.findings = append(t.findings, diag.Finding{Rule: t.rule.Name, Severity: severity, Subject: subject, Range: at, Message: message})
	return &t.findings[len(t.findings)-1]
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

func (a affinityTerm) path() []any {
	return []any{"requiredDuringSchedulingIgnoredDuringExecution", a.index}
}

func (t *template) affinityTerms() []affinityTerm {
	var out []affinityTerm
	a := t.t.Pods.Affinity
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

// allowedNodes returns the known nodes that the node affinity allows, whatever
// their taints.
func (t *template) allowedNodes() []*capability.Node {
	if t.asked || !t.Capabilities.NodesKnown {
		return t.allowed
	}
	t.asked = true
	required := nodeaffinity.NewRequiredNodeAffinity(t.pods.NodeSelector, t.pods.Affinity)
	for i := range t.Capabilities.Nodes {
		n := &t.Capabilities.Nodes[i]
		if ok, err := required.Match(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}}); err == nil && ok {
			t.allowed = append(t.allowed, n)
		}
	}
	return t.allowed
}

// usableNodes returns the allowed nodes without taints that keep the pods off.
func (t *template) usableNodes() []*capability.Node {
	var out []*capability.Node
	for _, n := range t.allowedNodes() {
		if len(t.keptOffBy(n)) == 0 {
			out = append(out, n)
		}
	}
	return out
}

// keptOffBy returns the taints of the node that keep the pods off for good; what
// says how a node fares at the moment does not count.
func (t *template) keptOffBy(n *capability.Node) []corev1.Taint {
	var out []corev1.Taint
	for _, taint := range n.Taints {
		transient := strings.HasPrefix(taint.Key, "node.kubernetes.io/") || strings.HasPrefix(taint.Key, "node.cloudprovider.kubernetes.io/")
		borne := slices.ContainsFunc(t.pods.Tolerations, func(tol corev1.Toleration) bool { return tol.ToleratesTaint(klog.Logger{}, &taint, false) })
		if !transient && !borne && taint.Effect != corev1.TaintEffectPreferNoSchedule {
			out = append(out, taint)
		}
	}
	return out
}

// selectsOwn reports whether the selector selects the template's own pods.
func (t *template) selectsOwn(s *metav1.LabelSelector) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(labels.Set(t.t.Labels))
}
