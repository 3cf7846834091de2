package simulate

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
)

// TestRestart holds that a restart makes every pod of a workload anew, also of one
// that the simulation has made itself, and one that was scaled.
func TestRestart(t *testing.T) {
	t.Parallel()
	replicas := int32(3)
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}}
	set.Spec.Replicas, set.Spec.Template = &replicas, template("db", "1")
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: set.Spec.Template.Labels}
	web := deployment("web", 3, "1")
	for name, object := range map[string]runtime.Object{"StatefulSet": set, "Deployment": web} {
		ref := Ref{Kind: name, Namespace: "shop", Name: "db"}
		if name == "Deployment" {
			ref = Ref{Kind: name, Namespace: web.Namespace, Name: web.Name}
		}
		w := newWorld(t, &snapshot.Snapshot{Nodes: zones(1)})
		if err := w.Take(t.Context(), Rollout{Object: object}, Scale{Workload: ref, Replicas: 2}, Scale{Workload: ref, Replicas: 4}); err != nil {
			t.Fatal(err)
		}
		var before string
		for range 2 {
			if err := w.Take(t.Context(), Restart{Workload: ref}); err != nil {
				t.Fatal(err)
			}
			pods, at := 0, ""
			for _, p := range w.Outcome().Pods {
				if p.Workload != ref {
					continue
				}
				if pods++; pods == 1 {
					at = p.Pod.Annotations[restartedAt]
				}
				if has := p.Pod.Annotations[restartedAt]; p.Verdict != Placed || has != at || has == before {
					t.Errorf("%s: %s is %s, restarted at %q", name, p.Pod.Name, p.Verdict, has)
				}
			}
			if pods != 4 {
				t.Errorf("%s has %d pods", name, pods)
			}
			before = at
		}
	}
	w := newWorld(t, &snapshot.Snapshot{Nodes: zones(1)})
	if err := w.Take(t.Context(), Restart{Workload: Ref{"Deployment", "shop", "web"}}); err == nil {
		t.Error("what is not there was restarted")
	}
}
