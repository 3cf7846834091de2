// Command own-plugin is the bundled scheduler with one more plugin, of one's own:
// this file is all that it takes. Flags, configuration, metrics and containment are
// those of placement-scheduler.
//
// It must not know what the plugin does.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // the client's metrics at /metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // the build's version at /metrics

	scheduler "github.com/kubectl-sched/kubectl-sched/cmd/placement-scheduler/cli"
	"github.com/kubectl-sched/kubectl-sched/examples/own-plugin/inventory"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/registry"
)

func main() {
	os.Exit(cli.Run(scheduler.NewCommand(registry.Plugin{Name: inventory.Name, New: inventory.New})))
}
