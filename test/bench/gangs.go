package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-sched/kubectl-sched/internal/sandbox"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
)

const (
	// virtualPairs is how often the contended load is measured with the bundled scheduler
	// and with the least one in turn, at virtualQPS requests a second, and once at
	// kube-scheduler's default.
	virtualPairs, virtualQPS, defaultQPS = 3, 1000, 50
	// mostRatio is the most that the bundled scheduler may take of the least one's time
	// and median wait.
	mostRatio = 1.0
	// leastRatio is how many pods a second there must be for those of the in-tree
	// group cycle.
	leastRatio = 0.9
	// fewNodes have half of the room that the contended load would need at once,
	// manyNodes more than any load needs.
	fewNodes, manyNodes = 100, 5000
)

// contended is 2:1: half of the gangs fit at a time.
var contended = gangLoad{gangs: 100, size: 16, run: 2 * time.Second, interleaved: true, limit: 5 * time.Minute, pairs: 3}

// uncontended are loads that fit at once. The ratios of few large gangs vary most: each
// is whole early or late by how the machine is at one time.
var uncontended = []gangLoad{
	{gangs: 1000, size: 3, limit: 5 * time.Minute, pairs: 3},
	{gangs: 3, size: 1000, limit: 5 * time.Minute, pairs: 7},
}

// gangBench is a control plane on which schedulers are started in turn.
type gangBench struct {
	*controlPlane
	dir, scheduler string
	virtual        string // the least scheduler with virtual groups
	kube           kubernetes.Interface
	objects        dynamic.Interface
	started, nodes int
}

// The names of what is measured of gangs; gangsAll is both.
const (
	gangsAll      = "gangs"
	gangsVirtual  = "gangs-virtual"
	gangsCompared = "gangs-compared"
)

// gangLoads returns which of these names are among the arguments: all loads where
// there are no arguments at all.
func gangLoads(args []string) (names []string) {
	if len(args) == 0 {
		return []string{gangsAll}
	}
	for _, name := range []string{gangsAll, gangsVirtual, gangsCompared} {
		if slices.Contains(args, name) {
			names = append(names, name)
		}
	}
	return names
}

// measureGangs measures loads of gangs and prints what came of them.
func measureGangs(ctx context.Context, names []string, dir, binary, scheduler string, out io.Writer) (err error) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "gangs\tby\tQPS\twhole\tin part\tseconds\tpods/s\tCPU a pod\twait p50\twait max\tbinding p50\tlimit\t")
	all := slices.Contains(names, gangsAll)
	if all || slices.Contains(names, gangsVirtual) {
		err = errors.Join(err, measureVirtual(ctx, dir, binary, scheduler, table))
	}
	if all || slices.Contains(names, gangsCompared) {
		err = errors.Join(err, measureCompared(ctx, dir, binary, scheduler, table))
	}
	return errors.Join(err, table.Flush())
}

// measureVirtual runs the contended load where the API server has no PodGroups, with the
// bundled scheduler and with the least one that places such gangs whole. It is an error
// if the bundled one is slower, or a gang is not whole.
func measureVirtual(ctx context.Context, dir, binary, scheduler string, table io.Writer) (err error) {
	virtual := filepath.Join(dir, "virtual-groups")
	if err := command(ctx, "go", "build", "-o", virtual, "./test/bench/virtual").Run(); err != nil {
		return fmt.Errorf("build the least scheduler with virtual groups: %w", err)
	}
	b, err := startGangs(ctx, filepath.Join(dir, "virtual"), binary, scheduler, sandbox.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Stop()) }()
	b.virtual = virtual
	return errors.Join(b.againstLeast(ctx, virtualQPS, virtualPairs, table), b.againstLeast(ctx, defaultQPS, 1, table))
}

// againstLeast measures the contended load so many times with both.
func (b *gangBench) againstLeast(ctx context.Context, qps, pairs int, table io.Writer) error {
	var totals, middles []float64
	for range pairs {
		var of [2]gangResult
		for i, who := range []by{byVirtual, byBundled} {
			r, err := b.measure(ctx, contended, who, qps)
			if err != nil {
				return err
			}
			if r.whole < contended.gangs || r.part > 0 {
				return fmt.Errorf("contended gangs at %d QPS by the %s: %d of %d whole, %d in part", qps, who, r.whole, contended.gangs, r.part)
			}
			printGangs(table, contended, who, qps, r, "")
			of[i] = r
		}
		totals = append(totals, of[1].total.Seconds()/of[0].total.Seconds())
		middles = append(middles, of[1].middle().Seconds()/of[0].middle().Seconds())
	}
	total, middle := median(totals), median(middles)
	limit := fmt.Sprintf("seconds %.2f and wait p50 %.2f times those of the least scheduler, at most %.2f", total, middle, mostRatio)
	over := total > mostRatio || middle > mostRatio
	if over {
		limit += " EXCEEDED"
	}
	fmt.Fprintf(table, "%d of %d\t\t%d\t\t\t\t\t\t\t\t\t%s\t\n", contended.gangs, contended.size, qps, limit)
	if over {
		return fmt.Errorf("contended gangs at %d QPS: %s", qps, limit)
	}
	return nil
}

// measureCompared compares the bundled scheduler, for PodGroup objects of
// scheduling.x-k8s.io, with the in-tree group cycle alone, for those of the API:
// the same program without a plugin of ours, on the same API server.
func measureCompared(ctx context.Context, dir, binary, scheduler string, table io.Writer) (err error) {
	b, err := startGangs(ctx, filepath.Join(dir, "compared"), binary, scheduler, sandbox.Options{
		FeatureGates:  map[string]bool{"GenericWorkload": true},
		RuntimeConfig: map[string]string{"scheduling.k8s.io/v1beta1": "true"},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Stop()) }()
	problem := b.compare(ctx, contended, table)
	if err := b.setNodes(ctx, manyNodes); err != nil {
		return errors.Join(problem, err)
	}
	for _, load := range uncontended {
		problem = errors.Join(problem, b.compare(ctx, load, table))
	}
	return problem
}

// compare runs the load with both in turn. It is an error if the bundled scheduler
// is slower than it may be, or a gang is not whole.
func (b *gangBench) compare(ctx context.Context, load gangLoad, table io.Writer) error {
	var ratios []float64
	native := load
	native.native = true
	for pair := range load.pairs {
		var of [2]gangResult
		for i := range of {
			who := (i + pair) % 2 // who is first changes
			var err error
			if of[who], err = b.measure(ctx, [2]gangLoad{load, native}[who], [2]by{byBundled, byInTree}[who], 1000); err != nil {
				return err
			}
		}
		ours, theirs := of[0], of[1]
		printGangs(table, load, byBundled, 1000, ours, "")
		printGangs(table, load, byInTree, 1000, theirs, "")
		if ours.whole < load.gangs || theirs.whole < load.gangs {
			return fmt.Errorf("%d gangs of %d: %d whole, and %d by the in-tree group cycle", load.gangs, load.size, ours.whole, theirs.whole)
		}
		ratios = append(ratios, ours.podsPerSecond(load)/theirs.podsPerSecond(load))
	}
	limit := fmt.Sprintf("median ratio %.2f of %d pairs (%.2f–%.2f), at least %.2f", median(ratios), len(ratios), slices.Min(ratios), slices.Max(ratios), leastRatio)
	if median(ratios) < leastRatio {
		limit += " NOT REACHED"
	}
	fmt.Fprintf(table, "%d of %d\t\t\t\t\t\t\t\t\t\t\t%s\t\n", load.gangs, load.size, limit)
	if median(ratios) < leastRatio {
		return fmt.Errorf("%d gangs of %d: %.2f times the pods a second of the in-tree group cycle; want %.2f", load.gangs, load.size, median(ratios), leastRatio)
	}
	return nil
}

func printGangs(table io.Writer, load gangLoad, who by, qps int, r gangResult, limit string) {
	middle, longest, span := "", "", ""
	if r.whole > 0 {
		middle = fmt.Sprintf("%.1f s", r.middle().Seconds())
		longest = fmt.Sprintf("%.1f s", r.waits[len(r.waits)-1].Seconds())
		span = fmt.Sprintf("%.2f s", r.spans[len(r.spans)/2].Seconds())
	}
	fmt.Fprintf(table, "%d of %d\t%s\t%d\t%d\t%d\t%.1f\t%.0f\t%.2f ms\t%s\t%s\t%s\t%s\t\n", load.gangs, load.size, who, qps, r.whole, r.part,
		r.total.Seconds(), r.podsPerSecond(load), 1000*r.cpu.Seconds()/float64(load.gangs*load.size), middle, longest, span, limit)
}

// startGangs starts a control plane with few nodes, and PodGroup objects. Nothing in it
// acts for the nodes.
func startGangs(ctx context.Context, dir, binary, scheduler string, o sandbox.Options) (_ *gangBench, err error) {
	fmt.Fprintln(os.Stderr, "starting a control plane …")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	o.ExtraArgs = nobody
	plane, err := startControlPlane(ctx, filepath.Join(dir, "sandbox"), binary, o)
	if err != nil {
		return nil, err
	}
	b := &gangBench{controlPlane: plane, dir: dir, scheduler: scheduler}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Stop())
		}
	}()
	config := b.config()
	if b.kube, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	if b.objects, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	if err := b.setNodes(ctx, fewNodes); err != nil {
		return nil, err
	}
	return b, b.installPodGroups(ctx)
}

// nobody has nothing act for the nodes: no kubelets, which would write on every pod,
// and no controller that taints nodes without one. What is left is the scheduler's.
var nobody = map[sandbox.Part][]string{
	sandbox.Kwok:              {"--manage-all-nodes=false", "--manage-nodes-with-label-selector=bench=none"},
	sandbox.ControllerManager: {"--controllers=-node-lifecycle-controller"},
	sandbox.APIServer:         {"--disable-admission-plugins=TaintNodesByCondition"}, // which that controller would undo
}

// setNodes makes nodes until there are so many, each for 8 pods.
func (b *gangBench) setNodes(ctx context.Context, n int) error {
	room := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("8"),
		corev1.ResourceMemory: resource.MustParse("64Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	var group errgroup.Group
	group.SetLimit(gangParallel)
	for i := b.nodes; i < n; i++ {
		group.Go(func() error {
			name := fmt.Sprintf("bench-%05d", i)
			node := &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%3)}},
				Status: corev1.NodeStatus{
					Capacity: room, Allocatable: room,
					Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
				},
			}
			_, err := b.kube.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
			return err
		})
	}
	b.nodes = n
	return group.Wait()
}

// installPodGroups installs the CRD of the PodGroup objects, with the status that
// scheduler-plugins gives it.
func (b *gangBench) installPodGroups(ctx context.Context) error {
	open := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{
			"name":        podGroupObjects.GroupResource().String(),
			"annotations": map[string]any{"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins/pull/50"},
		},
		"spec": map[string]any{
			"group": podGroupObjects.Group, "scope": "Namespaced",
			"names": map[string]any{"plural": "podgroups", "singular": "podgroup", "kind": "PodGroup", "listKind": "PodGroupList"},
			"versions": []any{map[string]any{
				"name": podGroupObjects.Version, "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema":       map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"spec": open, "status": open}}},
			}},
		},
	}}
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	if _, err := b.objects.Resource(definitions).Create(ctx, definition, metav1.CreateOptions{}); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := b.objects.Resource(podGroupObjects).List(ctx, metav1.ListOptions{})
		return err == nil, nil
	})
}

// by says who places the gangs of a load.
type by string

const (
	// byBundled is the bundled scheduler with Gang.
	byBundled by = "bundled scheduler"
	// byInTree is the same program without any plugin of ours, for the API's groups.
	byInTree by = "in-tree group cycle"
	// byVirtual is the least scheduler with virtual groups.
	byVirtual by = "least scheduler with virtual groups"
)

// measure runs the load with a scheduler that is started for it.
func (b *gangBench) measure(ctx context.Context, load gangLoad, who by, qps int) (result gangResult, err error) {
	b.started++
	name := fmt.Sprintf("bench-%d", b.started)
	fmt.Fprintf(os.Stderr, "%d gangs of %d at %d QPS, %s …\n", load.gangs, load.size, qps, who)
	process, err := b.process(ctx, load, who, name, qps)
	if err != nil {
		return result, err
	}
	log, err := os.Create(filepath.Join(b.dir, name+".log"))
	if err != nil {
		return result, err
	}
	defer log.Close()
	process.Stdout, process.Stderr = log, log
	if err := process.Start(); err != nil {
		return result, err
	}
	defer func() {
		_ = process.Process.Kill()
		_ = process.Wait() // killed is how it ends
		result.cpu = process.ProcessState.UserTime() + process.ProcessState.SystemTime()
	}()
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		if who == byVirtual { // it takes no lease
			data, err := os.ReadFile(log.Name())
			return bytes.Contains(data, []byte("ready\n")), err
		}
		lease, err := b.kube.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, name, metav1.GetOptions{})
		return err == nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "", nil
	})
	if err != nil {
		data, _ := os.ReadFile(log.Name())
		return result, fmt.Errorf("the scheduler does not begin: %w\n%s", err, data)
	}
	if result, err = runGangs(ctx, b.kube, b.objects, name, load); err == nil {
		fmt.Fprintf(os.Stderr, "  %d whole in %.1f s\n", result.whole, result.total.Seconds())
	}
	return result, err
}

// process returns the scheduler of that name, which is not started yet.
func (b *gangBench) process(ctx context.Context, load gangLoad, who by, name string, qps int) (*exec.Cmd, error) {
	if who == byVirtual {
		return command(ctx, b.virtual, "--kubeconfig="+b.Kubeconfig(), "--name="+name, "--label="+gangkey.Label, "--pattern="+groupPattern,
			fmt.Sprintf("--qps=%d", qps), fmt.Sprintf("--gangs=%d", load.gangs), fmt.Sprintf("--size=%d", load.size)), nil
	}
	config := fmt.Sprintf(`
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %q, qps: %d, burst: %d}
leaderElection: {resourceName: %s}
profiles:
- schedulerName: %s
`, b.Kubeconfig(), qps, 2*qps, name, name)
	args := []string{"--secure-port=0"}
	if who == byBundled {
		config += "  plugins: {multiPoint: {enabled: [{name: Gang}]}}\n"
	} else {
		args = append(args, "--feature-gates=GenericWorkload=true")
	}
	file := filepath.Join(b.dir, name+".yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	return command(ctx, b.scheduler, append(args, "--config="+file)...), nil
}
