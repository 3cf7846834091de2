package contain

import (
	"context"
	"reflect"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// Each fake is one optional interface. Its methods call On with their name, and
// return something that is not the zero value.

type fake struct{}

func (fake) Name() string { return "Fake" }

// on sets On in every fake that the plugin embeds.
func on(plugin fwk.Plugin, hook func(method string)) {
	value := reflect.ValueOf(plugin).Elem()
	for i := range value.NumField() {
		if field := value.Field(i).FieldByName("On"); field.IsValid() {
			field.Set(reflect.ValueOf(hook))
		}
	}
}

func said() *fwk.Status { return fwk.NewStatus(fwk.Unschedulable, "the fake's reason") }

type FakePreEnqueue struct{ On func(string) }

func (f FakePreEnqueue) PreEnqueue(context.Context, *v1.Pod) *fwk.Status {
	f.On("PreEnqueue")
	return said()
}

type FakeQueueSort struct{ On func(string) }

func (f FakeQueueSort) Less(fwk.QueuedEntityInfo, fwk.QueuedEntityInfo) bool {
	f.On("Less")
	return true
}

type FakeEnqueueExtensions struct{ On func(string) }

func (f FakeEnqueueExtensions) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	f.On("EventsToRegister")
	return []fwk.ClusterEventWithHint{
		{
			Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add},
			QueueingHintFn: func(klog.Logger, *v1.Pod, any, any) (fwk.QueueingHint, error) {
				f.On("QueueingHintFn")
				return fwk.QueueSkip, nil
			},
			PreQueueingHintFn: func(klog.Logger, any, any) (fwk.PreQueueingHintResult, error) {
				f.On("PreQueueingHintFn")
				return fwk.PreQueueingHintResult{}, nil
			},
		},
		{Event: fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.Delete}},
	}, nil
}

type FakeSign struct{ On func(string) }

func (f FakeSign) SignPod(context.Context, *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	f.On("SignPod")
	return []fwk.SignFragment{{Key: "fake", Value: 1}}, said()
}

type FakePreFilter struct{ On func(string) }

func (f FakePreFilter) PreFilter(context.Context, fwk.CycleState, *v1.Pod, []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	f.On("PreFilter")
	return &fwk.PreFilterResult{NodeNames: sets.New("a")}, said()
}

func (f FakePreFilter) PreFilterExtensions() fwk.PreFilterExtensions {
	f.On("PreFilterExtensions")
	return fakeExtensions(f)
}

type fakeExtensions struct{ On func(string) }

func (f fakeExtensions) AddPod(context.Context, fwk.CycleState, *v1.Pod, fwk.PodInfo, fwk.NodeInfo) *fwk.Status {
	f.On("AddPod")
	return said()
}

func (f fakeExtensions) RemovePod(context.Context, fwk.CycleState, *v1.Pod, fwk.PodInfo, fwk.NodeInfo) *fwk.Status {
	f.On("RemovePod")
	return said()
}

func (f fakeExtensions) NormalizeScore(context.Context, fwk.CycleState, *v1.Pod, fwk.NodeScoreList) *fwk.Status {
	f.On("NormalizeScore")
	return said()
}

func (f fakeExtensions) NormalizePlacementScore(context.Context, fwk.PodGroupCycleState, fwk.PodGroupInfo, []fwk.PlacementScore) *fwk.Status {
	f.On("NormalizePlacementScore")
	return said()
}

type FakeFilter struct{ On func(string) }

func (f FakeFilter) Filter(context.Context, fwk.CycleState, *v1.Pod, fwk.NodeInfo) *fwk.Status {
	f.On("Filter")
	return said()
}

type FakePostFilter struct{ On func(string) }

func (f FakePostFilter) PostFilter(context.Context, fwk.CycleState, *v1.Pod, fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	f.On("PostFilter")
	return &fwk.PostFilterResult{}, said()
}

type FakePodGroupPostFilter struct{ On func(string) }

func (f FakePodGroupPostFilter) PodGroupPostFilter(context.Context, fwk.PodGroupCycleState, fwk.PodGroupInfo, fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	f.On("PodGroupPostFilter")
	return &fwk.PodGroupPostFilterResult{}, said()
}

type FakePreScore struct{ On func(string) }

func (f FakePreScore) PreScore(context.Context, fwk.CycleState, *v1.Pod, []fwk.NodeInfo) *fwk.Status {
	f.On("PreScore")
	return said()
}

type FakeScore struct{ On func(string) }

func (f FakeScore) Score(context.Context, fwk.CycleState, *v1.Pod, fwk.NodeInfo) (int64, *fwk.Status) {
	f.On("Score")
	return 42, said()
}

func (f FakeScore) ScoreExtensions() fwk.ScoreExtensions {
	f.On("ScoreExtensions")
	return fakeExtensions(f)
}

type FakeReserve struct{ On func(string) }

func (f FakeReserve) Reserve(context.Context, fwk.CycleState, *v1.Pod, string) *fwk.Status {
	f.On("Reserve")
	return said()
}

func (f FakeReserve) Unreserve(context.Context, fwk.CycleState, *v1.Pod, string) { f.On("Unreserve") }

type FakePermit struct{ On func(string) }

func (f FakePermit) Permit(context.Context, fwk.CycleState, *v1.Pod, string) (*fwk.Status, time.Duration) {
	f.On("Permit")
	return said(), time.Minute
}

type FakePreBind struct{ On func(string) }

func (f FakePreBind) PreBindPreFlight(context.Context, fwk.CycleState, *v1.Pod, string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	f.On("PreBindPreFlight")
	return &fwk.PreBindPreFlightResult{AllowParallel: true}, said()
}

func (f FakePreBind) PreBind(context.Context, fwk.CycleState, *v1.Pod, string) *fwk.Status {
	f.On("PreBind")
	return said()
}

type FakeBind struct{ On func(string) }

func (f FakeBind) Bind(context.Context, fwk.CycleState, *v1.Pod, string) *fwk.Status {
	f.On("Bind")
	return said()
}

type FakePostBind struct{ On func(string) }

func (f FakePostBind) PostBind(context.Context, fwk.CycleState, *v1.Pod, string) { f.On("PostBind") }

type FakePlacementGenerate struct{ On func(string) }

func (f FakePlacementGenerate) GeneratePlacements(context.Context, fwk.PodGroupCycleState, fwk.PodGroupInfo, *fwk.Placement) (*fwk.GeneratePlacementsResult, *fwk.Status) {
	f.On("GeneratePlacements")
	return &fwk.GeneratePlacementsResult{}, said()
}

type FakePlacementScore struct{ On func(string) }

func (f FakePlacementScore) ScorePlacement(context.Context, fwk.PlacementCycleState, fwk.PodGroupInfo, *fwk.PodGroupAssignments) (int64, *fwk.Status) {
	f.On("ScorePlacement")
	return 42, said()
}

func (f FakePlacementScore) PlacementScoreExtensions() fwk.PlacementScoreExtensions {
	f.On("PlacementScoreExtensions")
	return fakeExtensions(f)
}
