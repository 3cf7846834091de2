package review

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate/engine"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// deployment is a workload whose pods have the label app.
func deployment(name string) *workload.Workload {
	return &workload.Workload{
		Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: name,
		Templates: []workload.Template{{Labels: map[string]string{"app": name}}},
	}
}

// spreadOver is what a policy makes of a workload: a spread of its own pods.
func spreadOver(w *workload.Workload, selected string, maxSkew int32) compiler.Change {
	return compiler.Change{Workload: w, After: workload.PodFields{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
		MaxSkew: maxSkew, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": selected}},
	}}}}
}

func compiled(workloads []*workload.Workload, changes ...compiler.Change) Compilation {
	return Compilation{Plan: &compiler.Plan{Changes: changes}, Workloads: workloads}
}

// TestEqualChangesAreOne holds that twelve workloads which gain the same spread, each
// of its own pods, are one entry, and that one which differs is another.
func TestEqualChangesAreOne(t *testing.T) {
	t.Parallel()
	var workloads []*workload.Workload
	var changes []compiler.Change
	var names []string
	for i := range 12 {
		w := deployment(fmt.Sprintf("w%02d", i))
		workloads, changes, names = append(workloads, w), append(changes, spreadOver(w, w.Name, 1)), append(names, w.Ref())
	}
	odd, foreign := deployment("odd"), deployment("foreign")
	workloads = append(workloads, odd, foreign)
	changes = append(changes, spreadOver(odd, "odd", 2), spreadOver(foreign, "w00", 1))
	got, err := fieldChanges(compiled(workloads), compiled(workloads, changes...), Places{})
	if err != nil {
		t.Fatal(err)
	}
	const own = "{labelSelector: its own pods, maxSkew: %d, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}"
	want := []FieldChange{
		{Field: "topologySpreadConstraints", Removed: []string{}, Added: []string{fmt.Sprintf(own, 1)}, Workloads: names},
		{Field: "topologySpreadConstraints", Removed: []string{}, Added: []string{fmt.Sprintf(own, 2)}, Workloads: []string{odd.Ref()}},
		{Field: "topologySpreadConstraints", Removed: []string{}, Added: []string{"{labelSelector: {matchLabels: {app: w00}}, maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}"}, Workloads: []string{foreign.Ref()}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if same, err := fieldChanges(compiled(workloads, changes...), compiled(workloads, changes...), Places{}); err != nil || len(same) > 0 {
		t.Errorf("the same twice differs: %v (%v)", same, err)
	}
}

// on is a pod on a node; tied are nodes that were as good.
func on(name, node string, tied ...string) simulate.Pod {
	p := simulate.Pod{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}, After: node, Verdict: simulate.Placed}
	if len(tied) > 0 {
		p.Attempt = &engine.Attempt{Choice: &engine.Choice{Tied: len(tied), TiedWith: tied}}
	}
	return p
}

func TestPaired(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		base, head []simulate.Pod
		want       []PodMove
	}{
		"nothing":            {[]simulate.Pod{on("a", "n1")}, []simulate.Pod{on("x", "n1")}, nil},
		"a move":             {[]simulate.Pod{on("a", "n1")}, []simulate.Pod{on("x", "n2")}, []PodMove{{Pod: "a", From: "n1", To: "n2"}}},
		"a tie":              {[]simulate.Pod{on("a", "n1")}, []simulate.Pod{on("x", "n2", "n1", "n3")}, []PodMove{{Pod: "a", From: "n1", To: "n2", Tie: true}}},
		"tied with others":   {[]simulate.Pod{on("a", "n1")}, []simulate.Pod{on("x", "n2", "n3")}, []PodMove{{Pod: "a", From: "n1", To: "n2"}}},
		"more pods":          {[]simulate.Pod{on("a", "n1")}, []simulate.Pod{on("x", "n1"), on("y", "n2")}, nil},
		"fewer pods":         {[]simulate.Pod{on("a", "n1"), on("b", "n2")}, []simulate.Pod{on("x", "n2")}, nil},
		"they change places": {[]simulate.Pod{on("a", "n1"), on("b", "n2")}, []simulate.Pod{on("b", "n1"), on("a", "n2")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, paired(test.base, test.head)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDeclarations(t *testing.T) {
	t.Parallel()
	at := func(line int) policy.Positions {
		return policy.Positions{"": diag.At(diag.Pos{File: "p.cue", Line: line}), "/reason": diag.At(diag.Pos{File: "p.cue", Line: line + 1})}
	}
	base := &policy.Placement{Policies: []policy.Policy{{Name: "a", Reason: "x", Folder: "/tmp/1", Positions: at(1)}, {Name: "gone", Positions: at(5)}, {Name: "same", Positions: at(7)}}}
	head := &policy.Placement{Policies: []policy.Policy{{Name: "a", Reason: "y", Folder: "/tmp/2", Positions: at(11)}, {Name: "new", Positions: at(15)}, {Name: "same", Positions: at(99)}}}
	got, err := Declarations(base, head, Places{})
	if err != nil {
		t.Fatal(err)
	}
	want := []Declaration{
		{Sort: "policy", Name: "a", Action: Changed, Range: diag.At(diag.Pos{File: "p.cue", Line: 11}), Values: []Value{{Path: "reason", Before: `"x"`, After: `"y"`, Range: diag.At(diag.Pos{File: "p.cue", Line: 12})}}},
		{Sort: "policy", Name: "gone", Action: Removed, Range: diag.At(diag.Pos{File: "p.cue", Line: 5})},
		{Sort: "policy", Name: "new", Action: Added, Range: diag.At(diag.Pos{File: "p.cue", Line: 15})},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestJoin holds that clusters that come out the same are one section.
func TestJoin(t *testing.T) {
	t.Parallel()
	one := func(cluster, workload string) Section {
		return Section{Clusters: []string{cluster}, Restarts: Restarts{Workloads: []string{workload}}}
	}
	got := Join([]Section{one("a", "x"), one("b", "y"), one("c", "x")})
	if len(got) != 2 || !cmp.Equal(got[0].Clusters, []string{"a", "c"}) || !cmp.Equal(got[1].Clusters, []string{"b"}) {
		t.Errorf("got %v", got)
	}
}
