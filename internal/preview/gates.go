package preview

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/condition"
)

// Gate is a scheduling gate of a pod.
type Gate struct {
	Name string
	// Ours says that it is opened by the gate controller of the bundled scheduler.
	Ours bool
	// Opener is who opens it, or why nobody does.
	Opener string
	// Waits is what a gate of ours waits for, and how that stands; empty for others.
	Waits string
	// For is how long the pod had been there when the snapshot was taken; 0 if that is
	// not known.
	For time.Duration
}

// knownGates are the gates of well-known controllers: what their names begin with,
// who opens them and when, and what is in the name of the controller's Deployment.
var knownGates = []struct{ prefix, who, deployment string }{
	{"kueue.x-k8s.io/", "Kueue, when its queue admits the workload", "kueue"},
	{"grove.io/", "Grove, when its gang can start", "grove"},
}

// gate says who opens a gate, and whether anybody does.
func (x *explainer) gate(pod *corev1.Pod, name string) Gate {
	g := Gate{Name: name, Ours: condition.Ours(name)}
	if taken, made := x.request.Snapshot.Taken, pod.CreationTimestamp.Time; !taken.IsZero() && !made.IsZero() {
		g.For = taken.Sub(made)
	}
	if !g.Ours {
		g.Opener = "not one of ours, and nobody is known who opens it: whoever put it in has to, or the pod waits for ever"
		for _, known := range knownGates {
			if !strings.HasPrefix(name, known.prefix) {
				continue
			}
			g.Opener = "opened by " + known.who
			if !x.runs(known.deployment) {
				g.Opener = fmt.Sprintf("for %s; no Deployment of it is in the cluster, so nobody opens it", known.who)
			}
		}
		return g
	}
	g.Waits = x.waits(pod, name)
	for _, s := range x.request.Snapshot.Schedulers {
		if s.Bundled && s.Ready {
			g.Opener = "opened by scheduler " + s.Name + " when its condition holds"
			return g
		}
	}
	g.Opener = "nobody opens it: the bundled scheduler, which does, is not known to run here"
	return g
}

// runs reports whether a Deployment with replicas has the word in its name.
func (x *explainer) runs(word string) bool {
	for _, d := range x.request.Snapshot.Deployments {
		if strings.Contains(d.Name, word) && (d.Spec.Replicas == nil || *d.Spec.Replicas > 0) {
			return true
		}
	}
	return false
}

// waits says what a gate of ours waits for, and how that stands in the snapshot.
func (x *explainer) waits(pod *corev1.Pod, gate string) string {
	c, err := condition.Of(pod.Annotations, gate)
	if err != nil {
		return "its condition cannot be read: " + err.Error()
	}
	switch c.Kind() {
	case condition.KindPeers:
		return x.peers(pod, c.Peers)
	case condition.KindObject:
		text := fmt.Sprintf("waits for %s %s", c.Object.Kind, c.Object.Name)
		if c.Object.Path != "" && c.Object.Value != nil {
			text += fmt.Sprintf(" with %s = %s", c.Object.Path, *c.Object.Value)
		}
		return text
	case condition.KindQuota:
		return x.room(pod, c.Quota.Name)
	case condition.KindApproval:
		return "waits until somebody approves it: kubectl sched gates approve"
	case condition.KindNotBefore:
		return "waits until " + c.NotBefore
	case condition.KindWindow:
		return "waits until its weekly window opens"
	}
	return ""
}

// peers says how many peers there are.
func (x *explainer) peers(pod *corev1.Pod, want *condition.Peers) string {
	selector, err := want.LabelSelector()
	if err != nil {
		return err.Error()
	}
	have := 0
	for _, other := range x.request.Snapshot.Pods {
		if other.Namespace == pod.Namespace && other.Name != pod.Name && selector.Matches(labels.Set(other.Labels)) && (!want.Ready || ready(other)) {
			have++
		}
	}
	what := "pods"
	if want.Ready {
		what = "ready pods"
	}
	return fmt.Sprintf("waits for %d other %s with %s, of which there are %d", want.Min, what, want.Selector, have)
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
