// Package cli is the command placement-scheduler: kube-scheduler's own command,
// with its flags, configuration and servers, around a scheduler that has our
// plugins and our source of pod groups. It maps flags to a running scheduler, and
// holds nothing but that wiring.
//
// It is not upstream's command with plugins registered in it (app.WithPlugin):
// feature gates follow from what the API server serves, and informers have to be
// prepared before the scheduler is made.
//
// It is the only package beside the sandbox that may import cmd/kube-scheduler. It
// must not know what any plugin does, nor policies and how they are compiled.
package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/tools/cache"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // the format json, as upstream's main has it
	"k8s.io/component-base/term"
	"k8s.io/component-base/version/verflag"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/registry"
)

// Name is the name of the command, of its lease, and of what its events are
// reported by.
const Name = capability.BundledScheduler

// NewCommand returns the command, with plugins of one's own beside the bundled ones.
func NewCommand(own ...registry.Plugin) *cobra.Command {
	opts := options.NewOptions()
	extra := &extraOptions{own: own}
	command := &cobra.Command{
		Use:   Name,
		Short: "kube-scheduler with the plugins of kubectl sched",
		Long: `A full kube-scheduler that also has the plugins of kubectl sched: gangs are
placed whole, from PodGroup objects of the API, of scheduling.x-k8s.io, or from
labels of pods, and scheduling gates of kubectl sched are opened when what they
wait for is there. It takes kube-scheduler's flags and configuration, runs as many
profiles as that names, and stands in for the default scheduler or beside it.`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true, // cli.Run prints them
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return opts.ComponentGlobalsRegistry.Set()
		},
		RunE: func(command *cobra.Command, _ []string) error { return run(command, opts, extra) },
	}
	sets := opts.Flags
	extra.addTo(sets.FlagSet("placement"))
	verflag.AddFlags(sets.FlagSet("global"))
	globalflag.AddGlobalFlags(sets.FlagSet("global"), command.Name(), logs.SkipLoggingConfigurationFlags())
	for _, set := range sets.FlagSets {
		command.Flags().AddFlagSet(set)
	}
	columns, _, err := term.TerminalSize(command.OutOrStdout())
	if err != nil {
		columns = 0 // not a terminal: no wrapping
	}
	cliflag.SetUsageAndHelpFunc(command, *sets, columns)
	return command
}

// run runs the scheduler until it is told to end.
func run(command *cobra.Command, opts *options.Options, extra *extraOptions) error {
	verflag.PrintAndExitIfRequested()
	gates := opts.ComponentGlobalsRegistry.FeatureGateFor(basecompatibility.DefaultKubeComponent)
	if err := logsapi.ValidateAndApply(opts.Logs, gates); err != nil {
		return fmt.Errorf("logging flags: %w", err)
	}
	cliflag.PrintFlags(command.Flags())
	informerName, err := cache.NewInformerName(Name)
	if err != nil {
		return err
	}
	opts.InformerName = informerName
	ctx := server.SetupSignalContext()
	config, scheduler, err := setup(ctx, opts, extra)
	if err != nil {
		return err
	}
	if mutable, ok := gates.(featuregate.MutableFeatureGate); ok {
		mutable.AddMetrics()
	}
	opts.ComponentGlobalsRegistry.AddMetrics()
	return app.Run(ctx, config, scheduler)
}
