package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-sched/kubectl-sched/internal/install"
	"github.com/kubectl-sched/kubectl-sched/internal/report"
)

// maxConfiguration is how large a configuration may be, in bytes: a ConfigMap takes
// no more.
const maxConfiguration = 1 << 20

// readConfiguration reads the file of a configuration.
func readConfiguration(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxConfiguration+1))
	if err == nil && len(data) > maxConfiguration {
		err = fmt.Errorf("%s has more than 1 MiB, which no ConfigMap takes", name)
	}
	return data, err
}

func newSchedulerStatusCommand(a *app) *cobra.Command {
	config, output := a.newConfigFlags(), string(report.Text)
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show whether the bundled scheduler runs, which replica leads, and who uses its profiles",
		Long: "Show which image and how many replicas of the bundled scheduler run, which of them leads,\n" +
			"and of each profile how many workloads name it, how many of their pods have a node and\n" +
			"how many wait for one. The exit code is above 1 where no replica schedules.",
		Example: "  kubectl sched scheduler status\n  kubectl sched scheduler status -o json",
		Args:    cobra.NoArgs,
		RunE: runE(func([]string) (*schedulerStatusOptions, error) {
			format, err := report.ParseFormat(output, report.Text, report.JSON, report.YAML)
			return &schedulerStatusOptions{a, config, format}, err
		}),
	}
	config.AddFlags(cmd.Flags())
	cmd.Flags().StringVarP(&output, "output", "o", output, "Format: text, json or yaml")
	completeValues(cmd, "output", []string{"text", "json", "yaml"})
	return cmd
}

type schedulerStatusOptions struct {
	app    *app
	config *genericclioptions.ConfigFlags
	format report.Format
}

// Validate implements options.
func (o *schedulerStatusOptions) Validate() error { return nil }

var errNotInstalled = errors.New("there is no bundled scheduler in this cluster")

// Run implements options.
func (o *schedulerStatusOptions) Run(ctx context.Context) error {
	client, err := connectTo(o.config)
	if err != nil {
		return err
	}
	running, err := install.Find(ctx, client)
	if err != nil {
		return err
	}
	if running == nil {
		return errNotInstalled
	}
	status, findings, err := install.StatusOf(ctx, client, running, o.app.now())
	if err != nil {
		return err
	}
	if err := report.Scheduler(o.app.Out, o.format, status, o.app.reportOptions(o.app.Out)); err != nil {
		return err
	}
	return o.app.failOn(findings.Sort())
}

func newSchedulerUninstallCommand(a *app) *cobra.Command {
	f := &uninstallFlags{config: a.newConfigFlags()}
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Take the bundled scheduler out of the cluster",
		Long: "Remove all that install wrote. While a workload, an admission policy or a waiting pod\n" +
			"names one of the profiles it refuses, and says which: their pods would wait for ever.\n" +
			"Pods that run already stay where they are.",
		Example: "  kubectl sched scheduler uninstall --dry-run=server\n" +
			"  kubectl sched scheduler uninstall --recreate-pods",
		Args: cobra.NoArgs,
		RunE: runE(func([]string) (*uninstallOptions, error) {
			return &uninstallOptions{app: a, config: f.config, dryRun: f.dryRun, recreate: f.recreate}, nil
		}),
	}
	f.config.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&f.dryRun, "dry-run", dryRunNone, "\"server\" says what would be removed; nothing is")
	cmd.Flags().BoolVar(&f.recreate, "recreate-pods", false, "Delete pods that wait and name a profile, where a controller makes them again")
	completeValues(cmd, "dry-run", []string{dryRunNone, dryRunServer})
	return cmd
}

type uninstallFlags struct {
	config   *genericclioptions.ConfigFlags
	dryRun   string
	recreate bool
}

type uninstallOptions struct {
	app      *app
	config   *genericclioptions.ConfigFlags
	dryRun   string
	recreate bool
}

// Validate implements options.
func (o *uninstallOptions) Validate() error {
	if o.dryRun != dryRunNone && o.dryRun != dryRunServer {
		return fmt.Errorf("--dry-run must be \"none\" or \"server\", not %q", o.dryRun)
	}
	return nil
}

// Run implements options.
func (o *uninstallOptions) Run(ctx context.Context) error {
	client, err := connectTo(o.config)
	if err != nil {
		return err
	}
	writer := &install.Writer{Client: client, DryRun: o.dryRun == dryRunServer, Hear: func(w install.Written) {
		o.app.sayWritten(w, o.dryRun == dryRunServer)
	}}
	running, err := install.Find(ctx, client)
	if err != nil {
		return err
	}
	if running != nil {
		users, findings, err := install.FindUsers(ctx, client, running.Profiles)
		if err != nil {
			return err
		}
		if err := o.app.failOn(append(findings, users.Findings(o.recreate)...).Sort()); err != nil {
			return err
		}
		if err := writer.Remove(ctx); err != nil {
			return interrupted(ctx, err)
		}
		return interrupted(ctx, writer.Recreate(ctx, users.Pending))
	}
	// An earlier run may have come only so far.
	return interrupted(ctx, writer.Remove(ctx))
}
