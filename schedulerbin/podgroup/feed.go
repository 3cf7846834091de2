package podgroup

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// feedLog is how many changes a feed keeps for watchers. One that falls further
// behind lists again, as with an API server.
const feedLog = 4096

// feed is a set of PodGroups that can be listed and watched as if an API server
// held them. Its resource versions are its own. It may be used from several
// goroutines at once.
type feed struct {
	mu      sync.Mutex
	objects map[types.NamespacedName]*schedulingv1beta1.PodGroup
	version uint64
	log     []watch.Event // the last changes; the last of them has version
	changed chan struct{} // closed at the next change
}

var _ cache.ListerWatcherWithContext = &feed{}

func newFeed() *feed {
	return &feed{objects: map[types.NamespacedName]*schedulingv1beta1.PodGroup{}, version: 1, changed: make(chan struct{})}
}

// set adds group or puts it in the place of the one of its name. The feed keeps
// group, and gives it a resource version.
func (f *feed) set(group *schedulingv1beta1.PodGroup) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
	before := f.objects[name]
	if before != nil && before.UID != group.UID {
		// Another object of the same name: nobody may take it for the old one.
		f.append(watch.Deleted, before.DeepCopy())
		before = nil
	}
	f.objects[name] = group
	if before == nil {
		f.append(watch.Added, group)
	} else {
		f.append(watch.Modified, group)
	}
}

// remove takes away the group called name, if there is one.
func (f *feed) remove(name types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	group := f.objects[name]
	if group == nil {
		return
	}
	delete(f.objects, name)
	f.append(watch.Deleted, group.DeepCopy())
}

// append records a change, for callers that hold f.mu.
func (f *feed) append(kind watch.EventType, group *schedulingv1beta1.PodGroup) {
	f.version++
	group.ResourceVersion = strconv.FormatUint(f.version, 10)
	f.log = append(f.log, watch.Event{Type: kind, Object: group})
	if len(f.log) > feedLog {
		f.log = slices.Clone(f.log[len(f.log)-feedLog/2:])
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

// List returns all groups, ordered by name.
func (f *feed) List(options metav1.ListOptions) (runtime.Object, error) {
	return f.ListWithContext(context.Background(), options)
}

// ListWithContext is List: nothing in it waits.
func (f *feed) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := &schedulingv1beta1.PodGroupList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatUint(f.version, 10)}}
	names := slices.SortedFunc(maps.Keys(f.objects), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, name := range names {
		list.Items = append(list.Items, *f.objects[name])
	}
	return list, nil
}

// Watch returns the changes after the resource version that options name.
func (f *feed) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return f.WatchWithContext(context.Background(), options)
}

// WatchWithContext returns the changes after the resource version that options
// name, until ctx is over or the watch is stopped. The error says that the list
// is too old where changes since then are forgotten.
func (f *feed) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	since, err := strconv.ParseUint(options.ResourceVersion, 10, 64)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("resource version %q: %v", options.ResourceVersion, err))
	}
	if _, _, err := f.after(since); err != nil {
		return nil, err
	}
	results := make(chan watch.Event)
	watcher := watch.NewProxyWatcher(results)
	go func() {
		defer close(results)
		for {
			events, changed, err := f.after(since)
			if err != nil {
				return // the reader lists again
			}
			for _, event := range events {
				select {
				case results <- event:
				case <-watcher.StopChan():
					return
				case <-ctx.Done():
					return
				}
			}
			since += uint64(len(events))
			select {
			case <-changed:
			case <-watcher.StopChan():
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return watcher, nil
}

// after returns the changes after version since, and a channel that is closed at
// the one after these.
func (f *feed) after(since uint64) ([]watch.Event, <-chan struct{}, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	oldest := f.version - uint64(len(f.log))
	if since < oldest || since > f.version {
		return nil, nil, apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", since, oldest))
	}
	return slices.Clone(f.log[since-oldest:]), f.changed, nil
}

// IsWatchListSemanticsUnSupported tells a reflector to list and then watch: a
// feed sends no bookmarks.
func (f *feed) IsWatchListSemanticsUnSupported() bool { return true }
