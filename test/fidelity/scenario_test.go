package fidelity_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/internal/sandbox/sandboxtest"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate"
)

// scene is a workload, and what happens to it, on nodes of its own.
type scene struct {
	name string
	// before is there at the start, and after is what it becomes; nil for nothing.
	before, after runtime.Object
	drain, lose   []int // nodes, by number; two are in each of three zones
	// chance says that the end hangs on the order in which single pods become ready, of
	// which the simulator takes one: only how many are placed is compared.
	chance bool
}

// total counts the pods that are in a zone, and those in none.
func total(byZone map[string]int) map[string]int {
	sum := map[string]int{}
	for zone, n := range byZone {
		if zone != "" {
			zone = "any zone"
		}
		sum[zone] += n
	}
	return sum
}

// scenes are few: each needs the real controllers.
func scenes() []scene {
	spread := func(keys ...string) func(*corev1.PodTemplateSpec) {
		return func(p *corev1.PodTemplateSpec) {
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "scene"}}, MatchLabelKeys: keys,
				NodeTaintsPolicy: ptr.To(corev1.NodeInclusionPolicyHonor),
			}}
		}
	}
	second := func(p *corev1.PodTemplateSpec) { p.Annotations = map[string]string{"revision": "2"} }
	return []scene{
		{name: "rollout-by-revision", before: deployment(spread(appsv1.DefaultDeploymentUniqueLabelKey)), after: deployment(spread(appsv1.DefaultDeploymentUniqueLabelKey), second)},
		{name: "rollout-of-all", before: deployment(spread()), after: deployment(spread(), second), chance: true},
		{name: "statefulset", before: statefulSet(6, spread()), after: statefulSet(6, spread(), second)},
		{name: "daemonset", before: daemonSet(), after: daemonSet(second)},
		{name: "drain", before: deployment(spread()), drain: []int{0}},
		{name: "lost-zone", before: deployment(), lose: []int{0, 3}},
	}
}

func template(edits ...func(*corev1.PodTemplateSpec)) corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "scene"}},
		Spec: corev1.PodSpec{TerminationGracePeriodSeconds: ptr.To[int64](0), Containers: []corev1.Container{{
			Name: "c", Image: "registry.example/app:1",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}},
		}}},
	}
	for _, edit := range edits {
		edit(&t)
	}
	return t
}

var selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "scene"}}

func deployment(edits ...func(*corev1.PodTemplateSpec)) *appsv1.Deployment {
	replicas := int32(6)
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "scene"}, Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector, Template: template(edits...)}}
}

func statefulSet(replicas int32, edits ...func(*corev1.PodTemplateSpec)) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "scene"}, Spec: appsv1.StatefulSetSpec{Replicas: &replicas, Selector: selector, Template: template(edits...)}}
}

func daemonSet(edits ...func(*corev1.PodTemplateSpec)) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "scene"}, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template(edits...)}}
}

// TestScenariosEndAsControllersDo holds that a rollout, a drain and a lost zone leave
// as many pods in each zone as the real controllers and the stock scheduler do.
func TestScenariosEndAsControllersDo(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, s := range scenes() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			stage := newStage(t, l, s)
			if err := stage.apply(ctx, s.before); err != nil {
				t.Fatal(err)
			}
			stage.settle(t)
			before, err := l.snapshot(ctx)
			if err != nil {
				t.Fatal(err)
			}
			simulated := stage.simulate(t, before, s)
			if err := stage.play(ctx, s); err != nil {
				t.Fatal(err)
			}
			end := stage.settle(t)
			t.Logf("pods by zone: %v", end)
			if s.chance {
				end, simulated = total(end), total(simulated)
			}
			if diff := cmp.Diff(end, simulated); diff != "" {
				t.Errorf("pods by zone (-cluster +simulated):\n%s", diff)
			}
		})
	}
}

// simulate returns how many pods are in each zone at the end of the simulated scene.
func (st *stage) simulate(t *testing.T, from *snapshot.Snapshot, s scene) map[string]int {
	t.Helper()
	w := world(t, from, nil)
	defer w.Close()
	if err := w.Take(t.Context(), st.steps(s)...); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, p := range w.Outcome().Pods {
		if p.Pod.Namespace == st.namespace {
			counts[st.zone(p.After)]++
		}
	}
	return counts
}

// stage is where a scene plays.
type stage struct {
	*lab
	namespace string
	nodes     []string
}

func newStage(t *testing.T, l *lab, s scene) *stage {
	t.Helper()
	st := &stage{lab: l, namespace: "scene-" + s.name}
	if err := sandboxtest.MakeNamespace(t.Context(), l.client, st.namespace, nil); err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		name := fmt.Sprintf("%s-%d", st.namespace, i)
		capacity := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("20")}
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
				corev1.LabelHostname: name, corev1.LabelTopologyZone: zones[i%3], caseLabel: st.namespace,
			}},
			Spec:   corev1.NodeSpec{Taints: []corev1.Taint{{Key: caseLabel, Value: st.namespace, Effect: corev1.TaintEffectNoSchedule}}},
			Status: corev1.NodeStatus{Capacity: capacity, Allocatable: capacity, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}},
		}
		if err := l.node(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		st.nodes = append(st.nodes, name)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), clearLimit)
		defer cancel()
		if err := l.client.CoreV1().Namespaces().Delete(ctx, st.namespace, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return st
}

// on gives the pods the toleration of the stage's nodes, and its namespace.
func (st *stage) on(meta *metav1.ObjectMeta, template *corev1.PodTemplateSpec) {
	meta.Namespace = st.namespace
	template.Spec.Tolerations = []corev1.Toleration{{Key: caseLabel, Value: st.namespace, Effect: corev1.TaintEffectNoSchedule}}
	template.Spec.NodeSelector = map[string]string{caseLabel: st.namespace}
}

// place returns the object on the stage.
func (st *stage) place(object runtime.Object) runtime.Object {
	switch o := object.DeepCopyObject().(type) {
	case *appsv1.Deployment:
		st.on(&o.ObjectMeta, &o.Spec.Template)
		return o
	case *appsv1.StatefulSet:
		st.on(&o.ObjectMeta, &o.Spec.Template)
		return o
	case *appsv1.DaemonSet:
		st.on(&o.ObjectMeta, &o.Spec.Template)
		return o
	}
	return nil
}

// apply makes the workload what the object says.
func (st *stage) apply(ctx context.Context, object runtime.Object) error {
	apps := st.client.AppsV1()
	switch o := st.place(object).(type) {
	case *appsv1.Deployment:
		return put(ctx, o, apps.Deployments(st.namespace).Create, apps.Deployments(st.namespace).Update)
	case *appsv1.StatefulSet:
		return put(ctx, o, apps.StatefulSets(st.namespace).Create, apps.StatefulSets(st.namespace).Update)
	case *appsv1.DaemonSet:
		return put(ctx, o, apps.DaemonSets(st.namespace).Create, apps.DaemonSets(st.namespace).Update)
	}
	return fmt.Errorf("a %T is no workload", object)
}

func put[T any](ctx context.Context, object T, create func(context.Context, T, metav1.CreateOptions) (T, error), update func(context.Context, T, metav1.UpdateOptions) (T, error)) error {
	if _, err := create(ctx, object, metav1.CreateOptions{}); err == nil {
		return nil
	}
	_, err := update(ctx, object, metav1.UpdateOptions{})
	return err
}

// steps are the scene for the simulator.
func (st *stage) steps(s scene) (steps []simulate.Step) {
	if s.after != nil {
		steps = append(steps, simulate.Rollout{Object: st.place(s.after)})
	}
	if s.drain != nil {
		steps = append(steps, simulate.Drain{Nodes: st.named(s.drain)})
	}
	if s.lose != nil {
		steps = append(steps, simulate.Lose{Nodes: st.named(s.lose)})
	}
	return steps
}

func (st *stage) named(numbers []int) (names []string) {
	for _, n := range numbers {
		names = append(names, st.nodes[n])
	}
	return names
}

// play has the scene happen on the cluster.
func (st *stage) play(ctx context.Context, s scene) error {
	if s.after != nil {
		if err := st.apply(ctx, s.after); err != nil {
			return err
		}
	}
	for _, name := range st.named(s.drain) {
		patch := []byte(`{"spec":{"unschedulable":true}}`)
		if _, err := st.client.CoreV1().Nodes().Patch(ctx, name, "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
			return err
		}
		pods, err := st.client.CoreV1().Pods(st.namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
		if err != nil {
			return err
		}
		for _, p := range pods.Items {
			eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
			if err := st.client.PolicyV1().Evictions(p.Namespace).Evict(ctx, eviction); err != nil {
				return err
			}
		}
	}
	now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
	for _, name := range st.named(s.lose) {
		if err := st.client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	for _, name := range st.named(s.lose) {
		if err := st.client.CoreV1().Pods(st.namespace).DeleteCollection(ctx, now, metav1.ListOptions{FieldSelector: "spec.nodeName=" + name}); err != nil {
			return err
		}
	}
	return nil
}

// settle waits until the controller is content or has come to a halt, and returns
// how many pods are in each zone, "" for those that wait.
func (st *stage) settle(t *testing.T) map[string]int {
	t.Helper()
	var counts map[string]int
	version, since := "", time.Now()
	err := st.until(t.Context(), clearLimit, func(ctx context.Context) (bool, error) {
		pods, err := st.client.CoreV1().Pods(st.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		now := ""
		counts = map[string]int{}
		for _, p := range pods.Items {
			now += p.Name + p.ResourceVersion + " "
			counts[st.zone(p.Spec.NodeName)]++
		}
		if now != version {
			version, since = now, time.Now()
		}
		return len(pods.Items) > 0 && time.Since(since) > 4*time.Second, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

// zone is that of the node; "" for no node.
func (st *stage) zone(node string) string {
	if i := slices.Index(st.nodes, node); i >= 0 {
		return zones[i%3]
	}
	return ""
}
