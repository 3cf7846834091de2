package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// newGroupCommand makes a verb of verbs: by itself it shows its help, and a word
// that is none of its verbs is a usage error.
func newGroupCommand(group *cobra.Command, verbs ...*cobra.Command) *cobra.Command {
	group.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		var names []string
		for _, v := range cmd.Commands() {
			if !v.Hidden {
				names = append(names, v.Name())
			}
		}
		return usageError{fmt.Errorf("unknown command %q; %s", cmd.Name()+" "+args[0], didYouMean(args[0], names))}
	}
	group.Args = func(*cobra.Command, []string) error { return nil } // RunE tells better
	group.AddCommand(verbs...)
	return group
}
