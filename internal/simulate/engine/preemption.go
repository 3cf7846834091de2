package engine

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// preemptionName is the name of completePreemption in a profile, where it stands
// in the place of DefaultPreemption.
const preemptionName = "CompletePreemption"

// completePreemption is DefaultPreemption without chance. Upstream begins at a
// random node, stops when it has enough candidates, and takes whichever of equal
// ones a map gives first.
type completePreemption struct {
	*defaultpreemption.DefaultPreemption
	handle  fwk.Handle
	seed    seed
	decider Decider // nil: the seed breaks ties
	now     func() time.Time
}

// newPreemption returns the factory of completePreemption.
func newPreemption(seed seed, decider Decider, now func() time.Time) func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		upstream, err := defaultpreemption.New(ctx, args, handle, feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate))
		if err != nil {
			return nil, err
		}
		p := &completePreemption{DefaultPreemption: upstream, handle: handle, seed: seed, decider: decider, now: now}
		upstream.MoreImportantVictim = p.moreImportant
		upstream.Evaluator = preemption.NewEvaluator(defaultpreemption.Name, handle, p, upstream.Executor)
		return p, nil
	}
}

// Name returns the name of the plugin.
func (*completePreemption) Name() string { return preemptionName }

// GetOffsetAndNumCandidates has every node looked at, from the first on.
func (*completePreemption) GetOffsetAndNumCandidates(nodes int32) (int32, int32) { return 0, nodes }

// CandidatesToVictimsMap returns the victims on each node, among which upstream
// chooses by its criteria. The last of those is the latest start of a pod. Starts
// are whole seconds, so that a fraction of one, which comes of the seed, orders
// the nodes that are equal in everything and changes nothing else.
func (p *completePreemption) CandidatesToVictimsMap(candidates []preemption.Candidate) map[string]*extenderv1.Victims {
	victims := p.DefaultPreemption.CandidatesToVictimsMap(candidates)
	for node, v := range victims {
		fraction := p.fraction(node)
		pods := make([]*corev1.Pod, len(v.Pods))
		for i, pod := range v.Pods {
			copied := *pod
			start := metav1.NewTime(p.started(pod).Truncate(time.Second).Add(fraction))
			copied.Status.StartTime = &start
			pods[i] = &copied
		}
		victims[node] = &extenderv1.Victims{Pods: pods, NumPDBViolations: v.NumPDBViolations}
	}
	return victims
}

// fraction is the part of a second that orders a node among its equals: the latest
// is chosen.
func (p *completePreemption) fraction(node string) time.Duration {
	const last = time.Second - 1
	if p.decider != nil && p.decider.Room() == node {
		return last
	}
	return time.Duration(p.seed.of(node) % uint64(last))
}

// started is when the pod started. One that has not is taken for the latest of all,
// as upstream takes the present for its start.
func (p *completePreemption) started(pod *corev1.Pod) time.Time {
	if pod.Status.StartTime == nil {
		return p.now().Add(time.Second)
	}
	return pod.Status.StartTime.Time
}

// moreImportant is upstream's order of victims on a node. Those that are equal in it
// come as the seed orders them: upstream leaves them in the order in which they came
// to the node, and takes those that have not started for equal, too.
func (p *completePreemption) moreImportant(a, b preemption.Victim) bool {
	first, second := preemption.MoreImportantVictim(a, b), preemption.MoreImportantVictim(b, a)
	bothNew := isNew(a) && isNew(b) && a.Priority() == b.Priority() && a.Type() == b.Type() && len(a.Pods()) == len(b.Pods())
	if first != second && !bothNew || len(a.Pods()) == 0 || len(b.Pods()) == 0 {
		return first
	}
	one, other := a.Pods()[0].GetPod(), b.Pods()[0].GetPod()
	if p.decider != nil {
		if p.decider.Evict(one) != p.decider.Evict(other) {
			return p.decider.Evict(other)
		}
		first, known := p.decider.Came(one)
		if second, both := p.decider.Came(other); known && both {
			// Those that have not started it turns round: whichever is asked about first
			// has the earlier present for its start.
			return first < second != bothNew
		}
	}
	return p.seed.of(key(one).String()) < p.seed.of(key(other).String())
}

// isNew reports whether none of the victim's pods has started.
func isNew(v preemption.Victim) bool {
	return !slices.ContainsFunc(v.Pods(), func(p fwk.PodInfo) bool { return p.GetPod().Status.StartTime != nil })
}
