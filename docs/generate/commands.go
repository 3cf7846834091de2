package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubectl-sched/kubectl-sched/cmd/kubectl-sched/cli"
)

// commands documents each verb with its own flags. Those that every kubectl
// command has are listed once.
func commands() (string, error) {
	var b strings.Builder
	b.WriteString("# The commands\n\n" +
		"Commands that reach a cluster also take kubectl's own flags for that (`--context`, `--namespace`, `--kubeconfig` …), which are not listed again.\n")
	for _, c := range cli.Tree().Commands() {
		if c.IsAvailableCommand() {
			command(&b, c)
		}
	}
	return b.String(), nil
}

func command(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n", c.CommandPath(), strings.TrimSpace(first(c.Long, c.Short)))
	fmt.Fprintf(b, "\n```\n%s\n```\n", c.UseLine())
	if c.Example != "" {
		fmt.Fprintf(b, "\n```console\n%s\n```\n", strings.TrimRight(c.Example, "\n"))
	}
	var flags strings.Builder
	ours, _ := cli.SplitFlags(c)
	ours.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		kind, usage := pflag.UnquoteUsage(f)
		if kind != "" {
			name += " " + kind
		}
		fmt.Fprintf(&flags, "| `%s` | %s |\n", name, cell(usage))
	})
	if flags.Len() > 0 {
		fmt.Fprintf(b, "\n| flag | what it does |\n|---|---|\n%s", flags.String())
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			command(b, sub)
		}
	}
}

func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
