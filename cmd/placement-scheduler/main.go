// Command placement-scheduler is a kube-scheduler with the plugins of
// kubectl sched in it; "placement-scheduler --help" lists its flags, which are
// kube-scheduler's.
//
// It must not know flags, plugins or configuration, which are cli's and the
// registry's.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // the client's metrics at /metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // the build's version at /metrics

	scheduler "github.com/kubectl-sched/kubectl-sched/cmd/placement-scheduler/cli"
)

func main() { os.Exit(cli.Run(scheduler.NewCommand())) }
