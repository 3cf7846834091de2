// Package lint finds mistakes in placement where they are written: in policies, in
// what manifests say by hand, in the configuration of schedulers, and against what
// is known of a cluster.
//
// It maps an Input to findings. A rule is one value of the table that Rules returns;
// one file holds what belongs together. What the compiler finds it does not look for
// again, but documents it too: Documented has every rule of the program. The package
// must not know where its input comes from, nor how findings are printed.
package lint

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Input is all that there is to judge. Rules that need more than there is are
// silent.
type Input struct {
	// Request is what was compiled: policies, workloads, and what is known of the
	// cluster.
	Request compiler.Request
	// Plan is what the policies come to; nil where nothing is compiled in.
	Plan *compiler.Plan
	// Others are the objects of the manifests that have no pod template, such as
	// budgets, quotas and configurations.
	Others []*workload.Object
	// Snapshot is the cluster; nil where no more of it is known than Request says.
	Snapshot *snapshot.Snapshot
}

// Check runs every rule, and returns what they find, sorted. What would run is
// judged, the policies' part included, but of the manifests it speaks only of what
// they say themselves: what comes of the policies is the compiler's to report.
func Check(in Input) diag.Findings { return CheckRules(Rules(), in) }

// CheckRules is Check with some of the rules alone.
func CheckRules(rules []Rule, in Input) diag.Findings {
	j := newJudgement(in)
	rules = slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool {
		// What is missing may be what answers a rule, but not for a scheduler's own
		// configuration.
		return !j.has(r.Needs) || in.Request.Incomplete && r.Area() != areaScheduler
	})
	// Template by template: places are looked up in one document after the other.
	for _, t := range j.templates {
		for _, j.rule = range rules {
			if j.rule.each != nil {
				j.rule.each(t)
			}
		}
	}
	for _, j.rule = range rules {
		if j.rule.run != nil {
			j.rule.run(j)
		}
	}
	return j.findings.Sort()
}

// judgement is one run over an Input.
type judgement struct {
	Input
	templates []*template
	// byNamespace has the same templates, and podsIn the pods of the snapshot.
	byNamespace map[string][]*template
	podsIn      map[string][]*corev1.Pod
	known       *objects
	// nodesBy says who makes nodes when pods are Pending; empty for nobody known.
	nodesBy string

	rule     Rule
	findings diag.Findings

	// reaches are the nodes for each that pods may say of them.
	reaches map[string]*reach

	// gangs are the templates by their gangs, once asked for.
	gangs map[string][]*template
	// allTaints are those of all nodes, and canGive is what each can give, both once
	// asked for.
	allTaints []corev1.Taint
	canGive   map[string]corev1.ResourceList

	configurations     diag.Findings
	configurationsRead bool
}

func newJudgement(in Input) *judgement {
	type key struct {
		w *workload.Workload
		i int
	}
	j := &judgement{Input: in, reaches: map[string]*reach{}, byNamespace: map[string][]*template{}, podsIn: map[string][]*corev1.Pod{}}
	changes := map[key]*compiler.Change{}
	if in.Plan != nil {
		for i := range in.Plan.Changes {
			changes[key{in.Plan.Changes[i].Workload, in.Plan.Changes[i].Template}] = &in.Plan.Changes[i]
		}
	}
	for _, w := range in.Request.Workloads {
		for i := range w.Templates {
			t := &template{judgement: j, w: w, t: &w.Templates[i], pods: w.Templates[i].Pods, change: changes[key{w, i}]}
			if t.change != nil {
				t.pods = t.change.After
			}
			t.labels, t.gang = t.allLabels(), gangOf(w, t.t, t.pods)
			j.templates = append(j.templates, t)
			j.byNamespace[w.Namespace] = append(j.byNamespace[w.Namespace], t)
		}
	}
	if in.Snapshot != nil {
		for _, p := range in.Snapshot.Pods {
			j.podsIn[p.Namespace] = append(j.podsIn[p.Namespace], p)
		}
	}
	j.known = readObjects(in.Others, in.Snapshot)
	j.nodesBy = j.onDemand()
	return j
}

// caps is what is known of the cluster.
func (j *judgement) caps() *capability.Capabilities { return &j.Request.Capabilities }

func (j *judgement) has(n Needs) bool {
	switch n {
	case Nodes:
		return j.caps().NodesKnown
	case Cluster:
		return j.Snapshot != nil
	case Files:
	}
	return true
}

// report adds a finding of the present rule. The severity is the rule's own where
// none is said.
func (j *judgement) report(f diag.Finding) *diag.Finding {
	f.Rule = j.rule.ID
	if f.Severity == "" {
		f.Severity = j.rule.Severity
	}
	j.findings = append(j.findings, f)
	return &j.findings[len(j.findings)-1]
}
