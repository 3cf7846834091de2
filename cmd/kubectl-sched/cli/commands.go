package cli

import "github.com/spf13/cobra"

// commands returns the constructors of every verb, in the order of the help.
func commands() []func(*app) *cobra.Command {
	return []func(*app) *cobra.Command{
		newInitCommand,
		newCatalogCommand,
		newImportCommand,
		newFmtCommand,
		newLintCommand,
		newTestCommand,
		newCompileCommand,
		newDiffCommand,
		newReviewCommand,
		newApplyCommand,
		newUndoCommand,
		newDeleteCommand,
		newSchedulerCommand,
		newStatusCommand,
		newHistoryCommand,
		newSnapshotCommand,
		newGatesCommand,
		newSimulateCommand,
		newWhyCommand,
		newFnCommand,
		newExplainCommand,
		newVersionCommand,
		newCompletionCommand,
		newEvaluateCommand,
	}
}
