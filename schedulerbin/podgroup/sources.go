package podgroup

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic/dynamicinformer"
	schedulinginformers "k8s.io/client-go/informers/scheduling/v1beta1"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
)

// discoveryPeriod is how often the engine looks whether PodGroup objects of a
// family are served by now: a CRD may be installed at any time.
const discoveryPeriod = 30 * time.Second

// resources lists where the PodGroup objects of each family are.
var resources = []struct {
	family   gangkey.Family
	resource schema.GroupVersionResource
}{
	{gangkey.FamilyX, schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}},
	{gangkey.FamilyOlder, schema.GroupVersionResource{Group: "scheduling.sigs.k8s.io", Version: "v1alpha1", Resource: "podgroups"}},
}

// resourceOf returns where the PodGroup objects of family are, and whether it has
// any.
func resourceOf(family gangkey.Family) (schema.GroupVersionResource, bool) {
	for _, r := range resources {
		if r.family == family {
			return r.resource, true
		}
	}
	return schema.GroupVersionResource{}, false
}

// Discover reports whether the API server serves the PodGroups that the scheduler
// reads (scheduling.k8s.io/v1beta1). It must be known before the scheduler is
// made: an informer of what is not served never syncs.
func Discover(client discovery.DiscoveryInterface) (native bool, err error) {
	return isServed(client, schedulingv1beta1.SchemeGroupVersion.WithResource("podgroups"))
}

func isServed(client discovery.DiscoveryInterface, resource schema.GroupVersionResource) (bool, error) {
	list, err := client.ServerResourcesForGroupVersion(resource.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, r := range list.APIResources {
		if r.Name == resource.Resource {
			return true, nil
		}
	}
	return false, nil
}

// watchNative passes the API's own PodGroups on to the feed.
func (e *Engine) watchNative(ctx context.Context) cache.InformerSynced {
	informer := schedulinginformers.NewPodGroupInformer(e.options.Client, metav1.NamespaceAll, 0, cache.Indexers{})
	set := func(o any) {
		if group, ok := o.(*schedulingv1beta1.PodGroup); ok {
			e.feed.set(group.DeepCopy())
		}
	}
	return run(ctx, informer, set, func(o metav1.Object) {
		e.feed.remove(types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()})
	})
}

// watchFinished keeps the directory to the members that have ended, which the
// scheduler's own informer drops. One informer a label and phase: the API server
// then sends pods of gangs only, and the metadata need not say the phase.
func (e *Engine) watchFinished(ctx context.Context) []cache.InformerSynced {
	var synced []cache.InformerSynced
	for _, label := range gangkey.Labels() {
		for _, phase := range []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed} {
			synced = append(synced, e.watchPhase(ctx, label, phase))
		}
	}
	return synced
}

func (e *Engine) watchPhase(ctx context.Context, label string, phase corev1.PodPhase) cache.InformerSynced {
	informer := metadatainformer.NewFilteredMetadataInformer(e.options.Metadata, schema.GroupVersionResource{Version: "v1", Resource: "pods"},
		metav1.NamespaceAll, 0, cache.Indexers{}, func(options *metav1.ListOptions) {
			options.LabelSelector = label
			options.FieldSelector = fields.OneTermEqualSelector("status.phase", string(phase)).String()
		}).Informer()
	return run(ctx, informer, func(o any) {
		if pod, ok := o.(metav1.Object); ok {
			e.directory.setFinished(pod, phase == corev1.PodFailed)
		}
	}, e.directory.removeFinished)
}

// watchObjects keeps the directory to the PodGroup objects of each family that is
// served, now or later.
func (e *Engine) watchObjects(ctx context.Context) []cache.InformerSynced {
	var synced []cache.InformerSynced
	for _, r := range resources {
		served, err := isServed(e.options.Client.Discovery(), r.resource)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Cannot tell whether PodGroup objects are served; trying again", "resource", r.resource, "after", discoveryPeriod)
		}
		if served {
			synced = append(synced, e.watchFamily(ctx, r.family, r.resource))
			continue
		}
		go e.awaitFamily(ctx, r.family, r.resource)
	}
	return synced
}

// awaitFamily starts to watch the objects of family once they are served.
func (e *Engine) awaitFamily(ctx context.Context, family gangkey.Family, resource schema.GroupVersionResource) {
	ticker := e.options.Clock.NewTicker(discoveryPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		if served, err := isServed(e.options.Client.Discovery(), resource); err == nil && served {
			e.watchFamily(ctx, family, resource)
			return
		}
	}
}

func (e *Engine) watchFamily(ctx context.Context, family gangkey.Family, resource schema.GroupVersionResource) cache.InformerSynced {
	informer := dynamicinformer.NewFilteredDynamicInformer(e.options.Dynamic, resource, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	return run(ctx, informer, func(o any) {
		u, ok := o.(*unstructured.Unstructured)
		if !ok {
			return
		}
		s, err := parseSpec(u)
		if err != nil {
			klog.FromContext(ctx).Error(err, "PodGroup cannot be read; its gang waits", "podGroup", klog.KObj(u), "resource", resource)
		}
		e.directory.setSpec(object{family, u.GetNamespace(), u.GetName()}, s)
	}, func(o metav1.Object) {
		e.directory.setSpec(object{family, o.GetNamespace(), o.GetName()}, nil)
	})
}

// parseSpec returns what counts of a PodGroup object. A minMember under 1 is left
// for the report to complain of.
func parseSpec(u *unstructured.Unstructured) (*spec, error) {
	minMember, _, err := unstructured.NestedInt64(u.Object, "spec", "minMember")
	seconds, _, errSeconds := unstructured.NestedInt64(u.Object, "spec", "scheduleTimeoutSeconds")
	return &spec{
		uid: u.GetUID(), minMember: int32(minMember), timeout: time.Duration(seconds) * time.Second,
		status: parseStatus(u),
	}, errors.Join(err, errSeconds)
}

// run starts informer and calls set for what is added or changed, and remove for
// what is deleted, until ctx is over. What it returns reports whether all of the
// first list has been passed on.
func run(ctx context.Context, informer cache.SharedIndexInformer, set func(any), remove func(metav1.Object)) cache.InformerSynced {
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    set,
		UpdateFunc: func(_, o any) { set(o) },
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			if object, ok := o.(metav1.Object); ok {
				remove(object)
			}
		},
	})
	if err != nil { // only of an informer that has stopped, and this one is new
		klog.FromContext(ctx).Error(err, "Cannot watch")
		return func() bool { return false }
	}
	go informer.RunWithContext(ctx)
	return registration.HasSynced
}
