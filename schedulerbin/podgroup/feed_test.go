package podgroup

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"
)

func groupOf(name string, uid types.UID, minCount int32) *schedulingv1beta1.PodGroup {
	return &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid},
		Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
			Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: minCount},
		}},
	}
}

// TestInformerOfAFeed holds that an informer sees what was in the feed before it
// came and, at last, whatever was done to the feed since, in any order and number.
func TestInformerOfAFeed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := newFeed()
		model := map[string]string{}
		step := func(i int) {
			name := fmt.Sprint("group-", rapid.IntRange(0, 4).Draw(t, "name"))
			if rapid.Bool().Draw(t, "remove") {
				f.remove(types.NamespacedName{Namespace: "ns", Name: name})
				delete(model, name)
				return
			}
			uid := types.UID(fmt.Sprint("uid-", rapid.IntRange(0, 1).Draw(t, "uid")))
			f.set(groupOf(name, uid, int32(i)))
			model[name] = fmt.Sprint(uid, i)
		}
		before := rapid.IntRange(0, 20).Draw(t, "before")
		for i := range before {
			step(i)
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		informer := cache.NewSharedIndexInformer(f, &schedulingv1beta1.PodGroup{}, 0, cache.Indexers{})
		go informer.RunWithContext(ctx)
		for i := range rapid.IntRange(0, 40).Draw(t, "after") {
			step(before + i)
		}
		var last map[string]string
		err := wait.PollUntilContextTimeout(ctx, time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
			last = map[string]string{}
			for _, o := range informer.GetStore().List() {
				group := o.(*schedulingv1beta1.PodGroup)
				last[group.Name] = fmt.Sprint(group.UID, group.Spec.SchedulingPolicy.Gang.MinCount)
			}
			return informer.HasSynced() && fmt.Sprint(last) == fmt.Sprint(model), nil
		})
		if err != nil {
			t.Fatalf("the informer has %v, the feed %v", last, model)
		}
	})
}

// TestFeedReplacesByUID holds that an object of another UID is never taken for a
// change of the one that had its name.
func TestFeedReplacesByUID(t *testing.T) {
	t.Parallel()
	f := newFeed()
	f.set(groupOf("g", "old", 1))
	f.set(groupOf("g", "old", 2))
	f.set(groupOf("g", "new", 2))
	events, _, err := f.after(1)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range events {
		group := e.Object.(*schedulingv1beta1.PodGroup)
		got = append(got, fmt.Sprint(e.Type, " ", group.UID, " ", group.ResourceVersion))
	}
	want := []string{"ADDED old 2", "MODIFIED old 3", "DELETED old 4", "ADDED new 5"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestFeedForgets holds that a watcher that is too far behind is told to list.
func TestFeedForgets(t *testing.T) {
	t.Parallel()
	f := newFeed()
	for i := range feedLog + 2 {
		f.set(groupOf("g", "uid", int32(i)))
	}
	if _, err := f.Watch(metav1.ListOptions{ResourceVersion: "1"}); !apierrors.IsResourceExpired(err) {
		t.Errorf("watch from a version that is forgotten: %v", err)
	}
	watcher, err := f.Watch(metav1.ListOptions{ResourceVersion: fmt.Sprint(f.version - 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	if event := <-watcher.ResultChan(); event.Object.(*schedulingv1beta1.PodGroup).ResourceVersion != fmt.Sprint(f.version) {
		t.Errorf("got %v", event)
	}
}
