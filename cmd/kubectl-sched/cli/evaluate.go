package cli

import (
	"github.com/spf13/cobra"

	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

// evaluateCommand is the hidden command that is the child's side of
// load.Isolated.
const evaluateCommand = "__evaluate"

func newEvaluateCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:    evaluateCommand,
		Short:  "Evaluate policies for the parent process",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(cmd *cobra.Command, _ []string) error { return load.Serve(cmd.Context(), a.In, a.Out) },
	}
}
