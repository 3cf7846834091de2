// Command virtual is the least scheduler that places gangs of labelled pods whole: the
// in-tree group cycle, fed with PodGroups that stand in no API server. It is the
// baseline for what the bundled scheduler costs that does more: it knows the
// gangs before it starts, tells nobody why one waits, keeps no promise but that a
// gang is placed whole, and there is no second of it to take over.
//
// It must not know anything of the bundled scheduler.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler"
	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/utils/ptr"
)

// settings are the flags.
type settings struct {
	kubeconfig, name, namespace, label, pattern string
	qps, gangs, size                            int
}

func main() {
	var s settings
	flag.StringVar(&s.kubeconfig, "kubeconfig", "", "how to reach the API server")
	flag.StringVar(&s.name, "name", "", "schedulerName of the pods")
	flag.StringVar(&s.namespace, "namespace", "default", "where the gangs are")
	flag.StringVar(&s.label, "label", "", "the label that names a pod's gang")
	flag.StringVar(&s.pattern, "pattern", "", "name of gang number %d")
	flag.IntVar(&s.qps, "qps", 50, "requests a second; the burst is twice that")
	flag.IntVar(&s.gangs, "gangs", 0, "how many gangs there are")
	flag.IntVar(&s.size, "size", 0, "how many members each has")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "virtual:", err)
		stop()
		os.Exit(1)
	}
}

// run schedules until ctx is over. It prints a line when it has begun.
func run(ctx context.Context, s settings) error {
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{string(features.GenericWorkload): true}); err != nil {
		return err
	}
	reach, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		return err
	}
	reach.QPS, reach.Burst = float32(s.qps), 2*s.qps
	reach.ContentType, reach.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(reach)
	if err != nil {
		return err
	}
	informers := scheduler.NewInformerFactory(client, 0, nil)
	informers.InformerFor(&schedulingv1beta1.PodGroup{}, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
		return cache.NewSharedIndexInformer(s.groups(), &schedulingv1beta1.PodGroup{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	})
	if err := informers.Core().V1().Pods().Informer().SetTransform(s.intoGroup); err != nil {
		return err
	}
	defaults, err := latest.Default()
	if err != nil {
		return err
	}
	defaults.Profiles[0].SchedulerName = s.name
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return err
	}
	sched, err := scheduler.New(ctx, client, informers, nil,
		func(name string) events.EventRecorderLogger { return broadcaster.NewRecorder(scheme.Scheme, name) },
		scheduler.WithProfiles([]config.KubeSchedulerProfile{defaults.Profiles[0]}...))
	if err != nil {
		return err
	}
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	if err := sched.WaitForHandlersSync(ctx); err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, "ready")
	sched.Run(ctx)
	return nil
}

// groups lists the PodGroup of every gang.
func (s settings) groups() cache.ListerWatcher {
	return listed{&cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			list := &schedulingv1beta1.PodGroupList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
			for g := range s.gangs {
				name := fmt.Sprintf(s.pattern, g)
				list.Items = append(list.Items, schedulingv1beta1.PodGroup{
					ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name, UID: types.UID(name), ResourceVersion: "1"},
					Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
						Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(s.size)},
					}},
				})
			}
			return list, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
	}}
}

// listed is a source that is listed once: it sends no bookmarks.
type listed struct{ *cache.ListWatch }

func (listed) IsWatchListSemanticsUnSupported() bool { return true }

// intoGroup puts a pod with the label into its gang's PodGroup.
func (s settings) intoGroup(o any) (any, error) {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	pod.ManagedFields = nil // as the informer's own transform does, which this one replaces
	if gang := pod.Labels[s.label]; gang != "" {
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To(gang)}
	}
	return pod, nil
}
