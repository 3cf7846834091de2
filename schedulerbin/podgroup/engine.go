package podgroup

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
)

// sourcesTimeout limits how long the scheduler's start waits for what names
// virtual gangs. Their members wait longer by themselves; the other pods need not.
const sourcesTimeout = 30 * time.Second

// Options say what an Engine reads from. Client, Dynamic and Metadata must be set.
type Options struct {
	// Client, Dynamic and Metadata reach one API server.
	Client   kubernetes.Interface
	Dynamic  dynamic.Interface
	Metadata metadata.Interface
	// Native says that the API server serves PodGroups (Discover).
	Native bool
	// Virtual says that gangs of PodGroup objects and labels are placed too.
	Virtual bool
	// OneByOne says that members are placed one by one, and not by the pod-group cycle:
	// a member behind a scheduling gate is then seen in its group, and keeps nobody
	// else from being placed.
	OneByOne bool
	// Reporter and Instance are the controller and the replica in events.
	Reporter, Instance string
	// Clock is the time; nil means the real one.
	Clock clock.WithTicker
	// NewUID makes the UIDs of virtual PodGroups, all different; nil means random
	// ones.
	NewUID func() types.UID
}

// Engine feeds a scheduler with PodGroups. Make one with New, before the
// scheduler; then call Attach once.
type Engine struct {
	options   Options
	feed      *feed
	directory *directory
	start     sync.Once
}

// New returns an Engine that reads nothing yet.
func New(options Options) *Engine {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.NewUID == nil {
		options.NewUID = uuid.NewUUID
	}
	f := newFeed()
	return &Engine{options: options, feed: f, directory: newDirectory(options.Clock, options.NewUID, f)}
}

// Client returns client for the scheduler to use: writes on virtual PodGroups do
// not reach the API server.
func (e *Engine) Client(client kubernetes.Interface) kubernetes.Interface {
	return &virtualClient{Interface: client, record: e.recordStatus}
}

// Attach makes factory, which must not have been started, the scheduler's: its
// PodGroups become the engine's, and pods get the scheduling group that the scheduler
// must see them in.
// It must be called before anything else asks the factory for PodGroups. The
// engine reads from the API server once the factory is started, until ctx is over.
func (e *Engine) Attach(ctx context.Context, factory informers.SharedInformerFactory) error {
	factory.InformerFor(&schedulingv1beta1.PodGroup{}, func(_ kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		return cache.NewSharedIndexInformerWithOptions(&lazyFeed{feed: e.feed, start: func() { e.start.Do(func() { e.startSources(ctx) }) }},
			&schedulingv1beta1.PodGroup{}, cache.SharedIndexInformerOptions{
				ResyncPeriod:      resync,
				Indexers:          cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
				ObjectDescription: "pod groups",
			})
	})
	pods := factory.Core().V1().Pods().Informer()
	if err := pods.SetTransform(e.transformPod); err != nil {
		return fmt.Errorf("set the transform of pods: %w", err)
	}
	if !e.options.Virtual {
		return nil
	}
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { e.onPod(o, e.directory.setPod) },
		UpdateFunc: func(_, o any) { e.onPod(o, e.directory.setPod) },
		DeleteFunc: func(o any) { e.onPod(o, e.directory.removePod) },
	})
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	return nil
}

// lazyFeed is a feed that starts what fills it at the first list.
type lazyFeed struct {
	*feed
	start func()
}

// ListWithContext is the feed's, once its sources have been listed.
func (l *lazyFeed) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	l.start()
	return l.feed.ListWithContext(ctx, options)
}

// startSources starts what fills the directory and the feed, and returns when it
// has: the API's own groups are in the first list.
func (e *Engine) startSources(ctx context.Context) {
	logger := klog.FromContext(ctx).WithName("podgroup")
	var own []cache.InformerSynced
	if e.options.Native {
		own = append(own, e.watchNative(ctx))
	}
	var virtual []cache.InformerSynced
	if e.options.Virtual {
		virtual = append(e.watchFinished(ctx), e.watchObjects(ctx)...)
	}
	cache.WaitForCacheSync(ctx.Done(), own...)
	limited, cancel := context.WithTimeout(ctx, sourcesTimeout)
	defer cancel()
	if !cache.WaitForCacheSync(limited.Done(), virtual...) && ctx.Err() == nil {
		logger.Error(nil, "PodGroup objects or finished pods could not be listed in time; gangs wait until they are. Check the scheduler's rights", "limit", sourcesTimeout)
	}
}

// transformPod prepares a pod for the scheduler's informer.
func (e *Engine) transformPod(o any) (any, error) {
	// As the informer's own transform does, which this one replaces.
	if accessor, err := meta.Accessor(o); err == nil && accessor.GetManagedFields() != nil {
		accessor.SetManagedFields(nil)
	}
	if pod, ok := o.(*corev1.Pod); ok {
		if pod.Spec.SchedulingGroup = e.groupOf(pod); !e.isSeen(pod) {
			pod.Spec.SchedulingGroup = nil
		}
	}
	return o, nil
}

// groupOf returns the group that pod is in, nil for none. What it was when the pod was
// first seen is noted for good, also of one that names a group of the API's.
func (e *Engine) groupOf(pod *corev1.Pod) *corev1.PodSchedulingGroup {
	if !e.options.Virtual {
		return pod.Spec.SchedulingGroup
	}
	key, ok := e.directory.pin(pod)
	if pod.Spec.SchedulingGroup != nil || !ok {
		return pod.Spec.SchedulingGroup
	}
	return &corev1.PodSchedulingGroup{PodGroupName: &key}
}

// isSeen reports whether the scheduler may see pod in its group. The scheduler's queue
// gates a group as a whole that has a member behind a scheduling gate, so that one is a
// pod by itself until its gates are gone (queueing.LateMembers then takes it in).
func (e *Engine) isSeen(pod *corev1.Pod) bool {
	return e.options.OneByOne || !gangkey.Gated(pod)
}

// onPod calls do with the pod that an informer's handler was given.
func (e *Engine) onPod(o any, do func(*corev1.Pod)) {
	if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	if pod, ok := o.(*corev1.Pod); ok {
		do(pod)
	}
}

// recordStatus notes what the scheduler wrote on a virtual PodGroup.
func (e *Engine) recordStatus(namespace, key string, conditions []metav1.Condition) {
	for _, condition := range conditions {
		if condition.Type == schedulingv1beta1.PodGroupInitiallyScheduled {
			e.directory.endCycle(types.NamespacedName{Namespace: namespace, Name: key}, condition.Status == metav1.ConditionTrue)
		}
	}
}
