package store

import (
	"context"
	"time"

	"k8s.io/client-go/tools/cache"
)

// informer is the informer of one kind of object. It starts synchronised.
type informer struct {
	indexer   cache.Indexer
	handlers  []*registration
	transform cache.TransformFunc
}

var _ cache.SharedIndexInformer = &informer{}

// registration is one event handler.
type registration struct{ cache.ResourceEventHandler }

// HasSynced is true: a handler is given all that is there when it is added.
func (*registration) HasSynced() bool { return true }

// HasSyncedChecker is done.
func (*registration) HasSyncedChecker() cache.DoneChecker { return done{} }

// done is something that has happened already.
type done struct{}

// Name is for messages of those who wait.
func (done) Name() string { return "simulated informer" }

// Done returns a closed channel.
func (done) Done() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func newInformer() *informer {
	return &informer{indexer: ordered{cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}}
}

func (i *informer) put(object any) error {
	if i.transform != nil {
		var err error
		if object, err = i.transform(object); err != nil {
			return err
		}
	}
	before, exists, err := i.indexer.Get(object)
	if err != nil {
		return err
	}
	if !exists {
		if err := i.indexer.Add(object); err != nil {
			return err
		}
		for _, handler := range i.handlers {
			handler.OnAdd(object, false)
		}
		return nil
	}
	if err := i.indexer.Update(object); err != nil {
		return err
	}
	for _, handler := range i.handlers {
		handler.OnUpdate(before, object)
	}
	return nil
}

func (i *informer) remove(object any) error {
	before, exists, err := i.indexer.Get(object)
	if err != nil || !exists {
		return err
	}
	if err := i.indexer.Delete(before); err != nil {
		return err
	}
	for _, handler := range i.handlers {
		handler.OnDelete(before)
	}
	return nil
}

// AddEventHandler adds the handler, and gives it all that is there.
func (i *informer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	r := &registration{handler}
	i.handlers = append(i.handlers, r)
	for _, object := range i.indexer.List() {
		handler.OnAdd(object, true)
	}
	return r, nil
}

// AddEventHandlerWithResyncPeriod is AddEventHandler: nothing is ever missed.
func (i *informer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

// AddEventHandlerWithOptions is AddEventHandler.
func (i *informer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

// RemoveEventHandler takes the handler away, if it is there.
func (i *informer) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	for n, r := range i.handlers {
		if r == handle {
			i.handlers = append(i.handlers[:n:n], i.handlers[n+1:]...)
			return nil
		}
	}
	return nil
}

// GetStore returns the index.
func (i *informer) GetStore() cache.Store { return i.indexer }

// GetIndexer returns the index.
func (i *informer) GetIndexer() cache.Indexer { return i.indexer }

// AddIndexers adds to the index.
func (i *informer) AddIndexers(indexers cache.Indexers) error { return i.indexer.AddIndexers(indexers) }

// GetController returns nothing: the interface calls it deprecated and useless.
func (*informer) GetController() cache.Controller { return nil }

// Run waits until stop is closed: there is nothing to list or watch.
func (*informer) Run(stop <-chan struct{}) { <-stop }

// RunWithContext waits until ctx is over.
func (*informer) RunWithContext(ctx context.Context) { <-ctx.Done() }

// HasSynced is true.
func (*informer) HasSynced() bool { return true }

// HasSyncedChecker is done.
func (*informer) HasSyncedChecker() cache.DoneChecker { return done{} }

// LastSyncResourceVersion is empty: nothing is listed.
func (*informer) LastSyncResourceVersion() string { return "" }

// SetWatchErrorHandler does nothing: a watch that is not there has no errors.
func (*informer) SetWatchErrorHandler(cache.WatchErrorHandler) error { return nil }

// SetWatchErrorHandlerWithContext does nothing either.
func (*informer) SetWatchErrorHandlerWithContext(cache.WatchErrorHandlerWithContext) error {
	return nil
}

// SetTransform has each object go through transform before it is stored.
func (i *informer) SetTransform(transform cache.TransformFunc) error {
	i.transform = transform
	return nil
}

// IsStopped is false.
func (*informer) IsStopped() bool { return false }
