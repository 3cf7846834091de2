// Command schedule places pods that use none of our plugins, with the scheduler's
// framework in process and no API server. For each line that it reads it places some,
// and prints how much CPU time each took, in nanoseconds. "schedule stock" has kube-scheduler's default profile; "schedule ours"
// the same profile with all bundled plugins, the plugin Gang with its engine, and the
// feature gate that Gang needs.
//
// It runs a whole scheduling cycle and what comes before a Binding, which would be a
// request. It must not know what a plugin decides.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/utils/clock"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/contain"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/plugins/gang"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/podgroup"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/registry"
)

const (
	nodes  = 500
	warmUp = 200 // pods that are placed before the first line is read
	pods   = 200 // that are placed for each line
)

func main() {
	klog.SetLogger(klog.Logger{})
	if len(os.Args) != 2 || os.Args[1] != "stock" && os.Args[1] != "ours" {
		fmt.Fprintln(os.Stderr, "usage: schedule stock|ours")
		os.Exit(2)
	}
	if err := run(klog.NewContext(context.Background(), klog.Logger{}), os.Args[1] == "ours"); err != nil {
		fmt.Fprintln(os.Stderr, "schedule:", err)
		os.Exit(1)
	}
}

// run places pods for each line of the standard input.
func run(ctx context.Context, ours bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := newCluster(ctx, ours)
	if err != nil {
		return err
	}
	if _, err := c.placeMany(ctx, warmUp); err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		each, err := c.placeMany(ctx, pods)
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stdout, each.Nanoseconds())
	}
	return lines.Err()
}

// placeMany places so many pods and returns how much CPU time each took.
func (c *cluster) placeMany(ctx context.Context, n int) (time.Duration, error) {
	start, err := used()
	if err != nil {
		return 0, err
	}
	for range n {
		if err := c.place(ctx, pod(c.placed)); err != nil {
			return 0, err
		}
		c.placed++
	}
	end, err := used()
	return (end - start) / time.Duration(n), err
}

// used returns the CPU time of the process so far.
func used() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, err
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}

// cluster is a scheduler that is driven by hand.
type cluster struct {
	scheduler *scheduler.Scheduler
	snapshot  *cache.Snapshot
	framework framework.Framework
	placed    int
}

func newCluster(ctx context.Context, ours bool) (*cluster, error) {
	metrics.Register()
	var plugins []registry.Plugin
	client := fake.NewClientset()
	informers := scheduler.NewInformerFactory(client, 0, nil)
	if ours {
		if err := utilfeature.DefaultMutableFeatureGate.Set("GenericWorkload=true"); err != nil {
			return nil, err
		}
		scheme := runtime.NewScheme()
		if err := metav1.AddMetaToScheme(scheme); err != nil {
			return nil, err
		}
		engine := podgroup.New(podgroup.Options{
			Client: client, Dynamic: dynamicfake.NewSimpleDynamicClient(scheme), Metadata: metadatafake.NewSimpleMetadataClient(scheme),
			Virtual: true, Reporter: "bench", Instance: "bench",
		})
		if err := engine.Attach(ctx, informers); err != nil {
			return nil, err
		}
		holds := gang.NewHolds(clock.RealClock{})
		plugins = append(registry.Bundled(), registry.Plugin{Name: gang.Name, New: gang.New(engine, holds)})
	}
	outOfTree, err := registry.New(contain.Options{Metrics: contain.NewMetrics(), Budgets: contain.DefaultBudgets(), Clock: clock.RealClock{}}, plugins...)
	if err != nil {
		return nil, err
	}
	defaults, err := latest.Default() // after the gate, from which it follows
	if err != nil {
		return nil, err
	}
	profile := defaults.Profiles[0]
	for _, p := range plugins {
		profile.Plugins.MultiPoint.Enabled = append(profile.Plugins.MultiPoint.Enabled, config.Plugin{Name: p.Name, Weight: 1})
	}
	c := &cluster{snapshot: cache.NewEmptySnapshot()}
	c.scheduler, err = scheduler.New(ctx, client, informers, nil, func(string) events.EventRecorderLogger { return &events.FakeRecorder{} },
		scheduler.WithProfiles(profile), scheduler.WithFrameworkOutOfTreeRegistry(outOfTree), scheduler.WithNodeInfoSnapshot(c.snapshot),
		scheduler.WithParallelism(1)) // so that the time of idle workers is not counted
	if err != nil {
		return nil, err
	}
	c.framework = c.scheduler.Profiles[profile.SchedulerName]
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	for i := range nodes {
		c.scheduler.Cache.AddNode(klog.FromContext(ctx), node(i))
	}
	return c, nil
}

// place runs the scheduling cycle of the pod and what comes before its Binding.
func (c *cluster) place(ctx context.Context, pod *corev1.Pod) error {
	logger := klog.FromContext(ctx)
	if err := c.scheduler.Cache.UpdateSnapshot(logger, c.snapshot); err != nil {
		return err
	}
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return err
	}
	state := framework.NewCycleState()
	result, err := c.scheduler.SchedulePod(ctx, c.framework, state, &framework.QueuedPodInfo{PodInfo: info})
	if err != nil {
		return err
	}
	on := result.SuggestedHost
	pod = pod.DeepCopy()
	pod.Spec.NodeName = on
	if err := c.scheduler.Cache.AssumePod(logger, pod); err != nil {
		return err
	}
	if status := c.framework.RunReservePluginsReserve(ctx, state, pod, on); !status.IsSuccess() {
		return status.AsError()
	}
	if _, status := c.framework.RunPermitPlugins(ctx, state, pod, on); !status.IsSuccess() {
		return status.AsError()
	}
	if status := c.framework.RunPreBindPreFlights(ctx, state, pod, on); !status.IsSuccess() && !status.IsSkip() {
		return errors.New(status.Message())
	}
	if status := c.framework.RunPreBindPlugins(ctx, state, pod, on); !status.IsSuccess() {
		return status.AsError()
	}
	c.framework.RunPostBindPlugins(ctx, state, pod, on)
	return nil
}

func node(i int) *corev1.Node {
	name := fmt.Sprintf("node-%04d", i)
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("128Gi"), corev1.ResourcePods: resource.MustParse("110")}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%3)}},
		Status:     corev1.NodeStatus{Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

// pod is a pod of a web server, as most are.
func pod(i int) *corev1.Pod {
	name := fmt.Sprintf("web-%04d", i)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			SchedulerName: corev1.DefaultSchedulerName,
			Containers: []corev1.Container{{Name: "c", Image: "web", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi"),
			}}}},
		},
	}
}
