package fidelity_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/kubectl-sched/kubectl-sched/internal/sandbox/sandboxtest"
)

// caseLabel on nodes and volumes names their case.
const caseLabel = "fidelity.example/case"

// The limits of waits. A case that does not come to rest goes on all the same: what
// it was for is in the recording.
const (
	quiet      = 100 * time.Millisecond
	backOff    = 1100 * time.Millisecond // of the configuration, and a bit
	restLimit  = 4 * time.Second
	clearLimit = time.Minute
)

// run has the case happen, and takes it away again.
func (l *lab) run(ctx context.Context, c *testCase) error {
	if err := l.set(ctx, c); err != nil {
		return fmt.Errorf("%s: %w", c.namespace, err)
	}
	for _, s := range c.steps {
		if err := l.take(ctx, c, s); err != nil {
			return fmt.Errorf("%s: %w", c.namespace, err)
		}
	}
	if err := l.rest(ctx, c); err != nil {
		return fmt.Errorf("%s: %w", c.namespace, err)
	}
	if err := l.clear(ctx, c); err != nil {
		return fmt.Errorf("%s: clear: %w", c.namespace, err)
	}
	return nil
}

// set makes what is there before anything happens.
func (l *lab) set(ctx context.Context, c *testCase) error {
	if err := sandboxtest.MakeNamespace(ctx, l.client, c.namespace, c.labels); err != nil {
		return err
	}
	initial := map[string]bool{}
	for _, n := range c.nodes {
		initial[n.Name] = true
	}
	for _, s := range c.steps {
		if s.add != nil {
			delete(initial, s.add.Name)
		}
	}
	var failed error
	try := func(err error) { failed = errors.Join(failed, err) }
	for _, n := range c.nodes {
		if initial[n.Name] {
			try(l.node(ctx, n))
		}
	}
	created := metav1.CreateOptions{}
	for _, s := range c.services {
		_, err := l.client.CoreV1().Services(c.namespace).Create(ctx, s, created)
		try(err)
	}
	for _, b := range c.budgets {
		_, err := l.client.PolicyV1().PodDisruptionBudgets(c.namespace).Create(ctx, b, created)
		try(err)
	}
	for _, s := range c.capacity {
		_, err := l.client.StorageV1().CSIStorageCapacities(c.namespace).Create(ctx, s, created)
		try(err)
	}
	for _, v := range c.volumes {
		_, err := l.client.CoreV1().PersistentVolumes().Create(ctx, v, created)
		try(err)
	}
	for _, v := range c.claims {
		_, err := l.client.CoreV1().PersistentVolumeClaims(c.namespace).Create(ctx, v, created)
		try(err)
	}
	for _, g := range c.groups {
		_, err := l.dynamic.Resource(podGroups).Namespace(c.namespace).Create(ctx, g, created)
		try(err)
	}
	if failed != nil {
		return failed
	}
	return l.until(ctx, clearLimit, func(ctx context.Context) (bool, error) {
		nodes, err := l.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: caseLabel + "=" + c.namespace})
		if err != nil {
			return false, err
		}
		for _, n := range nodes.Items {
			for _, taint := range n.Spec.Taints {
				if taint.Key == corev1.TaintNodeNotReady {
					return false, nil
				}
			}
		}
		claims, err := l.client.CoreV1().PersistentVolumeClaims(c.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for _, v := range claims.Items {
			if v.Spec.VolumeName != "" && v.Status.Phase != corev1.ClaimBound {
				return false, nil
			}
		}
		return len(nodes.Items) == len(initial), nil
	})
}

// node makes a node, with the rest of what a kubelet would say.
func (l *lab) node(ctx context.Context, n *corev1.Node) error {
	_, err := l.client.CoreV1().Nodes().Create(ctx, n.DeepCopy(), metav1.CreateOptions{})
	return err
}

// take has one step happen.
func (l *lab) take(ctx context.Context, c *testCase, s step) error {
	pods := l.client.CoreV1().Pods(c.namespace)
	now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
	switch {
	case s.create != nil:
		for _, p := range s.create {
			if _, err := pods.Create(ctx, p, metav1.CreateOptions{}); err != nil {
				return err
			}
		}
		return nil
	case s.remove != "":
		return ignoreGone(pods.Delete(ctx, s.remove, now))
	case s.open != "":
		return ignoreGone(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			p, err := pods.Get(ctx, s.open, metav1.GetOptions{})
			if err != nil {
				return err
			}
			p.Spec.SchedulingGates = nil
			_, err = pods.Update(ctx, p, metav1.UpdateOptions{})
			return err
		}))
	case s.change != nil:
		return ignoreGone(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			n, err := l.client.CoreV1().Nodes().Get(ctx, s.node, metav1.GetOptions{})
			if err != nil {
				return err
			}
			s.change(n)
			_, err = l.client.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
			return err
		}))
	case s.add != nil:
		return l.node(ctx, s.add)
	case s.lose != "":
		if err := ignoreGone(l.client.CoreV1().Nodes().Delete(ctx, s.lose, metav1.DeleteOptions{})); err != nil {
			return err
		}
		return pods.DeleteCollection(ctx, now, metav1.ListOptions{FieldSelector: "spec.nodeName=" + s.lose})
	case s.wait:
		return l.rest(ctx, c)
	}
	return nil
}

func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// rest waits until nothing moves: the scheduler tries no pod of the case, for a short
// time if it has said something of every pod, and else for longer than it waits to try
// again.
func (l *lab) rest(ctx context.Context, c *testCase) error {
	begun := time.Now()
	err := l.until(ctx, restLimit, func(ctx context.Context) (bool, error) {
		since := time.Since(begun)
		if last := l.watch.last(c.namespace); last.After(begun) {
			since = time.Since(last)
		}
		if since < quiet || since > backOff {
			return since > backOff, nil
		}
		list, err := l.client.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for _, p := range list.Items {
			if p.DeletionTimestamp != nil || p.Spec.NodeName == "" && (p.Status.NominatedNodeName != "" || !judged(&p)) {
				return false, nil
			}
		}
		return true, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return nil
	}
	return err
}

// judged reports whether the scheduler has said that the pod does not fit, or cannot
// be asked.
func judged(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return true
		}
	}
	return false
}

// clear takes away what the case made, and returns when its nodes and pods are gone.
func (l *lab) clear(ctx context.Context, c *testCase) error {
	now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
	all, own := metav1.ListOptions{}, metav1.ListOptions{LabelSelector: caseLabel + "=" + c.namespace}
	failed := errors.Join(
		l.client.CoreV1().Pods(c.namespace).DeleteCollection(ctx, now, all),
		l.client.CoreV1().PersistentVolumeClaims(c.namespace).DeleteCollection(ctx, now, all),
		l.client.CoreV1().PersistentVolumes().DeleteCollection(ctx, now, own),
		l.client.PolicyV1().PodDisruptionBudgets(c.namespace).DeleteCollection(ctx, now, all),
		l.client.StorageV1().CSIStorageCapacities(c.namespace).DeleteCollection(ctx, now, all),
		l.dynamic.Resource(podGroups).Namespace(c.namespace).DeleteCollection(ctx, now, all),
		l.client.CoreV1().Nodes().DeleteCollection(ctx, now, own),
	)
	for _, s := range c.services {
		failed = errors.Join(failed, l.client.CoreV1().Services(c.namespace).Delete(ctx, s.Name, now))
	}
	if failed != nil {
		return failed
	}
	return l.until(ctx, clearLimit, func(ctx context.Context) (bool, error) {
		pods, err := l.client.CoreV1().Pods(c.namespace).List(ctx, all)
		if err != nil {
			return false, err
		}
		nodes, err := l.client.CoreV1().Nodes().List(ctx, own)
		if err != nil {
			return false, err
		}
		return len(pods.Items) == 0 && len(nodes.Items) == 0, nil
	})
}

func (*lab) until(ctx context.Context, limit time.Duration, condition func(context.Context) (bool, error)) error {
	return wait.PollUntilContextTimeout(ctx, 25*time.Millisecond, limit, true, condition)
}
