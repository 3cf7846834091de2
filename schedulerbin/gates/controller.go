package gates

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	"k8s.io/utils/clock"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/condition"
)

const (
	// coalesce is how long a woken namespace waits for what else happens in it.
	coalesce = 100 * time.Millisecond
	// maxSleep is how long a wait for a moment sleeps at most: the clock on the
	// wall may be set meanwhile.
	maxSleep = 10 * time.Minute
)

// Options say what a Controller works with. All but Clock must be set.
type Options struct {
	Client kubernetes.Interface
	// Dynamic reads the objects that pods wait for.
	Dynamic dynamic.Interface
	// Mapper finds the resources of their kinds. It is reset, now and then, for a
	// kind that it does not know.
	Mapper meta.ResettableRESTMapper
	// Informers are started by the caller. Pods that have ended may be left out.
	Informers informers.SharedInformerFactory
	// Instance is the replica in events.
	Instance string
	// Clock is the time; nil means the real one.
	Clock clock.WithTicker
}

// Controller opens gates. It is a prometheus.Collector of how many pods wait.
type Controller struct {
	options   Options
	clock     clock.WithTicker
	pods      cache.SharedIndexInformer
	quotas    cache.SharedIndexInformer
	evaluator quota.Evaluator
	watches   *watches
	mapper    *mapper
	queue     workqueue.TypedRateLimitingInterface[string]
	metrics   *metrics
	// known is what was said and done of the pods that wait, by namespace; the
	// worker alone reads the records.
	mu    sync.Mutex
	known map[string]map[types.UID]*record
}

// New returns a controller, and asks the informers' factory, which must not have
// been started, for what it watches.
func New(options Options) (*Controller, error) {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	c := &Controller{
		options:   options,
		clock:     options.Clock,
		pods:      options.Informers.Core().V1().Pods().Informer(),
		quotas:    options.Informers.Core().V1().ResourceQuotas().Informer(),
		evaluator: core.NewPodEvaluator(nil, options.Clock),
		mapper:    &mapper{mapper: options.Mapper, clock: options.Clock},
		metrics:   newMetrics(),
		known:     map[string]map[types.UID]*record{},
	}
	c.queue = workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](200*time.Millisecond, time.Minute),
		workqueue.TypedRateLimitingQueueConfig[string]{Clock: options.Clock})
	c.watches = newWatches(options.Dynamic, c.wake)
	if err := c.pods.AddIndexers(cache.Indexers{waitingIndex: waitingKeys}); err != nil {
		return nil, fmt.Errorf("index the pods that wait: %w", err)
	}
	return c, nil
}

// Run opens gates until ctx is over, and returns when all that it started has
// ended. Only the replica that leads may run it, and only once.
func (c *Controller) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("gates"))
	ctx, cancel := context.WithCancel(ctx)
	defer c.watches.wait()
	defer cancel()
	pods, err := c.pods.AddEventHandler(c.podEvents())
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	quotas, err := c.quotas.AddEventHandler(c.quotaEvents())
	if err != nil {
		return fmt.Errorf("watch resource quotas: %w", errors.Join(err, c.pods.RemoveEventHandler(pods)))
	}
	var workers sync.WaitGroup
	workers.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), pods.HasSynced, quotas.HasSynced) {
			for c.work(ctx) {
			}
		}
	})
	<-ctx.Done()
	c.queue.ShutDown()
	workers.Wait()
	return errors.Join(c.pods.RemoveEventHandler(pods), c.quotas.RemoveEventHandler(quotas))
}

// work judges the next namespace; false when the controller ends.
func (c *Controller) work(ctx context.Context) bool {
	namespace, end := c.queue.Get()
	if end {
		return false
	}
	defer c.queue.Done(namespace)
	next, err := c.judge(ctx, namespace)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		klog.FromContext(ctx).Error(err, "Cannot open gates; will try again", "namespace", namespace)
		c.queue.AddRateLimited(namespace)
		return true
	case !next.IsZero():
		c.queue.AddAfter(namespace, min(next.Sub(c.clock.Now()), maxSleep))
	}
	c.queue.Forget(namespace)
	return true
}

// wake has the namespaces judged soon.
func (c *Controller) wake(namespaces ...string) {
	for _, namespace := range namespaces {
		c.queue.AddAfter(namespace, coalesce)
	}
}

// waitingIndex is the index of pods with gates of ours, by namespace.
const waitingIndex = "kubectl-sched-waiting"

func waitingKeys(o any) ([]string, error) {
	if pod, ok := o.(*corev1.Pod); ok && pod.DeletionTimestamp == nil && len(ourGates(pod)) > 0 {
		return []string{pod.Namespace}, nil
	}
	return nil, nil
}

// ourGates returns the names of the pod's gates that are ours.
func ourGates(pod *corev1.Pod) []string {
	var out []string
	for _, gate := range pod.Spec.SchedulingGates {
		if condition.Ours(gate.Name) {
			out = append(out, gate.Name)
		}
	}
	return out
}
