// Package schedulertest runs the real scheduler with our plugins in a test, on a
// fake API server: queue, hints, framework and binding are upstream's. Only tests
// import it.
//
// It must not know what a plugin decides, and copies no rule of upstream's: what it
// asserts is where pods end up.
package schedulertest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/contain"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/registry"
)

// Namespace is where pods are.
const Namespace = "default"

// limit is how long anything may take.
const limit = 30 * time.Second

// Options are what a scheduler is started with.
type Options struct {
	// Plugins are the plugins, all of which are enabled by MultiPoint, each with a
	// weight of 1.
	Plugins []registry.Plugin
	// Args are the arguments by plugin, as YAML.
	Args map[string]string
	// Defaults keeps kube-scheduler's default plugins on; else only what sorts the
	// queue and binds is.
	Defaults bool
	// Profiles are the names of the profiles, all alike; one, "test", if empty.
	Profiles []string
	// Configured are whole profiles, instead of those that the other fields say.
	Configured []config.KubeSchedulerProfile
}

// Lab is a scheduler that runs.
type Lab struct {
	Client    *fake.Clientset
	Scheduler *scheduler.Scheduler
	Events    *events.FakeRecorder
	metrics   *contain.Metrics
	stop      func()
	version   atomic.Int64
}

// NewClient returns a fake API server with the objects, on which a pod that is
// bound gets its node.
func NewClient(objects ...runtime.Object) *fake.Clientset {
	client := fake.NewClientset(objects...)
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		create, ok := action.(clienttesting.CreateAction)
		if !ok || action.GetSubresource() != "binding" {
			return false, nil, nil
		}
		binding, ok := create.GetObject().(*v1.Binding)
		if !ok {
			return false, nil, nil
		}
		pods := v1.SchemeGroupVersion.WithResource("pods")
		object, err := client.Tracker().Get(pods, binding.Namespace, binding.Name)
		if err != nil {
			return true, nil, err
		}
		pod := object.(*v1.Pod).DeepCopy()
		pod.Spec.NodeName = binding.Target.Name
		pod.Status.Conditions = append(pod.Status.Conditions, v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionTrue})
		return true, binding, client.Tracker().Update(pods, pod, pod.Namespace)
	})
	return client
}

// Start starts a scheduler on the client. It is stopped with the test, or before
// by Stop.
func Start(t testing.TB, client *fake.Clientset, options Options) *Lab {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &Lab{Client: client, Events: events.NewFakeRecorder(10_000), metrics: contain.NewMetrics()}
	plugins, err := registry.New(contain.Options{Metrics: l.metrics, Budgets: contain.DefaultBudgets(), Clock: clock.RealClock{}}, options.Plugins...)
	if err != nil {
		t.Fatal(err)
	}
	profiles, err := options.profiles()
	if err != nil {
		t.Fatal(err)
	}
	informers := scheduler.NewInformerFactory(client, 0, nil)
	everyNode := int32(100)
	l.Scheduler, err = scheduler.New(ctx, client, informers, nil, func(string) events.EventRecorderLogger { return l.Events },
		scheduler.WithProfiles(profiles...), scheduler.WithFrameworkOutOfTreeRegistry(plugins),
		scheduler.WithPercentageOfNodesToScore(&everyNode),
		scheduler.WithPodInitialBackoffSeconds(1), scheduler.WithPodMaxBackoffSeconds(1))
	if err != nil {
		t.Fatal(err)
	}
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	if err := l.Scheduler.WaitForHandlersSync(ctx); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Scheduler.Run(ctx)
	}()
	l.stop = func() {
		cancel()
		<-done
		informers.Shutdown()
	}
	t.Cleanup(l.stop)
	return l
}

// Stop stops the scheduler, as a lost lease does.
func (l *Lab) Stop() { l.stop() }

// Framework is the framework of the profile.
func (l *Lab) Framework(profile string) framework.Framework { return l.Scheduler.Profiles[profile] }

// profiles are the profiles that the options describe.
func (o Options) profiles() ([]config.KubeSchedulerProfile, error) {
	if o.Configured != nil {
		return o.Configured, nil
	}
	defaults, err := latest.Default()
	if err != nil {
		return nil, err
	}
	names := o.Profiles
	if len(names) == 0 {
		names = []string{"test"}
	}
	var profiles []config.KubeSchedulerProfile
	for _, name := range names {
		p := *defaults.Profiles[0].DeepCopy()
		p.SchedulerName = name
		if !o.Defaults {
			p.Plugins.MultiPoint.Enabled = []config.Plugin{{Name: "PrioritySort"}, {Name: "DefaultBinder"}}
			p.PluginConfig = nil
		}
		for _, plugin := range o.Plugins {
			p.Plugins.MultiPoint.Enabled = append(p.Plugins.MultiPoint.Enabled, config.Plugin{Name: plugin.Name, Weight: 1})
			if text, ok := o.Args[plugin.Name]; ok {
				p.PluginConfig = append(p.PluginConfig, config.PluginConfig{Name: plugin.Name, Args: &runtime.Unknown{Raw: []byte(text)}})
			}
		}
		profiles = append(profiles, p)
	}
	return profiles, nil
}

// Create creates the pod. Its scheduler is "test", unless it names one.
func (l *Lab) Create(t testing.TB, pod *v1.Pod) {
	t.Helper()
	if pod.Spec.SchedulerName == "" {
		pod.Spec.SchedulerName = "test"
	}
	if _, err := l.Client.CoreV1().Pods(Namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Update changes the pod.
func (l *Lab) Update(t testing.TB, name string, change func(*v1.Pod)) {
	t.Helper()
	pod, err := l.Client.CoreV1().Pods(Namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	change(pod)
	// The fake API server counts no versions, and the scheduler ignores an update
	// that brings no new one.
	pod.ResourceVersion = strconv.FormatInt(l.version.Add(1), 10)
	if _, err := l.Client.CoreV1().Pods(Namespace).Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// UpdateNode changes the node, and waits until the scheduler knows: pods come by
// another watch, and one that is made after could be looked at before.
func (l *Lab) UpdateNode(t testing.TB, name string, change func(*v1.Node)) {
	t.Helper()
	node, err := l.Client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	change(node)
	if _, err := l.Client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), time.Millisecond, limit, true, func(context.Context) (bool, error) {
		known := l.Scheduler.Cache.Dump().Nodes[name]
		return known != nil && equality.Semantic.DeepEqual(known.Node().Labels, node.Labels) && equality.Semantic.DeepEqual(known.Node().Annotations, node.Annotations) &&
			equality.Semantic.DeepEqual(known.Node().Spec, node.Spec) && equality.Semantic.DeepEqual(known.Node().Status, node.Status), nil
	})
	if err != nil {
		t.Fatalf("the scheduler has not seen the change of node %s: %v", name, err)
	}
}

// Delete deletes the pod.
func (l *Lab) Delete(t testing.TB, name string) {
	t.Helper()
	if err := l.Client.CoreV1().Pods(Namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Bound waits until the pod is bound, and returns it.
func (l *Lab) Bound(t testing.TB, name string) *v1.Pod {
	t.Helper()
	return l.until(t, name, "is not bound", func(pod *v1.Pod) bool { return pod.Spec.NodeName != "" })
}

// Pending waits until the scheduler says of the pod that it is unschedulable, by
// a message with all of the words, and returns the message.
func (l *Lab) Pending(t testing.TB, name string, words ...string) string {
	t.Helper()
	message := func(pod *v1.Pod) string {
		for _, c := range pod.Status.Conditions {
			if c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse {
				return c.Reason + ": " + c.Message
			}
		}
		return ""
	}
	return message(l.until(t, name, fmt.Sprintf("is not pending with %q", words), func(pod *v1.Pod) bool {
		for _, w := range words {
			if !strings.Contains(message(pod), w) {
				return false
			}
		}
		return message(pod) != "" && pod.Spec.NodeName == ""
	}))
}

// until waits for the condition on the pod.
func (l *Lab) until(t testing.TB, name, what string, condition func(*v1.Pod) bool) (pod *v1.Pod) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		var err error
		pod, err = l.Client.CoreV1().Pods(Namespace).Get(ctx, name, metav1.GetOptions{})
		return err == nil && condition(pod), err
	})
	if err != nil {
		t.Fatalf("pod %s %s: %v; it has node %q and %+v", name, what, err, pod.Spec.NodeName, pod.Status.Conditions)
	}
	return pod
}

// Calls returns how often the plugin was called at the extension point, in all
// profiles.
func (l *Lab) Calls(t testing.TB, plugin, point string) int {
	t.Helper()
	return int(l.value(t, "kubectl_sched_plugin_duration_seconds", plugin, point))
}

// Panics returns how often the plugin panicked at the extension point.
func (l *Lab) Panics(t testing.TB, plugin, point string) int {
	t.Helper()
	return int(l.value(t, "kubectl_sched_plugin_panics_total", plugin, point))
}

// value sums one metric of contained plugins over the profiles.
func (l *Lab) value(t testing.TB, name, plugin, point string) (sum float64) {
	t.Helper()
	gatherer := prometheus.NewPedanticRegistry()
	if err := gatherer.Register(l.metrics); err != nil {
		t.Fatal(err)
	}
	families, err := gatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range m.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if family.GetName() == name && labels["plugin"] == plugin && labels["extension_point"] == point {
				sum += m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}
