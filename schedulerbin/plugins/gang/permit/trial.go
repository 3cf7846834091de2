package permit

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/room"
)

// enough is how many nodes that fit are compared for a member of a plan, as many as
// upstream compares at least (schedule_one.go, minFeasibleNodesToFind).
const enough = 100

// trialKey marks the cycles of a trial for the plugin's own PreFilter.
const trialKey fwk.StateKey = Name + "/trial"

type trial struct{}

// Clone returns the mark.
func (t trial) Clone() fwk.StateData { return t }

func isTrial(state fwk.CycleState) bool {
	_, err := state.Read(trialKey)
	return err == nil
}

// found is what came of a trial.
type found struct {
	plan map[types.UID]string // the node of each member that has one
	why  string               // why the first of the others has none
}

// try finds nodes for the members, one after the other, each where the profile's
// plugins like it best beside those before it. It does so on copies of the nodes:
// the scheduler's snapshot gives them to its plugins until the trial is over, and is
// then as it was. (DefaultPreemption uses it so in a pod's cycle too; cycles come one
// at a time.) Devices and volumes are not reserved in a trial.
func (p *Plugin) try(ctx context.Context, open members) (result found, err error) {
	snapshot := p.handle.MutableSnapshotSharedLister()
	if err := snapshot.StartMutations(); err != nil {
		return found{}, err
	}
	defer func() { err = errors.Join(err, snapshot.EndMutations()) }()
	result.plan = map[types.UID]string{}
	var failed *corev1.Pod
	for _, member := range open {
		if failed != nil && alike(member, failed) {
			continue // there is less room than there was
		}
		node, why, err := p.place(ctx, member)
		if err != nil {
			return found{}, fmt.Errorf("member %s: %w", member.Name, err)
		}
		if node == "" {
			if failed = member; result.why == "" {
				result.why = why
			}
			continue
		}
		placed := member.DeepCopy()
		placed.Spec.NodeName = node
		info, err := framework.NewPodInfo(placed)
		if err != nil {
			return found{}, fmt.Errorf("member %s: %w", member.Name, err)
		}
		if err := snapshot.AddPod(info, node); err != nil {
			return found{}, fmt.Errorf("member %s: %w", member.Name, err)
		}
		result.plan[member.UID] = node
	}
	return result, nil
}

// alike reports whether two members have the same needs.
func alike(a, b *corev1.Pod) bool {
	return equality.Semantic.DeepEqual(a.Labels, b.Labels) && equality.Semantic.DeepEqual(a.Annotations, b.Annotations) && equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

// place returns the node that the profile's plugins like best for pod as the nodes
// are now, or why there is none.
func (p *Plugin) place(ctx context.Context, pod *corev1.Pod) (node, why string, err error) {
	state, result, status := p.begin(ctx, pod)
	if status.IsRejected() {
		return "", status.Message(), nil
	}
	if !status.IsSuccess() {
		return "", "", status.AsError()
	}
	nodes, err := p.handle.MutableSnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return "", "", err
	}
	diagnosis := framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}
	var feasible []fwk.NodeInfo
	for _, info := range nodes {
		if !result.AllNodes() && !result.NodeNames.Has(info.Node().Name) {
			diagnosis.NodeToStatus.Set(info.Node().Name, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "node(s) are not among those that the pod may be on"))
			continue
		}
		status := p.handle.RunFilterPluginsWithNominatedPods(ctx, state, pod, info)
		switch {
		case status.IsSuccess():
			feasible = append(feasible, info)
		case status.IsRejected():
			diagnosis.NodeToStatus.Set(info.Node().Name, status)
		default:
			return "", "", status.AsError()
		}
		if len(feasible) == enough {
			break
		}
	}
	switch len(feasible) {
	case 0:
		return "", (&framework.FitError{Pod: pod, NumAllNodes: len(nodes), Diagnosis: diagnosis}).Error(), nil
	case 1:
		return feasible[0].Node().Name, "", nil
	}
	node, err = p.best(ctx, state, pod, feasible)
	return node, "", err
}

// best returns the first of the nodes with the highest score.
func (p *Plugin) best(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, feasible []fwk.NodeInfo) (string, error) {
	if status := p.handle.RunPreScorePlugins(ctx, state, pod, feasible); !status.IsSuccess() {
		return "", status.AsError()
	}
	scores, status := p.handle.RunScorePlugins(ctx, state, pod, feasible)
	if !status.IsSuccess() {
		return "", status.AsError()
	}
	highest := scores[0]
	for _, score := range scores[1:] {
		if score.TotalScore > highest.TotalScore {
			highest = score
		}
	}
	return highest.Name, nil
}

// begin begins a cycle of a trial.
func (p *Plugin) begin(ctx context.Context, pod *corev1.Pod) (fwk.CycleState, *fwk.PreFilterResult, *fwk.Status) {
	state := framework.NewCycleState()
	state.Write(trialKey, trial{})
	result, status, _ := p.runner.RunPreFilterPlugins(ctx, state, pod)
	return state, result, status
}

// fits reports whether pod fits on the node as it is now.
func (p *Plugin) fits(ctx context.Context, pod *corev1.Pod, node string) (bool, error) {
	info, ok := p.node(node)
	if !ok {
		return false, nil // it is gone
	}
	state, result, status := p.begin(ctx, pod)
	if status.IsSuccess() {
		if !result.AllNodes() && !result.NodeNames.Has(node) {
			return false, nil
		}
		status = p.handle.RunFilterPluginsWithNominatedPods(ctx, state, pod, info)
	}
	if !status.IsSuccess() && !status.IsRejected() {
		return false, status.AsError()
	}
	return status.IsSuccess(), nil
}

// node returns the node as it is now, and whether there is one.
func (p *Plugin) node(name string) (fwk.NodeInfo, bool) {
	info, err := p.handle.SnapshotSharedLister().NodeInfos().Get(name)
	return info, err == nil
}

// couldBeOn returns the nodes that one of the members could be on as far as its node
// selector, its affinity and the nodes' taints say: the gang's pool.
func (p *Plugin) couldBeOn(ctx context.Context, open members) (sets.Set[string], error) {
	nodes, err := p.handle.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return nil, err
	}
	names := sets.New[string]()
	var last *corev1.Pod
	for _, member := range open {
		if last != nil && room.SameNodes(member, last) {
			continue
		}
		last = member
		reaches := room.CouldBeOn(klog.FromContext(ctx), member)
		for _, info := range nodes {
			if could, err := reaches(info.Node()); could || err != nil { // in doubt it could
				names.Insert(info.Node().Name)
			}
		}
	}
	return names, nil
}

// matches reports whether pod could be on the node. In doubt it could.
func matches(logger klog.Logger, pod *corev1.Pod, node *corev1.Node) bool {
	could, err := room.CouldBeOn(logger, pod)(node)
	return could || err != nil
}
