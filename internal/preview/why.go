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
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/condition"
)

// Explanation is why a pod is where it is, or nowhere.
type Explanation struct {
	Pod      *corev1.Pod
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
	// Mend is the smallest change that would let it fit; MendAll says that there was
	// time to look at all.
	Mend    []simulate.Edit
	MendAll bool
	// Choice is how its node was, or would be, chosen, and Would that node.
	Choice *engine.Choice
	Would  string
	// Notes are what else is to be known.
	Notes []string
}

// Gate is a scheduling gate of a pod.
type Gate struct {
	Name string
	// Ours says that it is opened by the gate controller of the bundled scheduler.
	Ours bool
	// Opener is who opens it, or why nobody does.
	Opener string
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
	world, _, err := NewWorld(ctx, r)
	if err != nil {
		return nil, err
	}
	defer world.Close()
	pod, ok := world.Pod(namespace, name)
	if !ok {
		return nil, fmt.Errorf("there is no pod %q in namespace %q%s", name, namespace, alikePods(r.Snapshot, namespace, name))
	}
	x := explainer{request: r, world: world, pools: pools}
	if pod.Spec.NodeName != "" {
		return x.running(ctx, pod)
	}
	return x.waiting(ctx, pod)
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
			e.Gates = append(e.Gates, x.gate(g.Name))
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
	t, err := x.world.Try(ctx, &free)
	if err != nil {
		return nil, err
	}
	e.Message, e.Causes = t.Message, x.causes(e.Workload, t.Rejections)
	e.Choice, e.Would = t.Choice, t.Node
	if t.Feasible == 0 {
		e.Nearest, e.Blockers = nearest(t)
		if e.Mend, e.MendAll, err = x.world.Mend(ctx, &free, mendBudget); err != nil {
			return nil, err
		}
	}
	if e.Verdict == simulate.Gated {
		return e, nil
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
	if p.Attempt != nil && p.Attempt.Message != "" {
		e.Message = p.Attempt.Message
	}
	if p.Verdict == simulate.Placed {
		e.Would = p.After
		e.Notes = append(e.Notes, "the scheduler would place it now: it has not come to it yet, or it is stuck; look whether it runs and what it logs")
	}
	return e, nil
}

// knownGates are the gates of well-known controllers, by prefix.
var knownGates = map[string]string{
	"kueue.x-k8s.io/": "Kueue, when its queue admits the workload",
	"grove.io/":       "Grove, when its gang can start",
}

// gate says who opens a gate.
func (x *explainer) gate(name string) Gate {
	g := Gate{Name: name, Ours: condition.Ours(name)}
	if !g.Ours {
		g.Opener = "not one of ours: whoever put it in has to open it"
		for prefix, who := range knownGates {
			if strings.HasPrefix(name, prefix) {
				g.Opener = "opened by " + who
			}
		}
		return g
	}
	for _, s := range x.request.Snapshot.Schedulers {
		if s.Bundled && s.Ready {
			g.Opener = "opened by scheduler " + s.Name + " when its condition holds"
			return g
		}
	}
	g.Opener = "nobody opens it: the bundled scheduler, which does, is not known to run here"
	return g
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
				causes = append(causes, Cause{Plugin: r.Plugin, Reason: reason, Unresolvable: r.Unresolvable, Nodes: map[string]int{}, Origins: Origins(plan, of, r.Plugin)})
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
