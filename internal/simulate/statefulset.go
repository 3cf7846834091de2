package simulate

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsapi "k8s.io/kubernetes/pkg/apis/apps/v1"
)

// rolloutStatefulSet has the set become what sts says: the highest ordinal first, as
// many at a time as may be unavailable.
func (w *World) rolloutStatefulSet(ctx context.Context, sts *appsv1.StatefulSet) error {
	w.keepReplicas(Ref{"StatefulSet", sts.Namespace, sts.Name}, &sts.Spec.Replicas)
	appsapi.SetObjectDefaults_StatefulSet(sts)
	o := w.adoptStatefulSet(sts)
	first, last := ordinals(o, sts)
	fresh, stop, err := w.fillOrdinals(ctx, o, sts)
	if stop || err != nil {
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
	var outdated []int32 // the highest ordinal first
	for n := last; n >= from; n-- {
		if !fresh[n] {
			outdated = append(outdated, n)
		}
	}
	return w.updateOrdinals(ctx, o, sts, outdated)
}

// updateOrdinals replaces the pods of the ordinals, in that order, so many at a time as
// may be unavailable. A set that keeps order makes them anew from the lowest, each when
// the one before is ready; others all at once.
func (w *World) updateOrdinals(ctx context.Context, o *owner, sts *appsv1.StatefulSet, outdated []int32) error {
	most, err := mostUnavailable(sts)
	if err != nil {
		return err
	}
	var down []int32
	for len(outdated) > 0 || len(down) > 0 {
		for len(outdated) > 0 && len(down) < most {
			n := outdated[0]
			outdated, down = outdated[1:], append(down, n)
			if pod, ok := w.engine.Pod(ordinalName(sts, n)); ok {
				if err := w.remove(pod); err != nil {
					return err
				}
			}
			if sts.Spec.PodManagementPolicy == appsv1.ParallelPodManagement {
				if err := w.create(o, ordinalName(sts, n).Name, numbered(sts, ordinalName(sts, n).Name, n)); err != nil {
					return err
				}
			}
		}
		next := slices.Min(down)
		if sts.Spec.PodManagementPolicy == appsv1.ParallelPodManagement {
			if err := w.settle(ctx); err != nil {
				return err
			}
			i := slices.IndexFunc(down, func(n int32) bool {
				pod, ok := w.engine.Pod(ordinalName(sts, n))
				return ok && pod.Spec.NodeName != ""
			})
			if i < 0 {
				w.stuck = append(w.stuck, Stuck{Workload: o.ref(), Placed: w.placed(o), Wanted: o.replicas, At: ordinalName(sts, down[0]).Name})
				return nil
			}
			next = down[i]
		} else {
			if err := w.create(o, ordinalName(sts, next).Name, numbered(sts, ordinalName(sts, next).Name, next)); err != nil {
				return err
			}
			if stop, err := w.settleOrdinal(ctx, o, sts, ordinalName(sts, next)); stop || err != nil {
				return err
			}
		}
		down = slices.DeleteFunc(down, func(n int32) bool { return n == next })
	}
	return nil
}

// mostUnavailable is how many pods of the set may be unavailable while it is updated:
// rounded down, and at least 1 (pkg/controller/statefulset, getStatefulSetMaxUnavailable).
func mostUnavailable(sts *appsv1.StatefulSet) (int, error) {
	r := sts.Spec.UpdateStrategy.RollingUpdate
	if r == nil || r.MaxUnavailable == nil {
		return 1, nil
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(r.MaxUnavailable, int(deref(sts.Spec.Replicas)), false)
	if err != nil {
		return 0, fmt.Errorf("read maxUnavailable of StatefulSet %s/%s: %w", sts.Namespace, sts.Name, err)
	}
	return max(1, n), nil
}

// ordinalName is the name of the set's pod of the ordinal.
func ordinalName(sts *appsv1.StatefulSet, n int32) podName {
	return podName{Namespace: sts.Namespace, Name: fmt.Sprintf("%s-%d", sts.Name, n)}
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

// fillOrdinals makes the pods that are missing, one after the other, and returns their
// ordinals. Stop says that the controller would wait for one of them for ever.
func (w *World) fillOrdinals(ctx context.Context, o *owner, sts *appsv1.StatefulSet) (fresh map[int32]bool, stop bool, err error) {
	fresh = map[int32]bool{}
	first, last := ordinals(o, sts)
	for n := first; n <= last; n++ {
		name := ordinalName(sts, n)
		if o.pods[name] {
			continue
		}
		fresh[n] = true
		if err := w.create(o, name.Name, numbered(sts, name.Name, n)); err != nil {
			return fresh, true, err
		}
		if stop, err := w.settleOrdinal(ctx, o, sts, name); stop || err != nil {
			return fresh, true, err
		}
	}
	return fresh, false, nil
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
	if sts.Spec.PodManagementPolicy == appsv1.ParallelPodManagement {
		return false, nil
	}
	w.stuck = append(w.stuck, Stuck{Workload: o.ref(), Placed: w.placed(o), Wanted: o.replicas, At: name.Name})
	return true, nil
}

// numbered gives the pod what the StatefulSet controller does: its name and number,
// and the claims that are its own.
func numbered(sts *appsv1.StatefulSet, name string, n int32) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Hostname = name
		if pod.Labels == nil {
			pod.Labels = map[string]string{}
		}
		pod.Labels[appsv1.StatefulSetPodNameLabel] = name
		pod.Labels[appsv1.PodIndexLabel] = strconv.Itoa(int(n))
		for _, template := range sts.Spec.VolumeClaimTemplates {
			pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == template.Name })
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: template.Name, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: template.Name + "-" + name},
			}})
		}
	}
}

// ordinal is numbered for a pod that is made anew.
func ordinal(o *owner, pod *corev1.Pod) func(*corev1.Pod) {
	n, err := strconv.ParseInt(pod.Name[strings.LastIndex(pod.Name, "-")+1:], 10, 32)
	sts, ok := o.object.(*appsv1.StatefulSet)
	if err != nil || !ok {
		return nil
	}
	return numbered(sts, pod.Name, int32(n))
}
