package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// usageWidth is how many columns help takes.
const usageWidth = 80

// usage writes how to use a command: as cobra does, but with kubectl's own flags
// apart from ours and no wider than a terminal.
func usage(cmd *cobra.Command) error {
	w := cmd.OutOrStderr()
	fmt.Fprint(w, "Usage:")
	if cmd.Runnable() && cmd.HasParent() {
		fmt.Fprintf(w, "\n  %s", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\n  %s COMMAND", cmd.CommandPath())
	}
	fmt.Fprintln(w)
	if cmd.HasExample() {
		fmt.Fprintf(w, "\nExamples:\n%s\n", cmd.Example)
	}
	usageOfCommands(w, cmd)
	usageOfFlags(w, cmd)
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\nUse \"%s COMMAND --help\" for more about a command.\n", cmd.CommandPath())
	}
	return nil
}

func usageOfCommands(w io.Writer, cmd *cobra.Command) {
	listed := func(title, group string) {
		var lines strings.Builder
		for _, c := range cmd.Commands() {
			if c.GroupID == group && c.IsAvailableCommand() {
				fmt.Fprintf(&lines, "  %-*s %s\n", c.NamePadding(), c.Name(), c.Short)
			}
		}
		if lines.Len() > 0 {
			fmt.Fprintf(w, "\n%s\n%s", title, lines.String())
		}
	}
	for _, g := range cmd.Groups() {
		listed(g.Title, g.ID)
	}
	listed("Commands:", "")
}

// usageOfFlags writes our flags and those that every kubectl command has.
func usageOfFlags(w io.Writer, cmd *cobra.Command) {
	ours, theirs := SplitFlags(cmd)
	if ours.HasAvailableFlags() {
		fmt.Fprintf(w, "\nFlags:\n%s", ours.FlagUsagesWrapped(usageWidth))
	}
	if theirs.HasAvailableFlags() {
		fmt.Fprintf(w, "\nFlags for reaching a cluster, as kubectl has them:\n%s", theirs.FlagUsagesWrapped(usageWidth))
	}
}

// SplitFlags returns the flags of a command that are ours, and those for
// reaching a cluster that every kubectl command has.
func SplitFlags(cmd *cobra.Command) (ours, theirs *pflag.FlagSet) {
	kubectl := pflag.NewFlagSet("", pflag.ContinueOnError)
	genericclioptions.NewConfigFlags(false).AddFlags(kubectl)
	ours, theirs = pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		// --cluster is ours, whatever kubectl calls by that name.
		if k := kubectl.Lookup(f.Name); k != nil && k.Usage == f.Usage {
			theirs.AddFlag(f)
		} else {
			ours.AddFlag(f)
		}
	})
	return ours, theirs
}
