package apply

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// node makes a node that no kubelet cares for.
func (l *lab) node(name string, taints ...corev1.Taint) {
	l.Helper()
	_, err := l.client.Kube.CoreV1().Nodes().Create(l.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Taints: taints, Unschedulable: true},
	}, metav1.CreateOptions{})
	if err != nil {
		l.Fatal(err)
	}
}

// taints are the node's taints but for those that say how it fares.
func (l *lab) taints(name string) string {
	l.Helper()
	node, err := l.client.Kube.CoreV1().Nodes().Get(l.Context(), name, metav1.GetOptions{})
	if err != nil {
		l.Fatal(err)
	}
	var list []string
	for _, t := range node.Spec.Taints {
		if !systemTaint(t.Key) {
			list = append(list, t.ToString())
		}
	}
	return strings.Join(list, " ")
}

func TestTaintsOfLivePools(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.applier(nil)
	one, two := l.namespace+"-1", l.namespace+"-2"
	stranger := corev1.Taint{Key: "stranger", Value: "x", Effect: corev1.TaintEffectNoSchedule}
	ours := corev1.Taint{Key: "pool", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}
	l.node(one, stranger)
	// The second node already has the taint: it is not ours there.
	l.node(two, ours)
	run := func(managed policy.ManagedBy, members ...string) Outcome {
		t.Helper()
		r := l.request(a)
		if members != nil {
			r.Plan.Nodes = []compiler.NodeEffect{{Pool: "gpu", ManagedBy: managed, Taint: &ours, Members: members}}
		}
		changes, findings, err := a.Prepare(t.Context(), r)
		if err != nil || findings.HasErrors() {
			t.Fatal(findings, err)
		}
		outcome, findings, err := a.Run(t.Context(), changes, RunOptions{})
		if err != nil || findings.HasErrors() {
			t.Fatal(findings, err)
		}
		return outcome
	}
	if run(policy.ManagedKarpenter, one, two); l.taints(one) != "stranger=x:NoSchedule" {
		t.Errorf("a node that karpenter makes was written: %s", l.taints(one))
	}
	if run(policy.ManagedLive, one, two); l.taints(one) != "stranger=x:NoSchedule pool=gpu:NoSchedule" {
		t.Errorf("taints are %s", l.taints(one))
	}
	if got := run(policy.ManagedLive, one, two); !got.Unchanged {
		t.Errorf("a second run: %+v", got)
	}
	r := l.state()
	if r.Latest() == nil {
		t.Fatal("no revision")
	}
	run(policy.ManagedLive)
	if got := l.taints(one) + " / " + l.taints(two); got != "stranger=x:NoSchedule / pool=gpu:NoSchedule" {
		t.Errorf("in the end the taints are %s", got)
	}
	node, err := l.client.Kube.CoreV1().Nodes().Get(t.Context(), one, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := node.Annotations[taintsAnnotation]; ok {
		t.Error("our annotation was left on the node")
	}
}

func TestTaintOfAnotherValueIsAConflict(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.applier(nil)
	l.node(l.namespace, corev1.Taint{Key: "pool", Value: "theirs", Effect: corev1.TaintEffectNoSchedule})
	r := l.request(a)
	r.Plan.Nodes = []compiler.NodeEffect{{
		Pool: "gpu", ManagedBy: policy.ManagedLive, Members: []string{l.namespace},
		Taint: &corev1.Taint{Key: "pool", Value: "gpu", Effect: corev1.TaintEffectNoSchedule},
	}}
	_, findings, err := a.Prepare(t.Context(), r)
	if err != nil || len(findings) != 1 || findings[0].Rule != "apply/taint-conflict" {
		t.Errorf("findings are %v, %v", findings, err)
	}
}
