package docs

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubectl-sched/kubectl-sched/cmd/kubectl-sched/cli"
)

// Commands of this plugin that a page names exist, and have the flags that they are
// given there.
func TestCommands(t *testing.T) {
	t.Parallel()
	checked, root := 0, cli.Tree()
	for _, p := range pages(t) {
		for _, b := range p.Blocks {
			for n, line := range strings.Split(strings.ReplaceAll(b.Text, "\\\n", " "), "\n") {
				checked += check(t, root, fmt.Sprintf("%s:%d", p.path, b.Line+n), line)
			}
		}
		for _, code := range p.Inline {
			checked += check(t, root, p.path, code)
		}
	}
	if checked < 100 {
		t.Errorf("%d commands only", checked)
	}
}

// TestListOfCommands holds that the list of the README is of commands that there are, each
// with what it is for, and that each says more of itself.
func TestListOfCommands(t *testing.T) {
	t.Parallel()
	count := 0
	for _, b := range readPage(t, filepath.Join(root, "README.md")).Blocks {
		if !slices.Contains(b.Remarks, "run by TestListOfCommands in test/docs") {
			continue
		}
		for line := range strings.Lines(b.Text) {
			command, what, _ := strings.Cut(strings.TrimSpace(line), "   ")
			name := strings.TrimPrefix(command, "kubectl sched ")
			if c := child(cli.Tree(), name); c == nil || c.Hidden || strings.TrimSpace(what) == "" {
				t.Errorf("%q is no command with what it is for", line)
				continue
			}
			if out, code := shell(t, t.TempDir(), noCluster, command+" --help"); code != 0 || !strings.Contains(out, command) {
				t.Errorf("%s --help: exit code %d:\n%s", command, code, out)
			}
			count++
		}
	}
	if count < 8 {
		t.Errorf("%d commands only", count)
	}
}

// check checks the commands in a line, and returns how many there are.
func check(t *testing.T, root *cobra.Command, where, line string) (count int) {
	for _, name := range []string{"kubectl sched ", "kubectl-sched "} {
		for rest := line; ; {
			at := strings.Index(rest, name)
			if at < 0 {
				break
			}
			before := rest[:at]
			rest = rest[at+len(name):]
			if name == "kubectl-sched " && strings.TrimSpace(before) != "" || before != "" && !strings.HasSuffix(before, " ") && !strings.HasSuffix(before, "(") && !strings.HasSuffix(before, `"`) && !strings.HasSuffix(before, "/") {
				continue // a part of another word
			}
			count++
			if err := known(root, words(rest)); err != nil {
				t.Errorf("%s: %s%s: %v", where, name, rest, err)
			}
		}
	}
	return count
}

// words are the arguments up to the end of the command.
func words(line string) []string {
	var out []string
	for _, w := range strings.Fields(line) {
		if w == "|" || w == "-->" || w == ">" || w == "2>&1" || w == "&&" || w == "||" || w == ";" || strings.HasPrefix(w, "#") {
			break
		}
		end := strings.TrimRight(w, ")\"';,.`")
		out = append(out, end)
		if strings.HasSuffix(w, ";") || strings.HasSuffix(w, `"`) && !strings.Contains(w[:len(w)-1], `"`) {
			break
		}
	}
	return out
}

// known reports what of a command line there is not.
func known(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	command := root
	for len(args) > 0 {
		next := child(command, args[0])
		if next == nil {
			break
		}
		command, args = next, args[1:]
	}
	if !command.HasParent() && !strings.HasPrefix(args[0], "-") {
		if strings.ToUpper(args[0]) == args[0] || strings.HasPrefix(args[0], "…") {
			return nil // a word that stands for any
		}
		return fmt.Errorf("there is no command %q", args[0])
	}
	for _, arg := range args {
		if err := knownFlag(command, arg); err != nil {
			return err
		}
	}
	return nil
}

func child(command *cobra.Command, name string) *cobra.Command {
	for _, c := range command.Commands() {
		if c.Name() == name || c.HasAlias(name) {
			return c
		}
	}
	return nil
}

func knownFlag(command *cobra.Command, arg string) error {
	arg = strings.TrimLeft(arg, "[")
	flags := func(find func(*pflag.FlagSet) *pflag.Flag) bool {
		return find(command.Flags()) != nil || find(command.InheritedFlags()) != nil
	}
	name, _, _ := strings.Cut(strings.TrimRight(arg, "]"), "=")
	switch {
	case name == "--" || name == "-" || name == "-h" || name == "--help":
		return nil
	case strings.HasPrefix(name, "--"):
		if !flags(func(s *pflag.FlagSet) *pflag.Flag { return s.Lookup(name[2:]) }) {
			return fmt.Errorf("%s has no flag %s", command.CommandPath(), name)
		}
	case strings.HasPrefix(name, "-") && len(name) > 1:
		if !flags(func(s *pflag.FlagSet) *pflag.Flag { return s.ShorthandLookup(name[1:2]) }) {
			return fmt.Errorf("%s has no flag %s", command.CommandPath(), name)
		}
	}
	return nil
}
