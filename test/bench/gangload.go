package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
)

const (
	// gangNamespace is where the gangs are.
	gangNamespace = "default"
	// gangParallel is how many requests the load makes at once.
	gangParallel = 32
	// groupPattern is the name of a gang by its number.
	groupPattern = "gang-%04d"
)

var podGroupObjects = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}

// gangLoad is gangs of one size, each of which runs for a while once it is whole.
type gangLoad struct {
	gangs, size int
	// run is how long a gang runs before its pods go; 0: all stay until the end.
	run time.Duration
	// interleaved creates one member of every gang before the next.
	interleaved bool
	// native uses the API's own PodGroups, else those of scheduling.x-k8s.io.
	native bool
	// limit is how long the load may take.
	limit time.Duration
	// pairs is how often it is measured with both schedulers in turn.
	pairs int
}

// gangResult is what came of a load.
type gangResult struct {
	total time.Duration // from the first pod to the last binding, or last end of a gang that runs
	waits []time.Duration
	spans []time.Duration // from a gang's first binding to its last
	part  int             // gangs that have some nodes in the end, and not all
	whole int
	cpu   time.Duration // of the scheduler, its start and the end of the pods included
}

func (r gangResult) podsPerSecond(l gangLoad) float64 {
	return float64(r.whole*l.size) / r.total.Seconds()
}

// middle is the median of the waits, of which there is one at least.
func (r gangResult) middle() time.Duration { return r.waits[len(r.waits)/2] }

// gangState is what is seen of one gang.
type gangState struct {
	created, first, whole time.Time
	bound                 map[string]bool
}

// loadRun is one run of a load.
type loadRun struct {
	gangLoad
	kube      kubernetes.Interface
	objects   dynamic.Interface
	scheduler string

	mu    sync.Mutex
	state []*gangState
	ended chan int
}

// runGangs runs the load with the scheduler of that name, and clears it away.
func runGangs(ctx context.Context, kube kubernetes.Interface, objects dynamic.Interface, scheduler string, load gangLoad) (result gangResult, err error) {
	r := &loadRun{gangLoad: load, kube: kube, objects: objects, scheduler: scheduler, ended: make(chan int, load.gangs)}
	for range load.gangs {
		r.state = append(r.state, &gangState{bound: map[string]bool{}})
	}
	ctx, cancel := context.WithTimeout(ctx, load.limit)
	defer cancel()
	defer func() {
		if clearErr := r.clear(context.WithoutCancel(ctx)); err == nil {
			err = clearErr
		}
	}()
	if err := r.each(load.gangs, func(g int) error { return r.createGroup(ctx, g) }); err != nil {
		return result, err
	}
	if err := r.watch(ctx); err != nil {
		return result, err
	}
	start := time.Now()
	if err := r.createPods(ctx); err != nil {
		return result, err
	}
	for range load.gangs {
		select {
		case g := <-r.ended:
			if load.run == 0 {
				continue
			}
			go func() { _ = r.each(load.size, func(i int) error { return r.deletePod(ctx, g, i) }) }()
		case <-ctx.Done():
			return r.result(time.Since(start)), nil
		}
	}
	return r.result(time.Since(start)), nil
}

// each calls do for 0 to n-1, some at a time.
func (r *loadRun) each(n int, do func(int) error) error {
	var group errgroup.Group
	group.SetLimit(gangParallel)
	for i := range n {
		group.Go(func() error { return do(i) })
	}
	return group.Wait()
}

func groupName(g int) string  { return fmt.Sprintf(groupPattern, g) }
func podName(g, i int) string { return fmt.Sprintf("gang-%04d-%04d", g, i) }

func (r *loadRun) createGroup(ctx context.Context, g int) error {
	if r.native {
		group := &schedulingv1beta1.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Name: groupName(g)},
			Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
				Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(r.size)},
			}},
		}
		_, err := r.kube.SchedulingV1beta1().PodGroups(gangNamespace).Create(ctx, group, metav1.CreateOptions{})
		return err
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": podGroupObjects.GroupVersion().String(), "kind": "PodGroup",
		"metadata": map[string]any{"name": groupName(g)},
		"spec":     map[string]any{"minMember": int64(r.size)},
	}}
	_, err := r.objects.Resource(podGroupObjects).Namespace(gangNamespace).Create(ctx, object, metav1.CreateOptions{})
	return err
}

// createPods creates all members.
func (r *loadRun) createPods(ctx context.Context) error {
	if !r.interleaved {
		return r.each(r.gangs, func(g int) error {
			for i := range r.size {
				if err := r.createPod(ctx, g, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for i := range r.size {
		if err := r.each(r.gangs, func(g int) error { return r.createPod(ctx, g, i) }); err != nil {
			return err
		}
	}
	return nil
}

func (r *loadRun) createPod(ctx context.Context, g, i int) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: podName(g, i)},
		Spec: corev1.PodSpec{
			SchedulerName: r.scheduler,
			Containers: []corev1.Container{{
				Name: "c", Image: "none",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
			}},
		},
	}
	if r.native {
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To(groupName(g))}
	} else {
		pod.Labels = map[string]string{gangkey.Label: groupName(g)}
	}
	r.mu.Lock()
	if r.state[g].created.IsZero() {
		r.state[g].created = time.Now()
	}
	r.mu.Unlock()
	_, err := r.kube.CoreV1().Pods(gangNamespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

func (r *loadRun) deletePod(ctx context.Context, g, i int) error {
	return r.kube.CoreV1().Pods(gangNamespace).Delete(ctx, podName(g, i), metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
}

// watch notes the bindings until ctx is over.
func (r *loadRun) watch(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(r.kube, 0, informers.WithNamespace(gangNamespace))
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { r.see(o) },
		UpdateFunc: func(_, o any) { r.see(o) },
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return nil
}

// see notes whether a pod has a node by now.
func (r *loadRun) see(o any) {
	pod, ok := o.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" {
		return
	}
	var g, i int
	if _, err := fmt.Sscanf(pod.Name, "gang-%d-%d", &g, &i); err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.state[g]
	if s.bound[pod.Name] {
		return
	}
	now := time.Now()
	s.bound[pod.Name] = true
	if s.first.IsZero() {
		s.first = now
	}
	if len(s.bound) == r.size {
		s.whole = now
		time.AfterFunc(r.run, func() { r.ended <- g })
	}
}

func (r *loadRun) result(total time.Duration) gangResult {
	r.mu.Lock()
	defer r.mu.Unlock()
	result := gangResult{total: total}
	for _, s := range r.state {
		switch {
		case !s.whole.IsZero():
			result.whole++
			result.waits = append(result.waits, s.whole.Sub(s.created))
			result.spans = append(result.spans, s.whole.Sub(s.first))
		case len(s.bound) > 0:
			result.part++
		}
	}
	slices.Sort(result.waits)
	slices.Sort(result.spans)
	return result
}

// clear takes everything away, and returns when it is gone.
func (r *loadRun) clear(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	now, all := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}, metav1.ListOptions{}
	// One by one: a request that deletes thousands takes longer than it may.
	err := r.each(r.gangs*r.size, func(i int) error {
		if err := r.deletePod(ctx, i%r.gangs, i/r.gangs); !apierrors.IsNotFound(err) {
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !r.native {
		return r.objects.Resource(podGroupObjects).Namespace(gangNamespace).DeleteCollection(ctx, now, all)
	}
	groups := r.kube.SchedulingV1beta1().PodGroups(gangNamespace)
	if err := groups.DeleteCollection(ctx, now, all); err != nil {
		return err
	}
	// Each has a finalizer until a controller has seen that its pods are gone.
	return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		left, err := groups.List(ctx, metav1.ListOptions{Limit: 1})
		return err == nil && len(left.Items) == 0, err
	})
}
