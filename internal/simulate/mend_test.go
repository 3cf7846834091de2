package simulate

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
)

func lone(cpu string, edit func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", UID: types.UID("p"), Labels: map[string]string{"app": "p"}},
		Spec:       template("p", cpu).Spec, Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	p.Spec.SchedulerName = "default-scheduler"
	if edit != nil {
		edit(p)
	}
	return p
}

func TestMend(t *testing.T) {
	t.Parallel()
	gpu := node("gpu", "a", "8")
	gpu.Spec.Taints = []corev1.Taint{{Key: "pool", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	nodes := []*corev1.Node{gpu, node("small", "b", "2")}
	tests := map[string]struct {
		pod  *corev1.Pod
		want []string
	}{
		"fits":       {lone("1", nil), nil},
		"taint":      {lone("4", nil), []string{"tolerate pool=gpu:NoSchedule"}},
		"too large":  {lone("10", nil), []string{"tolerate pool=gpu:NoSchedule", "free 2 more cpu on a node, or ask for so much less"}},
		"selector":   {lone("1", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} }), []string{"do without the node selector disk=ssd, or label a node so"}},
		"impossible": {lone("10", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd", "arch": "arm"} }), nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, &snapshot.Snapshot{Taken: taken, Nodes: nodes, Pods: []*corev1.Pod{test.pod}})
			edits, all, err := w.Mend(t.Context(), test.pod, time.Minute)
			if err != nil || !all {
				t.Fatal(all, err)
			}
			var got []string
			for _, e := range edits {
				got = append(got, e.Text)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
