package gates

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/condition"
)

// peerKey is which pods are looked for.
type peerKey struct {
	selector string
	ready    bool
}

// peersOf judges a condition about other pods.
func (p *pass) peersOf(pod *corev1.Pod, want *condition.Peers) verdict {
	v := verdict{reason: ReasonPeers}
	key := peerKey{want.Selector, want.Ready}
	found, ok := p.peers[key]
	if !ok {
		selector, err := want.LabelSelector()
		if err == nil {
			found = map[types.UID]bool{}
			err = cache.ListAllByNamespace(p.pods.GetIndexer(), p.namespace, selector, func(o any) {
				if peer, ok := o.(*corev1.Pod); ok && alive(peer) && (!want.Ready || podutil.IsPodReady(peer)) {
					found[peer.UID] = true
				}
			})
		}
		if err != nil {
			v.note = fmt.Sprintf("peers cannot be counted: %v", err)
			return v
		}
		p.peers[key] = found
	}
	n := len(found)
	if found[pod.UID] {
		n--
	}
	state := "exist"
	if want.Ready {
		state = "are ready"
	}
	v.open = n >= want.Min
	v.note = fmt.Sprintf("%d of %d other pods %q %s", n, want.Min, want.Selector, state)
	return v
}

// alive reports whether a pod counts as a peer.
func alive(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// approval judges a condition about a person.
func approval(pod *corev1.Pod, gate string) verdict {
	if by := condition.DeniedBy(pod.Annotations, gate); by != "" {
		return verdict{reason: ReasonDenied, note: fmt.Sprintf("%s denied it", by)}
	}
	if by := condition.ApprovedBy(pod.Annotations, gate); by != "" {
		return verdict{open: true, note: fmt.Sprintf("%s approved it", by)}
	}
	return verdict{reason: ReasonApproval, note: "nobody has approved it"}
}

// notBefore judges a condition about a moment.
func (p *pass) notBefore(c *condition.Condition) verdict {
	at, err := c.NotBeforeTime()
	if err != nil {
		return verdict{reason: ReasonUnreadable, note: err.Error()}
	}
	return p.until(at, ReasonTime, fmt.Sprintf("it opens at %s", c.NotBefore))
}

// window judges a condition about a time of the week.
func (p *pass) window(w *condition.Window) verdict {
	at, err := w.Next(p.now)
	if err != nil {
		return verdict{reason: ReasonUnreadable, note: err.Error()}
	}
	return p.until(at, ReasonWindow, fmt.Sprintf("its window opens at %s", at.Format(time.RFC3339)))
}

func (p *pass) until(at time.Time, reason, note string) verdict {
	return verdict{open: !p.now.Before(at), wake: at, reason: reason, note: note}
}
