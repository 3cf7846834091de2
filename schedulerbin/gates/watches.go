package gates

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

// objectKey is an object that somebody waits for.
type objectKey struct {
	resource        schema.GroupVersionResource
	namespace, name string
}

// watches are the informers of the kinds of which somebody waits for an object:
// one a resource, for as long as anybody does.
type watches struct {
	client dynamic.Interface
	wake   func(namespaces ...string)

	running sync.WaitGroup
	mu      sync.Mutex
	open    map[schema.GroupVersionResource]*watch
}

// watch is one informer.
type watch struct {
	informer cache.SharedIndexInformer
	stop     context.CancelFunc
	// waiting are the namespaces whose pods wait for each object.
	waiting map[objectKey]map[string]bool
	// failed is why the objects cannot be read, until they are.
	failed error
}

func newWatches(client dynamic.Interface, wake func(...string)) *watches {
	return &watches{client: client, wake: wake, open: map[schema.GroupVersionResource]*watch{}}
}

// get returns the object, or nil if there is none, and has the namespace woken
// when it changes. known is false as long as it is not known whether there is
// one; an error says why that will take longer.
func (w *watches) get(ctx context.Context, key objectKey, forNamespace string) (object *unstructured.Unstructured, known bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one, ok := w.open[key.resource]
	if !ok {
		if one, err = w.start(ctx, key.resource); err != nil {
			return nil, false, err
		}
		w.open[key.resource] = one
	}
	// Before the object is read, so that no change of it is missed.
	if one.waiting[key] == nil {
		one.waiting[key] = map[string]bool{}
	}
	one.waiting[key][forNamespace] = true
	if !one.informer.HasSynced() {
		return nil, false, one.failed
	}
	name := key.name
	if key.namespace != "" {
		name = key.namespace + "/" + key.name
	}
	o, _, err := one.informer.GetStore().GetByKey(name)
	if err != nil {
		return nil, false, err
	}
	object, _ = o.(*unstructured.Unstructured)
	return object, true, nil
}

// start starts an informer, which runs until ctx is over or nobody needs it.
func (w *watches) start(ctx context.Context, resource schema.GroupVersionResource) (*watch, error) {
	informer := dynamicinformer.NewFilteredDynamicInformer(w.client, resource, metav1.NamespaceAll, 0,
		cache.Indexers{}, nil).Informer()
	ctx, stop := context.WithCancel(ctx)
	one := &watch{informer: informer, stop: stop, waiting: map[objectKey]map[string]bool{}}
	err := informer.SetTransform(func(o any) (any, error) {
		if accessor, err := meta.Accessor(o); err == nil {
			accessor.SetManagedFields(nil)
		}
		return o, nil
	})
	if err == nil {
		err = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
			cache.DefaultWatchErrorHandler(ctx, r, err)
			w.mu.Lock()
			one.failed = err
			w.mu.Unlock()
			if !informer.HasSynced() {
				w.wake(w.all(one)...)
			}
		})
	}
	if err == nil {
		changed := func(o any) { w.wake(w.of(one, resource, o)...) }
		_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: changed, UpdateFunc: func(_, o any) { changed(o) }, DeleteFunc: changed,
		})
	}
	if err != nil {
		stop()
		return nil, fmt.Errorf("watch %s: %w", resource, err)
	}
	w.running.Go(func() { informer.RunWithContext(ctx) })
	w.running.Go(func() {
		// That an object is not there is known only now.
		if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			w.wake(w.all(one)...)
		}
	})
	return one, nil
}

// of returns the namespaces that wait for the object.
func (w *watches) of(one *watch, resource schema.GroupVersionResource, o any) []string {
	name, err := cache.DeletionHandlingObjectToName(o)
	if err != nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(one.waiting[objectKey{resource: resource, namespace: name.Namespace, name: name.Name}]))
}

// all returns the namespaces that wait for any object of the watch.
func (w *watches) all(one *watch) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string]bool{}
	for _, namespaces := range one.waiting {
		maps.Copy(out, namespaces)
	}
	return slices.Sorted(maps.Keys(out))
}

// retain says that the namespace waits for these objects alone. Informers that
// nobody needs end.
func (w *watches) retain(namespace string, objects map[objectKey]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for resource, one := range w.open {
		for key, namespaces := range one.waiting {
			if namespaces[namespace] && !objects[key] {
				delete(namespaces, namespace)
			}
			if len(namespaces) == 0 {
				delete(one.waiting, key)
			}
		}
		if len(one.waiting) == 0 {
			one.stop()
			delete(w.open, resource)
		}
	}
}

// wait returns when all informers have ended; the context that they were started
// with must be over.
func (w *watches) wait() { w.running.Wait() }
