package preview

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate/engine"
)

// Explanation is why a pod is where it is, or nowhere.
type Explanation struct {
	// Pod is nil where a workload is explained that has no pods; Wanted is then how
	// many it asks for.
	Pod      *corev1.Pod
	Wanted   int
	Workload simulate.Ref
	Verdict  simulate.Verdict
	// Gates are what holds a pod that no scheduler looks at.
	Gates []Gate
	// Message is what the scheduler says of it, in its words.
	Message string
	// Causes are why nodes do not take it, the most frequent first.
	Causes []Cause
	// Nearest is the node that the fewest plugins object to, with their objections;
	// empty where no node is near.
	Nearest  string
	Blockers []engine.Blocker
	// Mended says that a change was looked for which would let it fit. Mend is the
	// smallest; MendAll says that there was time to look at all.
	Mended  bool
	Mend    []simulate.Edit
	MendAll bool
	// Gang is the gang that it waits with; nil if it is in none.
	Gang *Gang
	// Cannot are the pools that can get nodes and would not help.
	Cannot []Cannot
	// Pool and NewNodes are the pool whose new nodes would take it, and how many, for
	// NeedsNodes.
	Pool     string
	NewNodes int
	// Skipped are the nodes on which the DaemonSet that it belongs to runs no pods.
	Skipped []simulate.Skip
	// Nodes is how many nodes there are.
	Nodes int
	// Lost are its preferences that do not decide where it goes.
	Lost []Lost
	// Choice is how its node was, or would be, chosen, and Would that node.
	Choice *engine.Choice
	Would  string
	// Notes are what else is to be known.
	Notes []string
}

// Cause is one reason why nodes do not take a pod.
type Cause struct {
	Plugin string
	Reason string
	// Unresolvable says that evicting pods would not help.
	Unresolvable bool
	// Nodes counts the nodes in each pool; "" for those in none.
	Nodes   map[string]int
	Origins []compiler.Origin
}

// Count is how many nodes the cause is about.
func (c Cause) Count() int {
	n := 0
	for _, in := range c.Nodes {
		n += in
	}
	return n
}

// mendBudget is how long the smallest change is looked for.
const mendBudget = 5 * time.Second

// Explain says why the pod is where it is, or nowhere. The error says that there is
// no such pod in the snapshot.
func Explain(ctx context.Context, r Request, namespace, name string, pools Pools) (*Explanation, error) {
	world, known, err := newWorld(ctx, r, nil)
	if err != nil {
		return nil, err
	}
	defer world.Close()
	pod, ok := world.Pod(namespace, name)
	if !ok {
		return nil, missingPod(r.Snapshot, namespace, name)
	}
	x := explainer{request: r, world: world, pools: pools, profiles: known.profiles}
	explain := x.waiting
	if pod.Spec.NodeName != "" {
		explain = x.running
	}
	e, err := explain(ctx, pod)
	if err == nil {
		e.Nodes = len(r.Snapshot.Nodes)
		e.Skipped, _ = world.Skipped(e.Workload)
	}
	return e, err
}

// ExplainWithoutPods says why the workload has no pods.
func ExplainWithoutPods(ctx context.Context, r Request, w simulate.Workload) (*Explanation, error) {
	world, _, err := newWorld(ctx, r, nil)
	if err != nil {
		return nil, err
	}
	defer world.Close()
	e := &Explanation{Workload: w.Ref, Wanted: int(w.Replicas), Nodes: len(r.Snapshot.Nodes)}
	if skipped, everywhere := world.Skipped(w.Ref); everywhere {
		e.Skipped, e.Wanted = skipped, e.Nodes-len(skipped)
	}
	if e.Wanted > 0 {
		e.Notes = append(e.Notes, fmt.Sprintf("the scheduler only places pods that there are; whether a quota or an admission webhook refuses these stands in the events of namespace %s", w.Namespace))
	}
	return e, nil
}

// missingPod says why there is no such pod to the scheduler.
func missingPod(s *snapshot.Snapshot, namespace, name string) error {
	if slices.ContainsFunc(s.Pods, func(p *corev1.Pod) bool { return p.Namespace == namespace && p.Name == name }) {
		return fmt.Errorf("pod %q in namespace %q has ended: it takes no room, and no scheduler looks at it any more", name, namespace)
	}
	return fmt.Errorf("there is no pod %q in namespace %q%s", name, namespace, alikePods(s, namespace, name))
}

// alikePods names pods of other namespaces that are called so.
func alikePods(s *snapshot.Snapshot, namespace, name string) string {
	var in []string
	for _, p := range s.Pods {
		if p.Name == name && p.Namespace != namespace {
			in = append(in, p.Namespace)
		}
	}
	if len(in) == 0 {
		return ""
	}
	slices.Sort(in)
	return "; there is one in " + strings.Join(in, ", ")
}

type explainer struct {
	request Request
	world   *simulate.World
	pools   Pools
	// profiles are those that the world's scheduler has.
	profiles []engine.Profile
}

// running explains why the pod is on its node and not on another.
func (x *explainer) running(ctx context.Context, pod *corev1.Pod) (*Explanation, error) {
	e := &Explanation{Pod: pod, Workload: x.world.WorkloadOf(pod), Verdict: simulate.Placed}
	t, err := x.world.Try(ctx, pod)
	if err != nil {
		return e, x.unserved(e, err)
	}
	e.Choice, e.Would = t.Choice, t.Node
	e.Causes = x.causes(e.Workload, t.Rejections)
	if e.Lost, err = x.lost(ctx, e, pod, t); err != nil {
		return nil, err
	}
	if blockers := t.Blockers[pod.Spec.NodeName]; len(blockers) > 0 {
		e.Blockers = blockers
		e.Notes = append(e.Notes, "its own node would not take it today: rules of scheduling are not applied to pods that run")
	}
	return e, nil
}

// unserved makes a verdict of the error that nobody serves the pod's scheduler.
func (x *explainer) unserved(e *Explanation, err error) error {
	if e.Pod.Spec.NodeName != "" {
		e.Notes = append(e.Notes, fmt.Sprintf("scheduler %q, which placed it, is not known to run: how it chose cannot be said", e.Pod.Spec.SchedulerName))
		return nil
	}
	return err
}

// waiting explains why the pod has no node.
func (x *explainer) waiting(ctx context.Context, pod *corev1.Pod) (*Explanation, error) {
	e := &Explanation{Pod: pod, Workload: x.world.WorkloadOf(pod)}
	switch {
	case len(pod.Spec.SchedulingGates) > 0:
		e.Verdict = simulate.Gated
		for _, g := range pod.Spec.SchedulingGates {
			e.Gates = append(e.Gates, x.gate(pod, g.Name))
		}
	case !x.world.Serves(pod.Spec.SchedulerName):
		e.Verdict = simulate.Unserved
		e.Notes = append(e.Notes, fmt.Sprintf("no scheduler that is known to run serves the name %q; known are: %s", pod.Spec.SchedulerName, strings.Join(x.world.SchedulerNames(), ", ")))
		return e, nil
	}
	for _, s := range x.request.Snapshot.Schedulers {
		if slices.Contains(s.Profiles, pod.Spec.SchedulerName) && !s.Ready {
			e.Notes = append(e.Notes, fmt.Sprintf("scheduler %s serves it, but none of its replicas is ready: look at its pods", s.Name))
		}
	}
	free := *pod
	free.Spec.SchedulingGates = nil
	alone, err := x.world.Try(ctx, &free)
	if err != nil {
		return nil, err
	}
	x.noteUnknownGang(e)
	e.Notes = append(e.Notes, x.elasticQuotas(pod)...)
	if e.Verdict == simulate.Gated {
		return e, x.fill(ctx, e, &free, alone)
	}
	// With all that waits, and whole gangs.
	if err := x.world.Take(ctx, simulate.Pending{}); err != nil {
		return nil, err
	}
	p, ok := x.world.Became(pod.Namespace, pod.Name)
	if !ok {
		return e, nil
	}
	e.Verdict = p.Verdict
	e.Gang = x.gang(pod)
	if p.Verdict == simulate.Placed {
		if err := x.fill(ctx, e, &free, alone); err != nil {
			return nil, err
		}
		e.Would = p.After
		e.Notes = append(e.Notes, x.late(pod))
		return e, nil
	}
	return e, x.held(ctx, e, &free, alone, p)
}

// held explains why a pod has no node that is looked at, and that gets none although
// alone it would have been as alone says.
func (x *explainer) held(ctx context.Context, e *Explanation, free *corev1.Pod, alone engine.Trial, p simulate.Pod) error {
	now := alone
	if alone.Feasible > 0 {
		// Others that wait took its place.
		var err error
		if now, err = x.world.Try(ctx, free); err != nil {
			return err
		}
		if now.Feasible == 0 {
			e.Notes = append(e.Notes, fmt.Sprintf("alone it would fit node %s: pods that wait as well, and come before it, take the room", alone.Node))
		} else {
			now = alone // it is the gang that does not fit
		}
	}
	if err := x.fill(ctx, e, free, now); err != nil {
		return err
	}
	if p.Attempt != nil && p.Attempt.Message != "" {
		e.Message = p.Attempt.Message
	}
	if p.Verdict != simulate.Waiting {
		return nil
	}
	if e.Would != "" {
		// It is its gang that does not fit: what counts is in the way of the others.
		e.Causes = x.causesOfGang(e.Pod, e.Workload)
	}
	e.Would, e.Choice, e.Lost = "", nil, nil
	return x.nodes(ctx, e, free)
}

// nodes says whether new nodes would help, and of those pools that would not why.
func (x *explainer) nodes(ctx context.Context, e *Explanation, free *corev1.Pod) error {
	note, err := x.customProfile(ctx, free)
	if err != nil {
		return err
	}
	if note != "" {
		e.Notes = append(e.Notes, note)
	}
	if err := x.world.Grow(ctx, x.request.Pools); err != nil {
		return err
	}
	p, ok := x.world.Became(free.Namespace, free.Name)
	if ok && p.Verdict == simulate.NeedsNodes {
		e.Verdict, e.Pool = p.Verdict, p.Pool
		for _, g := range x.world.Outcome().Growth {
			if g.Pool == p.Pool {
				e.NewNodes = g.Nodes
			}
		}
		return nil
	}
	e.Cannot, err = x.autoscaler(ctx, free)
	return err
}

// fill takes in what a trial says.
func (x *explainer) fill(ctx context.Context, e *Explanation, free *corev1.Pod, t engine.Trial) (err error) {
	e.Message, e.Causes = t.Message, x.causes(e.Workload, t.Rejections)
	e.Choice, e.Would = t.Choice, t.Node
	if t.Feasible == 0 {
		e.Nearest, e.Blockers = nearest(t)
		e.Mended = true
		e.Mend, e.MendAll, err = x.world.Mend(ctx, free, mendBudget)
		return err
	}
	e.Lost, err = x.lost(ctx, e, free, t)
	return err
}

// patience is how long a scheduler may leave a pod alone at most: by then upstream
// tries again also pods that nothing has happened for (backend/queue,
// DefaultPodMaxInUnschedulablePodsDuration).
const patience = 5 * time.Minute

// late says why a pod that fits has no node.
func (x *explainer) late(pod *corev1.Pod) string {
	const usual = "the scheduler would place it now: it has not come to it yet, or it is stuck; look whether it runs and what it logs"
	taken := x.request.Snapshot.Taken
	i := slices.IndexFunc(x.request.Snapshot.Schedulers, func(s snapshot.Scheduler) bool { return slices.Contains(s.Profiles, pod.Spec.SchedulerName) })
	if i < 0 || taken.IsZero() || pod.CreationTimestamp.IsZero() {
		return usual
	}
	s := x.request.Snapshot.Schedulers[i]
	if !s.Ready {
		return "it fits, but nobody looks at it: scheduler " + s.Name + " does not lead"
	}
	last, said := pod.CreationTimestamp.Time, ""
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.LastTransitionTime.After(last) {
			last, said = c.LastTransitionTime.Time, c.Reason
		}
	}
	idle := taken.Sub(last).Round(time.Second)
	switch {
	case idle < patience:
		return usual
	case said == "":
		return fmt.Sprintf("scheduler %s runs and holds its lease, but has said nothing of the pod in the %s since it was made: it is stuck; see what it logs, and restart it", s.Name, idle)
	}
	return fmt.Sprintf("scheduler %s runs and holds its lease, and found no node %s ago (%s); by now there is one: unless it has tried since, it is stuck; see what it logs, and restart it", s.Name, idle, said)
}

// causes groups rejections by plugin and reason, and counts nodes by pool.
func (x *explainer) causes(of simulate.Ref, rejections []engine.Rejection) []Cause {
	return causesOf(x.request.Plan, of, rejections, x.request.Snapshot.Nodes, x.pools)
}

// Causes are why the pod of a result is not placed.
func (r *Result) Causes(p simulate.Pod, pools Pools) []Cause {
	if p.Attempt == nil {
		return nil
	}
	return causesOf(r.Request.Plan, p.Workload, p.Attempt.Rejections, r.Nodes, pools)
}

func causesOf(plan *compiler.Plan, of simulate.Ref, rejections []engine.Rejection, nodes []*corev1.Node, pools Pools) []Cause {
	in := make(map[string]string, len(nodes))
	for _, n := range nodes {
		in[n.Name] = pools.Of(n)
	}
	var causes []Cause
	index := map[[2]string]int{}
	for _, r := range rejections {
		for _, reason := range r.Reasons {
			k := [2]string{r.Plugin, reason}
			i, ok := index[k]
			if !ok {
				i = len(causes)
				index[k] = i
				causes = append(causes, Cause{Plugin: r.Plugin, Reason: reason, Unresolvable: r.Unresolvable, Nodes: map[string]int{}, Origins: Rejecting(plan, of, r.Plugin)})
			}
			for _, node := range r.Nodes {
				pool, known := in[node]
				if !known {
					pool = pools[node] // it has gone since
				}
				causes[i].Nodes[pool]++
			}
		}
	}
	slices.SortStableFunc(causes, func(a, b Cause) int { return cmp.Compare(b.Count(), a.Count()) })
	return causes
}

// nearest returns the node that the fewest plugins object to; of several the first
// by name. It is empty where no plugin objects to single nodes.
func nearest(t engine.Trial) (string, []engine.Blocker) {
	best := ""
	for _, name := range slices.Sorted(maps.Keys(t.Blockers)) {
		if best == "" || len(t.Blockers[name]) < len(t.Blockers[best]) {
			best = name
		}
	}
	return best, t.Blockers[best]
}
