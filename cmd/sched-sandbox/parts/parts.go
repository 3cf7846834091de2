// Package parts holds the main functions of the programs that make up a
// control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler
// and kwok. They are upstream's own, linked into one binary so that they share
// most of their code, and each runs in a process of its own.
//
// It is the only package beside tests that links the servers of Kubernetes. It
// must not know how parts are started, in which order, or with which flags:
// that is internal/sandbox.
package parts

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // for the time zones of CronJobs

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // the client's metrics at /metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // the build's version at /metrics
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"

	"github.com/kubectl-sched/kubectl-sched/internal/sandbox"
)

// Run runs the part that args[0] names, with the rest of args as its flags,
// until it ends, and returns its exit code. It returns false at once when
// args[0] names no part.
//
// Upstream's programs read os.Args on their own, so Run sets it to args.
func Run(args []string) (code int, isPart bool) {
	if len(args) == 0 {
		return 0, false
	}
	run, isPart := table()[sandbox.Part(args[0])]
	if !isPart {
		return 0, false
	}
	sandbox.EndWithSupervisor()
	os.Args = args
	return run(), true
}

// table lists the parts that this binary can be.
func table() map[sandbox.Part]func() int {
	return map[sandbox.Part]func() int{
		sandbox.Etcd:              runEtcd,
		sandbox.APIServer:         func() int { return cli.Run(apiserver.NewAPIServerCommand()) },
		sandbox.ControllerManager: func() int { return cli.Run(controllermanager.NewControllerManagerCommand()) },
		sandbox.Scheduler:         func() int { return cli.Run(scheduler.NewSchedulerCommand()) },
		sandbox.Kwok:              runKwok,
	}
}

// runEtcd runs a single etcd member from the configuration file that its one
// flag, --config-file, names (the format is etcd's own).
func runEtcd() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serveEtcd(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "etcd: %v\n", err)
		return 1
	}
	return 0
}

func serveEtcd(ctx context.Context, args []string) error {
	flags := pflag.NewFlagSet("etcd", pflag.ContinueOnError)
	file := flags.String("config-file", "", "etcd's configuration file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	config, err := embed.ConfigFromFile(*file)
	if err != nil {
		return fmt.Errorf("read configuration %s: %w", *file, err)
	}
	server, err := embed.StartEtcd(config)
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	defer server.Close()
	select {
	case <-ctx.Done():
		return nil
	case err := <-server.Err():
		return err
	case <-server.Server.StopNotify():
		return fmt.Errorf("stopped by itself")
	}
}

// runKwok runs kwok's controller as its own main function does: the context
// carries the configuration documents that --config names.
func runKwok() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	flags := pflag.NewFlagSet("kwok", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	ctx, logger := kwoklog.InitFlags(ctx, flags)
	ctx, err := kwokconfig.InitFlags(ctx, flags)
	if err != nil {
		logger.Error("Read configuration", "err", err)
		return 1
	}
	command := kwok.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(flags)
	// Upstream's other programs, linked here too, give every command a --version
	// of their own kind, which cobra would trip over.
	command.Version = ""
	if err := command.ExecuteContext(ctx); err != nil {
		logger.Error("Exit", "err", err)
		return 1
	}
	return 0
}
