package cli

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Tree returns the root command with all verbs below it, to be read by whoever
// documents them; it is not meant to be executed.
func Tree() *cobra.Command {
	return newRootCommand(newApp(genericiooptions.NewTestIOStreamsDiscard()))
}
