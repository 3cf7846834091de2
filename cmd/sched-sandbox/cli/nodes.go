package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-sched/kubectl-sched/internal/sandbox"
)

func newNodes(where *place) *cobra.Command {
	var file string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "nodes",
		Short: "Make the fake nodes those of a file, or show the pools there are",
		Long: `nodes -f FILE makes the fake nodes of the sandbox those that the file describes:
it creates, changes and removes nodes, and returns when all are Ready. The file is
the whole truth: a pool that is no longer in it goes, with the pods on its nodes.
Nodes that you made in another way are left alone, and so are the labels and
taints that you put on nodes by hand. Without -f it lists the pools.

The file:

  pools:
  - name: gpu                      # the only field that must be there
    count: 40                      # default 1
    nodeName: "{pool}-{index}"     # variables: pool, index (from 0), zone, region
    zones: [eu-1a, eu-1b]          # given to the nodes in turn
    region: eu-1
    labels:                        # beside hostname, os, arch, zone and region
      tier: accelerated            # values may hold the variables, and {name}
    withoutLabels: [kubernetes.io/arch]
    annotations: {owner: ml}
    taints:
    - nvidia.com/gpu=present:NoSchedule
    - {key: spot, effect: PreferNoSchedule}
    capacity:                      # default 8 cpu, 32Gi memory, 110 pods,
      cpu: 64                      # 100Gi ephemeral-storage
      memory: 512Gi
      nvidia.com/gpu: 8
    unschedulable: false           # true cordons the nodes

How pods run: at once when they are bound. A Job's pod succeeds at once, or after
the duration in its annotation ` + sandbox.RunForAnnotation + ` ("90s").`,
		Example: `  sched-sandbox nodes -f pools.yaml
  sched-sandbox nodes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			clients, err := where.clients()
			if err != nil {
				return err
			}
			if file == "" {
				return printPools(cmd, clients)
			}
			pools, _, err := readPools(file, cmd.InOrStdin())
			if err != nil {
				return err
			}
			return applyPools(cmd, clients, pools, timeout)
		},
	}
	cmd.Flags().StringVarP(&file, "filename", "f", "", "file with the pools, or - for standard input")
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "how long to wait until all nodes are ready")
	return cmd
}

// clients returns a client of the sandbox.
func (p *place) clients() (kubernetes.Interface, error) {
	remote, err := p.find()
	if err != nil {
		return nil, err
	}
	running, err := remote.Running()
	if err != nil {
		return nil, err
	}
	if !running {
		return nil, fmt.Errorf("sandbox %q does not run; start it with \"sched-sandbox up\"", p.name)
	}
	config, err := clientcmd.BuildConfigFromFlags("", remote.Kubeconfig())
	if err != nil {
		return nil, err
	}
	return sandbox.NewClient(config)
}

// readPools reads a file of pools, or standard input for "-", and returns its
// text too.
func readPools(file string, in io.Reader) (pools []sandbox.Pool, data []byte, err error) {
	if file == "-" {
		file = "<stdin>"
		data, err = io.ReadAll(in)
	} else {
		data, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read pools: %w", err)
	}
	pools, err = sandbox.ParsePools(file, data)
	return pools, data, err
}

func applyPools(cmd *cobra.Command, clients kubernetes.Interface, pools []sandbox.Pool, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
	defer cancel()
	begin := time.Now()
	changes, err := sandbox.ApplyNodes(ctx, clients, pools)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "nodes: %d created, %d changed, %d removed, %d as they were; all ready after %.1f s\n",
		changes.Created, changes.Changed, changes.Removed, changes.Unchanged, time.Since(begin).Seconds())
	return nil
}

func printPools(cmd *cobra.Command, clients kubernetes.Interface) error {
	list, err := clients.CoreV1().Nodes().List(cmd.Context(), metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	type count struct {
		nodes, ready int
		zones        map[string]bool
	}
	pools := map[string]*count{}
	for i := range list.Items {
		node := &list.Items[i]
		name := node.Annotations[sandbox.PoolAnnotation]
		if name == "" {
			name = "(none)"
		}
		if pools[name] == nil {
			pools[name] = &count{zones: map[string]bool{}}
		}
		pools[name].nodes++
		if zone := node.Labels[corev1.LabelTopologyZone]; zone != "" {
			pools[name].zones[zone] = true
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				pools[name].ready++
			}
		}
	}
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "POOL\tNODES\tREADY\tZONES")
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		pool := pools[name]
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\n", name, pool.nodes, pool.ready, len(pool.zones))
	}
	return table.Flush()
}
