package apply

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

var gpuTaint = corev1.Taint{Key: "pool", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}

// labelled makes a node that no kubelet cares for.
func (l *lab) labelled(name string, labels map[string]string, taints ...corev1.Taint) {
	l.Helper()
	_, err := l.client.Kube.CoreV1().Nodes().Create(l.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: corev1.NodeSpec{Taints: taints, Unschedulable: true},
	}, metav1.CreateOptions{})
	if err != nil {
		l.Fatal(err)
	}
}

// marks are the node's taints and labels, but for those of the node's controllers,
// and our annotations if there are any.
func (l *lab) marks(name string) string {
	l.Helper()
	node, err := l.client.Kube.CoreV1().Nodes().Get(l.Context(), name, metav1.GetOptions{})
	if err != nil {
		l.Fatal(err)
	}
	list := strings.Fields(l.taints(name))
	for _, key := range slices.Sorted(maps.Keys(node.Labels)) {
		list = append(list, key+"="+node.Labels[key])
	}
	for _, key := range []string{taintsAnnotation, labelsAnnotation} {
		if _, ok := node.Annotations[key]; ok {
			list = append(list, "("+strings.TrimPrefix(key, "kubectl-sched.github.io/")+")")
		}
	}
	return strings.Join(list, " ")
}

// gpuPool is a live pool of the nodes, told by the label "of" of the lab.
func (l *lab) gpuPool(members ...string) compiler.NodeEffect {
	return compiler.NodeEffect{
		Pool: "gpu", ManagedBy: policy.ManagedLive, Taint: &gpuTaint, Labels: map[string]string{"class": "gpu"}, Members: members,
		Selector: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "of", Operator: corev1.NodeSelectorOpIn, Values: []string{l.namespace}}}}},
	}
}

// applyNodes applies what pools ask of their nodes.
func (l *lab) applyNodes(a *Applier, effects ...compiler.NodeEffect) Outcome {
	l.Helper()
	r := l.request(a)
	r.Plan.Nodes = effects
	changes, findings, err := a.Prepare(l.Context(), r)
	if err != nil || findings.HasErrors() {
		l.Fatal(findings, err)
	}
	outcome, findings, err := a.Run(l.Context(), changes, RunOptions{})
	if err != nil || findings.HasErrors() {
		l.Fatal(findings, err)
	}
	return outcome
}

// patchNode writes a node as somebody else.
func (l *lab) patchNode(name, patch string) {
	l.Helper()
	if _, err := l.client.Kube.CoreV1().Nodes().Patch(l.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "stranger"}); err != nil {
		l.Fatal(err)
	}
}

// drifts are what status finds wrong with nodes.
func (l *lab) drifts(a *Applier) []string {
	l.Helper()
	status, err := a.Status(l.Context(), l.state())
	if err != nil {
		l.Fatal(err)
	}
	var list []string
	for _, d := range status.Drifts {
		list = append(list, strings.ReplaceAll(d.Subject+" "+d.Field+": "+d.Message, l.namespace, "X"))
	}
	return list
}

func TestLabelsAndTaintsOfLivePools(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.applier(nil)
	one, two := l.namespace+"-1", l.namespace+"-2"
	of := map[string]string{"of": l.namespace}
	l.labelled(one, map[string]string{"of": l.namespace, "theirs": "x"}, corev1.Taint{Key: "stranger", Effect: corev1.TaintEffectNoExecute})
	// The second one has the label already: it is not ours there.
	l.labelled(two, map[string]string{"of": l.namespace, "class": "gpu"})

	l.applyNodes(a, l.gpuPool(one, two))
	want := map[string]string{
		one: "stranger:NoExecute pool=gpu:NoSchedule class=gpu of=" + l.namespace + " theirs=x (taints) (labels)",
		two: "pool=gpu:NoSchedule class=gpu of=" + l.namespace + " (taints)",
	}
	for name, marks := range want {
		if got := l.marks(name); got != marks {
			t.Errorf("%s has %s, want %s", name, got, marks)
		}
	}
	if got := l.applyNodes(a, l.gpuPool(one, two)); !got.Unchanged {
		t.Errorf("a second run: %+v", got)
	}
	if got := l.drifts(a); got != nil {
		t.Errorf("drifts: %v", got)
	}

	// A node that joins later is seen, and caught by the next run.
	three := l.namespace + "-3"
	l.labelled(three, of)
	// Somebody changes one of ours, and takes another one away.
	l.patchNode(one, `{"metadata":{"labels":{"class":"cpu"}}}`)
	l.patchNode(two, `{"spec":{"taints":null}}`)
	wantDrifts := []string{
		"Node X-1 .metadata.labels[class]: the label class=gpu of pool \"gpu\" has become label class=cpu; apply again",
		"Node X-2 .spec.taints: the taint pool=gpu:NoSchedule of pool \"gpu\" is gone; apply again",
		"Node X-3 .spec.taints: it joined pool \"gpu\" after revision 1 and lacks the taint pool=gpu:NoSchedule; apply again",
		"Node X-3 .metadata.labels[class]: it joined pool \"gpu\" after revision 1 and lacks the label class=gpu; apply again",
	}
	if d := cmp.Diff(wantDrifts, l.drifts(a)); d != "" {
		t.Errorf("drifts (-want +got):\n%s", d)
	}
	l.applyNodes(a, l.gpuPool(one, two, three))
	want[three] = "pool=gpu:NoSchedule class=gpu of=" + l.namespace + " (taints) (labels)"
	for name, marks := range want {
		if got := l.marks(name); got != marks {
			t.Errorf("after another run %s has %s, want %s", name, got, marks)
		}
	}
	if got := l.drifts(a); got != nil {
		t.Errorf("drifts after another run: %v", got)
	}

	// What somebody made of ours in the end is his.
	l.patchNode(three, `{"metadata":{"labels":{"class":"mine"}}}`)
	l.delete(a)
	for name, marks := range map[string]string{
		one:   "stranger:NoExecute of=" + l.namespace + " theirs=x",
		two:   "class=gpu of=" + l.namespace,
		three: "class=mine of=" + l.namespace,
	} {
		if got := l.marks(name); got != marks {
			t.Errorf("in the end %s has %s, want %s", name, got, marks)
		}
	}
}

func TestMarksOfOthersAreTakenOverOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.applier(nil)
	before := "pool=theirs:NoSchedule class=cpu of=" + l.namespace
	l.labelled(l.namespace, map[string]string{"of": l.namespace, "class": "cpu"}, corev1.Taint{Key: "pool", Value: "theirs", Effect: corev1.TaintEffectNoSchedule})
	r := l.request(a)
	r.Plan.Nodes = []compiler.NodeEffect{l.gpuPool(l.namespace)}
	_, findings, err := a.Prepare(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var rules []string
	for _, f := range findings {
		rules = append(rules, f.Rule)
	}
	if d := cmp.Diff([]string{"apply/taint-conflict", "apply/label-conflict"}, rules); d != "" {
		t.Errorf("rules (-want +got):\n%s", d)
	}
	if got := l.marks(l.namespace); got != before {
		t.Errorf("a conflict wrote: %s", got)
	}
	a.ForceConflicts = true
	l.applyNodes(a, l.gpuPool(l.namespace))
	if got := l.marks(l.namespace); got != "pool=gpu:NoSchedule class=gpu of="+l.namespace+" (taints) (labels)" {
		t.Errorf("taken over it has %s", got)
	}
	// What was there before us comes back.
	l.delete(a)
	if got := l.marks(l.namespace); got != before {
		t.Errorf("in the end it has %s, and had %s", got, before)
	}
}

// Somebody writes the node between our reading it and our writing it.
func TestNodeWrittenMeanwhile(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.labelled(l.namespace, map[string]string{"of": l.namespace})
	var writes atomic.Int32
	a := l.applier(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/nodes/"+l.namespace) {
				if n := writes.Add(1); n <= 3 {
					l.patchNode(l.namespace, fmt.Sprintf(`{"metadata":{"labels":{"stranger":"%d"}},"spec":{"taints":[{"key":"stranger","value":"%d","effect":"NoSchedule"}]}}`, n, n))
				}
			}
			return next.RoundTrip(r)
		})
	})
	l.applyNodes(a, l.gpuPool(l.namespace))
	if got := l.marks(l.namespace); got != "stranger=3:NoSchedule pool=gpu:NoSchedule class=gpu of="+l.namespace+" stranger=3 (taints) (labels)" {
		t.Errorf("it has %s", got)
	}
	if writes.Load() < 4 {
		t.Errorf("there were %d writes", writes.Load())
	}
}

// A node that somebody writes all the time is a finding, and everything else is done.
// The run after it does the rest.
func TestNodeThatIsNeverWritten(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	busy, calm := l.namespace+"-1", l.namespace+"-2"
	for _, name := range []string{busy, calm} {
		l.labelled(name, map[string]string{"of": l.namespace})
	}
	var quiet atomic.Bool
	var writes atomic.Int32
	a := l.applier(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/nodes/"+busy) && !quiet.Load() {
				l.patchNode(busy, fmt.Sprintf(`{"metadata":{"annotations":{"stranger":"%d"}}}`, writes.Add(1)))
			}
			return next.RoundTrip(r)
		})
	})
	a.retries = &fewWaits
	u := l.create(deployment("web"))
	r := l.request(a, matching(tolerate("gpu"), "web"))
	r.Plan.Nodes = []compiler.NodeEffect{l.gpuPool(busy, calm)}
	changes, findings, err := a.Prepare(t.Context(), r)
	if err != nil || findings.HasErrors() {
		t.Fatal(findings, err)
	}
	outcome, findings, err := a.Run(t.Context(), changes, RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := "Node " + busy + ": somebody else changed it each time before our write came, 30 times; see in its managedFields who does, and run the command again when that has ended"
	if len(findings) != 1 || findings[0].Rule != "apply/refused" || findings[0].Severity != diag.Error || findings[0].String() != want {
		t.Errorf("findings are %v,\nwant %s", findings, want)
	}
	if outcome.Nodes != 1 || outcome.Updated != 1 || l.state().Latest().State != Failed {
		t.Errorf("outcome is %+v, and the revision %s", outcome, l.state().Latest().State)
	}
	marked, unmarked := "pool=gpu:NoSchedule class=gpu of="+l.namespace+" (taints) (labels)", "of="+l.namespace
	if got := l.marks(calm); got != marked {
		t.Errorf("the other node has %s, want %s", got, marked)
	}
	if got := l.marks(busy); got != unmarked {
		t.Errorf("the busy node has %s, want %s", got, unmarked)
	}
	if keys := tolerationKeys(l.get(u)); keys != "gpu" {
		t.Errorf("the workload's tolerations are %q", keys)
	}

	// What is to be taken away waits for it in the same way, and the set with it.
	quiet.Store(true)
	l.applyNodes(a, l.gpuPool(busy, calm))
	if got := l.marks(busy); got != marked {
		t.Errorf("after another run the busy node has %s, want %s", got, marked)
	}
	quiet.Store(false)
	changes, findings, err = a.PrepareDelete(t.Context(), l.state())
	if err != nil || findings.HasErrors() {
		t.Fatal(findings, err)
	}
	if _, findings, err = a.Run(t.Context(), changes, RunOptions{Forget: true}); err != nil || len(findings) != 1 || findings[0].String() != want {
		t.Errorf("in the end: %v, %v", findings, err)
	}
	if got := l.marks(calm); got != unmarked || !l.state().Exists() {
		t.Errorf("in the end the other node has %s, and the set is there: %v", got, l.state().Exists())
	}
	quiet.Store(true)
	l.delete(a)
	if got := l.marks(busy); got != unmarked || l.state().Exists() {
		t.Errorf("in the very end the busy node has %s, and the set is there: %v", got, l.state().Exists())
	}
}

func TestUndoOfNodes(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.applier(nil)
	one, two := l.namespace+"-1", l.namespace+"-2"
	l.labelled(one, map[string]string{"of": l.namespace})
	l.applyNodes(a, l.gpuPool(one))
	other := l.gpuPool(one)
	other.Taint, other.Labels = nil, map[string]string{"class": "other", "more": "x"}
	l.applyNodes(a, other)
	if got := l.marks(one); got != "class=other more=x of="+l.namespace+" (labels)" {
		t.Errorf("after the second revision it has %s", got)
	}
	// A node that has come in the meantime is of the pool as it was, too.
	l.labelled(two, map[string]string{"of": l.namespace})
	state := l.state()
	to, err := state.UndoTarget(0)
	if err != nil {
		t.Fatal(err)
	}
	changes, findings, err := a.PrepareUndo(t.Context(), state, to)
	if err != nil || findings.HasErrors() {
		t.Fatal(findings, err)
	}
	if _, findings, err := a.Run(t.Context(), changes, RunOptions{}); err != nil || findings.HasErrors() {
		t.Fatal(findings, err)
	}
	for _, name := range []string{one, two} {
		if got := l.marks(name); got != "pool=gpu:NoSchedule class=gpu of="+l.namespace+" (taints) (labels)" {
			t.Errorf("after the undo %s has %s", name, got)
		}
	}
	comparisons, err := changes.Comparisons()
	if err != nil || len(comparisons) != 2 {
		t.Errorf("%d comparisons, %v", len(comparisons), err)
	}
}

// A pool within another one has its own taint in the place of the outer one's.
func TestYieldedTaint(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.applier(nil)
	one, two := l.namespace+"-1", l.namespace+"-2"
	l.labelled(one, map[string]string{"of": l.namespace})
	l.labelled(two, map[string]string{"of": l.namespace})
	outer := l.gpuPool(one, two)
	outer.Yielded = []string{two}
	inner := l.gpuPool(two)
	inner.Pool, inner.Labels = "inner", nil
	inner.Selector = []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{two}}}}}
	inner.Taint = &corev1.Taint{Key: "pool", Value: "inner", Effect: corev1.TaintEffectNoSchedule}
	l.applyNodes(a, outer, inner)
	if got := l.taints(one) + " " + l.taints(two); got != "pool=gpu:NoSchedule pool=inner:NoSchedule" {
		t.Errorf("taints are %s", got)
	}
	if got := l.drifts(a); got != nil {
		t.Errorf("drifts: %v", got)
	}
	l.delete(a)
	if got := l.marks(one) + l.marks(two); strings.Contains(got, "pool") {
		t.Errorf("in the end there is %s", got)
	}
}

// Books and revisions of before there were labels.
func TestOldBooks(t *testing.T) {
	t.Parallel()
	set := Set{Name: "shop", Namespace: "kube-system"}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{
		taintsAnnotation: fmt.Sprintf(`{%q:[{"key":"pool","value":"gpu","effect":"NoSchedule"}],"other":[{"key":"x","effect":"NoExecute"}]}`, set.Label()),
	}}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{gpuTaint, {Key: "x", Effect: corev1.TaintEffectNoExecute}}}}
	b := booksOf(node)
	if h := b.of(set, Mark{Taint: gpuTaint}); h == nil || h.before != nil || !h.mark.is(Mark{Taint: gpuTaint}) {
		t.Fatalf("books are %+v", b)
	}
	after, err := changed(node, set, []NodeChange{{Taint: gpuTaint, Action: Delete}})
	if err != nil {
		t.Fatal(err)
	}
	if len(after.Spec.Taints) != 1 || after.Annotations[taintsAnnotation] != `{"other":[{"key":"x","effect":"NoExecute"}]}` {
		t.Errorf("it is %+v, %v", after.Spec.Taints, after.Annotations)
	}
	var item NodeItem
	if err := json.Unmarshal([]byte(`{"name":"n","uid":"u","pool":"gpu","taint":{"key":"pool","value":"gpu","effect":"NoSchedule"}}`), &item); err != nil {
		t.Fatal(err)
	}
	if !item.mark().is(Mark{Taint: gpuTaint}) {
		t.Errorf("it is %+v", item)
	}
	for _, damaged := range []string{"", "[]", "{", `{"a":1}`} {
		node.Annotations = map[string]string{taintsAnnotation: damaged, labelsAnnotation: damaged}
		if b := booksOf(node); len(b) != 0 {
			t.Errorf("of %q the books are %v", damaged, b)
		}
	}
}
