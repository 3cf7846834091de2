package simulate

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	appsapi "k8s.io/kubernetes/pkg/apis/apps/v1"
)

// rolloutStatefulSet has the set become what sts says: one pod after the other,
// the highest ordinal first, each placed before the next goes.
func (w *World) rolloutStatefulSet(ctx context.Context, sts *appsv1.StatefulSet) error {
	w.keepReplicas(Ref{"StatefulSet", sts.Namespace, sts.Name}, &sts.Spec.Replicas)
	appsapi.SetObjectDefaults_StatefulSet(sts)
	o := w.adoptStatefulSet(sts)
	first, last := ordinals(o, sts)
	if stop, err := w.fillOrdinals(ctx, o, sts); stop || err != nil {
		return err
	}
	if sts.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		w.assume("%s updates its pods when they are deleted: they stay as they are", o.ref())
		return nil
	}
	from := first
	if r := sts.Spec.UpdateStrategy.RollingUpdate; r != nil && r.Partition != nil {
		from = max(from, *r.Partition)
	}
	for n := last; n >= from; n-- {
		name := podName{Namespace: sts.Namespace, Name: fmt.Sprintf("%s-%d", sts.Name, n)}
		pod, ok := w.engine.Pod(name)
		if ok && w.before[name] == nil && !w.outdated[name] {
			continue // made from the new template just now
		}
		if ok {
			delete(w.outdated, name)
			if err := w.remove(pod); err != nil {
				return err
			}
		}
		if err := w.create(o, name.Name, numbered(name.Name, n)); err != nil {
			return err
		}
		if stop, err := w.settleOrdinal(ctx, o, sts, name); stop || err != nil {
			return err
		}
	}
	return nil
}

func (w *World) adoptStatefulSet(sts *appsv1.StatefulSet) *owner {
	return w.adopt(sts, &owner{kind: "StatefulSet", template: &sts.Spec.Template, replicas: deref(sts.Spec.Replicas)})
}

// ordinals are those of the set's first and last pods.
func ordinals(o *owner, sts *appsv1.StatefulSet) (first, last int32) {
	if sts.Spec.Ordinals != nil {
		first = sts.Spec.Ordinals.Start
	}
	return first, first + o.replicas - 1
}

// fillOrdinals makes the pods that are missing, one after the other. It reports
// whether the controller would wait for one of them for ever.
func (w *World) fillOrdinals(ctx context.Context, o *owner, sts *appsv1.StatefulSet) (stop bool, err error) {
	first, last := ordinals(o, sts)
	for n := first; n <= last; n++ {
		name := podName{Namespace: sts.Namespace, Name: fmt.Sprintf("%s-%d", sts.Name, n)}
		if o.pods[name] {
			continue
		}
		if err := w.create(o, name.Name, numbered(name.Name, n)); err != nil {
			return true, err
		}
		if stop, err := w.settleOrdinal(ctx, o, sts, name); stop || err != nil {
			return true, err
		}
	}
	return false, nil
}

// settleOrdinal lets the pod be placed. It reports whether the controller would
// wait here for ever, and notes that.
func (w *World) settleOrdinal(ctx context.Context, o *owner, sts *appsv1.StatefulSet, name podName) (stop bool, err error) {
	if err := w.settle(ctx); err != nil {
		return true, err
	}
	if pod, ok := w.engine.Pod(name); ok && pod.Spec.NodeName != "" {
		return false, nil
	}
	if sts.Spec.PodManagementPolicy == appsv1.ParallelPodManagement && w.before[name] == nil {
		return false, nil
	}
	w.stuck = append(w.stuck, Stuck{Workload: o.ref(), Placed: w.placed(o), Wanted: o.replicas, At: name.Name})
	return true, nil
}

// numbered gives the pod what the StatefulSet controller does.
func numbered(name string, n int32) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Hostname = name
		if pod.Labels == nil {
			pod.Labels = map[string]string{}
		}
		pod.Labels[appsv1.StatefulSetPodNameLabel] = name
		pod.Labels[appsv1.PodIndexLabel] = strconv.Itoa(int(n))
	}
}

// ordinal is numbered for a pod that is made anew.
func ordinal(pod *corev1.Pod) func(*corev1.Pod) {
	n, err := strconv.ParseInt(pod.Name[strings.LastIndex(pod.Name, "-")+1:], 10, 32)
	if err != nil {
		return nil
	}
	return numbered(pod.Name, int32(n))
}
