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
	// constantNamespace where the least do that come to the same; see constantPolicies.
	placedNamespace   = "bench-placed"
	bareNamespace     = "bench-bare"
	constantNamespace = "bench-constant"
)

// admissionBench is a control plane with admission policies in some of its
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
	for _, name := range []string{placedNamespace, bareNamespace, constantNamespace} {
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
	return b.constantPolicies(ctx)
}

// mutated says of a pod of the namespace whether it is what the policies make of it.
func mutated(namespace string, p *corev1.Pod) bool {
	placed := p.Annotations != nil && p.Spec.Affinity != nil
	bare := p.Annotations == nil && p.Spec.Affinity == nil
	return namespace == bareNamespace && bare || namespace != bareNamespace && placed
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

// pair is one round in a namespace and one in another that it is compared with, of the
// mean time that the creation of a pod takes.
func (b *admissionBench) pair(ctx context.Context, namespace, against string, at pace) (with, without usage, err error) {
	if with, err = b.round(ctx, namespace, at); err != nil {
		return
	}
	without, err = b.round(ctx, against, at)
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
			if err == nil && !mutated(namespace, pod) {
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

// admissionRows are what the creation of a pod takes with 50 policies, measured with
// creating: pairs of rounds in two namespaces, with fsync or without.
//
// As fast as two cores can, which the client, etcd and the controllers share with the
// API server, what counts is CPU time, and no pod waits for a disk. A real cluster
// writes each pod through to disks, and does not run at its limit; then what somebody
// waits for is the other three. The limit is the same.
//
// No policies can come to less than those that write constants: where these are over
// the limit against none, so is everything, and what ours add to them says more.
func admissionRows(creating func(namespace, against string, at pace, fsync bool) func(context.Context) (usage, usage, error)) []row {
	const none, constants = "a namespace without policies", "two policies that write the same as constants"
	var rows []row
	for _, how := range []struct {
		name  string
		at    pace
		fsync bool
	}{
		{"1,000 pods at a time", pace{pods: admissionPods}, false},
		{"30 pods a second, etcd with fsync", pace{pods: steadyPods, every: steadyEvery}, true},
	} {
		rows = append(rows,
			row{
				name: "admission: pod create, 50 policies, " + how.name, baseline: none, runs: 5, maxRatio: 1.3,
				pair: creating(placedNamespace, bareNamespace, how.at, how.fsync),
			},
			row{
				name: "admission: constants, " + how.name, baseline: none, runs: 5,
				pair: creating(constantNamespace, bareNamespace, how.at, how.fsync),
			},
			row{
				name: "admission: 50 policies, " + how.name, baseline: constants, runs: 5, maxRatio: 1.3,
				pair: creating(placedNamespace, constantNamespace, how.at, how.fsync),
			})
	}
	return rows
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
