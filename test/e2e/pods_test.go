package e2e

import (
	"context"
	"fmt"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-sched/kubectl-sched/internal/sandbox"
)

// pending stands for the domain of pods that are on no node.
const pending = "<pending>"

// pods returns the pods that an object's selector finds, without those that are
// on their way out.
func (c *client) pods(ctx context.Context, object *unstructured.Unstructured) ([]corev1.Pod, error) {
	selector, err := podSelector(object)
	if err != nil {
		return nil, err
	}
	list, err := c.kube.CoreV1().Pods(object.GetNamespace()).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	var pods []corev1.Pod
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			pods = append(pods, pod)
		}
	}
	return pods, nil
}

func podSelector(object *unstructured.Unstructured) (string, error) {
	raw, found, err := unstructured.NestedMap(object.Object, "spec", "selector")
	if err != nil {
		return "", err
	}
	if !found {
		return "", fmt.Errorf("%s %s has no selector", object.GetKind(), object.GetName())
	}
	if _, structured := raw["matchLabels"]; !structured {
		if _, structured = raw["matchExpressions"]; !structured {
			set := labels.Set{}
			for key, value := range raw {
				set[key] = fmt.Sprint(value)
			}
			return set.String(), nil
		}
	}
	match, _, err := unstructured.NestedStringMap(raw, "matchLabels")
	return labels.Set(match).String(), err
}

// where counts the object's pods by domain: "zone", "region", "node", "pool" of
// the file of nodes, or a node label.
func (c *client) where(ctx context.Context, text, key string) (map[string]int, error) {
	object, err := c.get(ctx, text)
	if err != nil {
		return nil, err
	}
	pods, err := c.pods(ctx, object)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, pod := range pods {
		domain := pending
		if pod.Spec.NodeName != "" {
			node, err := c.kube.CoreV1().Nodes().Get(ctx, pod.Spec.NodeName, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			domain = domainOf(node, key)
		}
		counts[domain]++
	}
	return counts, nil
}

func domainOf(node *corev1.Node, key string) string {
	switch key {
	case "node":
		return node.Name
	case "pool":
		return node.Annotations[sandbox.PoolAnnotation]
	case "zone":
		key = corev1.LabelTopologyZone
	case "region":
		key = corev1.LabelTopologyRegion
	}
	if value, ok := node.Labels[key]; ok {
		return value
	}
	return "<none>"
}

// countText writes counts as lines "domain count", sorted.
func countText(counts map[string]int) string {
	domains := make([]string, 0, len(counts))
	for domain := range counts {
		domains = append(domains, domain)
	}
	sort.Strings(domains)
	var text strings.Builder
	for _, domain := range domains {
		fmt.Fprintf(&text, "%s %d\n", domain, counts[domain])
	}
	return text.String()
}

// skew is the difference between the fullest and the emptiest of counts.
func skew(counts map[string]int) int {
	least, most := -1, 0
	for _, n := range counts {
		most = max(most, n)
		if least < 0 || n < least {
			least = n
		}
	}
	return most - max(least, 0)
}

// rolledOut waits until an object's controller has made all pods anew, and all
// of them run.
func (c *client) rolledOut(ctx context.Context, text string) error {
	return until(ctx, text+" is rolled out", func(ctx context.Context) (string, error) {
		object, err := c.get(ctx, text)
		if err != nil {
			return "", err
		}
		return unfinished(object)
	})
}

// unfinished says what of a rollout is missing, or nothing.
func unfinished(object *unstructured.Unstructured) (string, error) {
	status := func(fields ...string) int64 {
		n, _, _ := unstructured.NestedInt64(object.Object, append([]string{"status"}, fields...)...)
		return n
	}
	spec := func(field string) int64 {
		n, found, _ := unstructured.NestedInt64(object.Object, "spec", field)
		if !found {
			return 1
		}
		return n
	}
	var want int64
	var have map[string]int64
	switch object.GetKind() {
	case "Deployment":
		want = spec("replicas")
		have = map[string]int64{"replicas": status("replicas"), "updated": status("updatedReplicas"), "available": status("availableReplicas")}
	case "StatefulSet":
		want = spec("replicas")
		have = map[string]int64{"replicas": status("replicas"), "updated": status("updatedReplicas"), "available": status("availableReplicas")}
	case "DaemonSet":
		want = status("desiredNumberScheduled")
		have = map[string]int64{"current": status("currentNumberScheduled"), "updated": status("updatedNumberScheduled"), "available": status("numberAvailable")}
	case "ReplicaSet", "ReplicationController":
		want = spec("replicas")
		have = map[string]int64{"replicas": status("replicas"), "available": status("availableReplicas")}
	case "Pod":
		phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
		if phase != string(corev1.PodRunning) && phase != string(corev1.PodSucceeded) {
			return "it is " + phase, nil
		}
		return "", nil
	case "Job":
		want = spec("completions")
		have = map[string]int64{"succeeded": status("succeeded")}
	default:
		return "", fmt.Errorf("no notion of a rollout of a %s", object.GetKind())
	}
	if object.GetKind() != "Job" && status("observedGeneration") < object.GetGeneration() {
		return "the controller has not seen the newest version", nil
	}
	for what, n := range have {
		if n != want {
			return fmt.Sprintf("%s %d of %d", what, n, want), nil
		}
	}
	return "", nil
}

// unschedulable waits until as many of the object's pods as count have been
// tried by the scheduler in vain, and all others are on nodes. It returns the
// scheduler's messages.
func (c *client) unschedulable(ctx context.Context, text string, count int) ([]string, error) {
	var messages []string
	err := until(ctx, fmt.Sprintf("%d pods of %s fit nowhere", count, text), func(ctx context.Context) (string, error) {
		object, err := c.get(ctx, text)
		if err != nil {
			return "", err
		}
		pods, err := c.pods(ctx, object)
		if err != nil {
			return "", err
		}
		messages = nil
		waiting := 0
		for _, pod := range pods {
			if pod.Spec.NodeName != "" {
				continue
			}
			waiting++
			for _, condition := range pod.Status.Conditions {
				if condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable {
					messages = append(messages, condition.Message)
				}
			}
		}
		replicas, found, err := unstructured.NestedInt64(object.Object, "spec", "replicas")
		switch {
		case err != nil:
			return "", err
		case found && int64(len(pods)) < replicas:
			return fmt.Sprintf("there are %d of %d pods", len(pods), replicas), nil
		case waiting != count || len(messages) != count:
			return fmt.Sprintf("%d of %d pods wait, %d of them tried", waiting, len(pods), len(messages)), nil
		}
		return "", nil
	})
	return messages, err
}
