package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-sched/kubectl-sched/internal/sandbox"
)

const (
	// admissionPolicies is how many policies a pod is judged by.
	admissionPolicies = 50
	// admissionPods is how many pods a round creates, admissionParallel at a time.
	admissionPods     = 1000
	admissionParallel = 16
	// steadyPods is how many pods a round of a steady rate creates, one each
	// steadyEvery: a third of what two cores can do, so that nothing queues.
	steadyPods  = 200
	steadyEvery = time.Second / 30
	// placedNamespace is where the policies act, bareNamespace where none does, and
	// leastNamespace where one does that writes an annotation.
	placedNamespace = "bench-placed"
	bareNamespace   = "bench-bare"
	leastNamespace  = "bench-least"
)

// admissionBench is a control plane with admission policies in one of two
// namespaces, so that rounds with and without them can alternate.
type admissionBench struct {
	*controlPlane
	kube kubernetes.Interface
}

// startAdmission starts a control plane, with its data in the folder called name in
// dir, and applies the policies. With fsync etcd writes through to the disk.
func startAdmission(ctx context.Context, dir, name, binary, plugin string, fsync bool) (*admissionBench, error) {
	plane, err := startControlPlane(ctx, filepath.Join(dir, name), binary, sandbox.Options{Fsync: fsync})
	if err != nil {
		return nil, err
	}
	b := &admissionBench{controlPlane: plane}
	if err := b.prepare(ctx, dir, plugin); err != nil {
		return nil, errors.Join(err, b.Stop())
	}
	return b, nil
}

func (b *admissionBench) prepare(ctx context.Context, dir, plugin string) (err error) {
	if b.kube, err = kubernetes.NewForConfig(b.config()); err != nil {
		return err
	}
	for _, name := range []string{placedNamespace, bareNamespace, leastNamespace} {
		if err := b.namespace(ctx, name); err != nil {
			return err
		}
	}
	folder := filepath.Join(dir, "admission")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "policies.cue"), []byte(admissionDocument()), 0o644); err != nil {
		return err
	}
	c := exec.CommandContext(ctx, plugin, "apply", "--kubeconfig", b.Kubeconfig(), "--set", "bench", "-p", folder,
		"--surface", "admission", "-n", placedNamespace, "--wait")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("apply %d policies: %w\n%s", admissionPolicies, err, out)
	}
	return b.leastPolicy(ctx)
}

// leastPolicy makes a policy that does the least that one can do, and waits until
// it is in force: what a pod's creation takes with it is the API server's own
// share of what any policy costs.
func (b *admissionBench) leastPolicy(ctx context.Context) error {
	meta := metav1.ObjectMeta{Name: leastNamespace}
	api := b.kube.AdmissionregistrationV1()
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: leastNamespace}},
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}}},
		},
		FailurePolicy:      new(admissionregistrationv1.Fail),
		ReinvocationPolicy: admissionregistrationv1.IfNeededReinvocationPolicy,
		Mutations: []admissionregistrationv1.Mutation{{PatchType: admissionregistrationv1.PatchTypeJSONPatch, JSONPatch: &admissionregistrationv1.JSONPatch{
			Expression: `has(object.metadata.annotations) ? [] : [JSONPatch{op: "add", path: "/metadata/annotations", value: {"least": "done"}}]`,
		}}},
	}}
	if _, err := api.MutatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{}); err != nil {
		return err
	}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: leastNamespace}}
	if _, err := api.MutatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		pod, err := b.kube.CoreV1().Pods(leastNamespace).Create(ctx, benchPod(0), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && mutated[leastNamespace](pod), err
	})
}

// mutated says of a pod of each namespace whether the policies have acted on it.
var mutated = map[string]func(*corev1.Pod) bool{
	placedNamespace: func(p *corev1.Pod) bool { return p.Spec.Affinity != nil },
	bareNamespace:   func(p *corev1.Pod) bool { return p.Spec.Affinity == nil && p.Annotations == nil },
	leastNamespace:  func(p *corev1.Pod) bool { return p.Annotations["least"] == "done" },
}

// namespace makes a namespace, and waits until pods can be created in it.
func (b *admissionBench) namespace(ctx context.Context, name string) error {
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := b.kube.CoreV1().Namespaces().Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := b.kube.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	})
}

// pace is how many pods a round creates, and how fast: each as soon as one of the
// parallel ones is done, or with every one each so long.
type pace struct {
	pods  int
	every time.Duration
}

// pair is one round in a namespace with policies and one without any, of the mean
// time that the creation of a pod takes.
func (b *admissionBench) pair(ctx context.Context, namespace string, at pace) (with, without usage, err error) {
	if with, err = b.round(ctx, namespace, at); err != nil {
		return
	}
	without, err = b.round(ctx, bareNamespace, at)
	return
}

func (b *admissionBench) round(ctx context.Context, namespace string, at pace) (usage, error) {
	pods := b.kube.CoreV1().Pods(namespace)
	var total atomic.Int64
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(admissionParallel)
	begin := time.Now()
	for i := range at.pods {
		select {
		case <-groupCtx.Done():
			return usage{}, errors.Join(group.Wait(), context.Cause(ctx))
		case <-time.After(time.Until(begin.Add(time.Duration(i) * at.every))):
		}
		group.Go(func() error {
			start := time.Now()
			pod, err := pods.Create(groupCtx, benchPod(i), metav1.CreateOptions{})
			total.Add(int64(time.Since(start)))
			if err == nil && !mutated[namespace](pod) {
				err = fmt.Errorf("pod %s in namespace %s is not what its policies make of it", pod.Name, namespace)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return usage{}, err
	}
	// Each round starts with as few pods as the others.
	err := pods.DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, metav1.ListOptions{})
	return usage{seconds: time.Duration(total.Load()).Seconds() / float64(at.pods)}, err
}

// benchPod is a pod of the size that pods have, which nobody has to schedule.
func benchPod(i int) *corev1.Pod {
	env := []corev1.EnvVar{{Name: "LISTEN", Value: ":8080"}, {Name: "LOG_LEVEL", Value: "info"}}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:   fmt.Sprintf("pod-%04d", i),
			Labels: map[string]string{"app.kubernetes.io/name": fmt.Sprintf("app-%d", i%100), "team": fmt.Sprintf("t%d", i%admissionPolicies)},
		},
		Spec: corev1.PodSpec{
			SchedulingGates: []corev1.PodSchedulingGate{{Name: "bench.example/never"}},
			Containers: []corev1.Container{
				{Name: "app", Image: "registry.example/app:1.2.3", Args: []string{"--listen", ":8080"}, Env: env},
				{Name: "proxy", Image: "registry.example/proxy:4.5.6", Env: env},
			},
		},
	}
}

// admissionDocument is as many policies as are measured: most for one team each,
// some for all pods of the namespace.
func admissionDocument() string {
	var b strings.Builder
	b.WriteString(header)
	for i := range admissionPolicies {
		if i%10 == 0 {
			fmt.Fprintf(&b, admissionForAll, i, placedNamespace, i)
			continue
		}
		fmt.Fprintf(&b, admissionForTeam, i, placedNamespace, i, i%3+1)
	}
	return b.String()
}

const admissionForAll = `
policies: "all-%d": {
	workloads: namespaces: ["%s"]
	nodes: forbid: labels: "bench.example/kind": "k%d"
	tolerate: taints: maintenance: key: "bench.example/maintenance"
}
`

const admissionForTeam = `
policies: "team-%d": {
	workloads: {namespaces: ["%s"], pods: labels: team: "t%d"}
	nodes: {
		require: arch: ["amd64", "arm64"]
		disfavor: pools: ["spot"]
	}
	spread: zone: {strength: "require", maxSkew: %d}
}
`
