package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/retry"
)

// nodeWorkers is how many requests about nodes are under way at once.
const nodeWorkers = 32

// NodeChanges counts what ApplyNodes did.
type NodeChanges struct{ Created, Changed, Removed, Unchanged int }

// Nodes makes the cluster's fake nodes those of pools, as ApplyNodes does.
func (s *Sandbox) Nodes(ctx context.Context, pools []Pool) (NodeChanges, error) {
	changes, err := ApplyNodes(ctx, s.clients, pools)
	if err != nil {
		if p := s.process(Kwok); p != nil && !p.running() {
			err = errors.Join(err, p.failure(p.exitReason()))
		}
	}
	return changes, err
}

// ApplyNodes makes the cluster's fake nodes those of pools: it creates, changes
// and removes nodes until they are, and returns when all are Ready and free of
// the taint that new nodes carry. A node that goes takes its pods along. Nodes
// that come from no pool are left alone, and so are labels and taints that
// others put on ours.
//
// It stops when ctx is over, and can be run again after any end.
func ApplyNodes(ctx context.Context, clients kubernetes.Interface, pools []Pool) (NodeChanges, error) {
	list, err := clients.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: ""})
	if err != nil {
		return NodeChanges{}, fmt.Errorf("list nodes: %w", err)
	}
	live := map[string]*corev1.Node{}
	for i := range list.Items {
		live[list.Items[i].Name] = &list.Items[i]
	}
	var changes NodeChanges
	var work []func(context.Context) error
	wanted := map[string]bool{}
	for _, pool := range pools {
		for index := range pool.Count {
			name := pool.nodeName(index)
			wanted[name] = true
			node := live[name]
			if node == nil {
				changes.Created++
				work = append(work, func(ctx context.Context) error { return createNode(ctx, clients, pool, index) })
				continue
			}
			if node.Annotations[PoolAnnotation] == "" {
				return NodeChanges{}, fmt.Errorf("pool %q wants a node called %q, and there is one that comes from no pool; delete it, or change nodeName", pool.Name, name)
			}
			same, err := pool.wanted(index).isApplied(node, pool.Name)
			if err != nil {
				return NodeChanges{}, err
			}
			if same {
				changes.Unchanged++
				continue
			}
			changes.Changed++
			work = append(work, func(ctx context.Context) error { return changeNode(ctx, clients, pool, index) })
		}
	}
	for name, node := range live {
		if node.Annotations[PoolAnnotation] != "" && !wanted[name] {
			changes.Removed++
			work = append(work, func(ctx context.Context) error { return removeNode(ctx, clients, name) })
		}
	}
	if err := inParallel(ctx, work); err != nil {
		return NodeChanges{}, err
	}
	return changes, waitForNodes(ctx, clients, wanted)
}

func createNode(ctx context.Context, clients kubernetes.Interface, pool Pool, index int) error {
	node, err := pool.newNode(index)
	if err != nil {
		return err
	}
	if _, err := clients.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create node %s: %w", node.Name, err)
	}
	return nil
}

func changeNode(ctx context.Context, clients kubernetes.Interface, pool Pool, index int) error {
	name := pool.nodeName(index)
	// The status goes first: the record of what was applied, in the metadata,
	// must not be there before all of it is.
	for _, update := range []func(*corev1.Node) error{
		func(n *corev1.Node) error {
			n.Status.Capacity = pool.wanted(index).Capacity
			n.Status.Allocatable = n.Status.Capacity
			_, err := clients.CoreV1().Nodes().UpdateStatus(ctx, n, metav1.UpdateOptions{})
			return err
		},
		func(n *corev1.Node) error {
			if err := pool.wanted(index).merge(n, pool.Name); err != nil {
				return err
			}
			_, err := clients.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
			return err
		},
	} {
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			node, err := clients.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			return update(node)
		})
		if err != nil {
			return fmt.Errorf("change node %s: %w", name, err)
		}
	}
	return nil
}

// removeNode deletes the node and, without waiting for the garbage collector of
// pods, what ran on it.
func removeNode(ctx context.Context, clients kubernetes.Interface, name string) error {
	if err := clients.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove node %s: %w", name, err)
	}
	pods, err := clients.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", name).String(),
	})
	if err != nil {
		return fmt.Errorf("remove node %s: list its pods: %w", name, err)
	}
	for _, pod := range pods.Items {
		now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
		if err := clients.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, now); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("remove node %s: delete pod %s/%s: %w", name, pod.Namespace, pod.Name, err)
		}
	}
	return nil
}

// inParallel does all of work, some at a time. After the first error it starts
// no more, and returns that error.
func inParallel(ctx context.Context, work []func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan func(context.Context) error)
	var workers sync.WaitGroup
	for range min(nodeWorkers, len(work)) {
		workers.Go(func() {
			for do := range queue {
				if err := do(ctx); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, do := range work {
		if ctx.Err() != nil {
			break
		}
		queue <- do
	}
	close(queue)
	workers.Wait()
	return context.Cause(ctx)
}

// waitForNodes returns when every node in wanted is ready for pods. It watches:
// listing thousands of nodes again and again would hold up the very controllers
// that make them ready.
func waitForNodes(ctx context.Context, clients kubernetes.Interface, wanted map[string]bool) error {
	if len(wanted) == 0 {
		return nil
	}
	nodes := clients.CoreV1().Nodes()
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return nodes.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return nodes.Watch(ctx, options)
		},
	}
	ready := map[string]bool{}
	_, err := watchtools.UntilWithSync(ctx, source, &corev1.Node{}, nil, func(event watch.Event) (bool, error) {
		node, isNode := event.Object.(*corev1.Node)
		if !isNode || !wanted[node.Name] {
			return false, nil
		}
		if event.Type != watch.Deleted && isReady(node) {
			ready[node.Name] = true
		} else {
			delete(ready, node.Name)
		}
		return len(ready) == len(wanted), nil
	})
	if err != nil {
		return fmt.Errorf("wait for nodes: %d of %d are ready: %w", len(ready), len(wanted), err)
	}
	return nil
}

// isReady reports whether node is Ready and has lost the taint of new nodes.
func isReady(node *corev1.Node) bool {
	isNew := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady })
	return !isNew && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
