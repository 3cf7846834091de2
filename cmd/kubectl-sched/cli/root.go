// Package cli is the command line of kubectl sched: one file per verb, nothing
// but flags and wiring.
//
// Each verb goes Flags (what the user wrote) → Options (resolved values and
// dependencies) → Validate → Run(ctx). What a verb needs of the outside world
// it gets from app; there are no package variables. The package must not hold
// any knowledge of placement: that is in the packages which it wires together.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/kubectl-sched/kubectl-sched/internal/lint/suppress"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Main runs the command line args (without the program's name) and returns the
// exit code: 0 for success, 1 for findings of lint and differences of diff, 2
// or more for everything that went wrong, usage errors included.
func Main(args []string, streams genericiooptions.IOStreams, release Release) int {
	// The client libraries log what they return as an error too, and a user is
	// told once.
	klog.SetLogger(logr.Discard())
	ctx, stop := interruptible(context.Background())
	defer stop()
	a := newApp(streams)
	a.release = release
	return run(ctx, a, args)
}

// oneWish is within what time several signals mean the same: a terminal sends
// its interrupt to a whole group of processes, and whoever runs them passes on
// another.
const oneWish = time.Second

// interruptible returns a context that the first signal ends, so that the
// command can end in good order; the next one ends the process at once.
func interruptible(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
			cancel()
			time.AfterFunc(oneWish, func() { signal.Stop(signals) })
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel()
	}
}

// Standard returns the process's own streams.
func Standard() genericiooptions.IOStreams {
	return genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
}

// app is what the commands need of the world outside.
type app struct {
	genericiooptions.IOStreams
	// release is what this program was released as.
	release Release
	// now is the clock.
	now func() time.Time
	// getenv reads an environment variable, "" for one that is not set.
	getenv func(string) string
	// getwd returns the working directory.
	getwd func() (string, error)
	// executable returns the path of this program.
	executable func() (string, error)
	// load evaluates policies.
	load loader
	// texts are what findings may point into besides files.
	texts texts
	// objects are those that may say that findings about them are to be ignored.
	objects []suppress.Object
	// findings are all that the command has given, for sinks.
	findings diag.Findings
	// ignored are findings that somebody has said are meant.
	ignored []diag.Ignored
	// sinks are where they go besides, or in place of, the text that people read.
	sinks []findingsSink
}

func newApp(streams genericiooptions.IOStreams) *app {
	a := &app{IOStreams: streams, now: time.Now, getenv: os.Getenv, getwd: os.Getwd, executable: os.Executable, texts: texts{}}
	a.load = a.isolated
	return a
}

// run executes the arguments and turns the error that comes back into messages
// and an exit code.
func run(ctx context.Context, a *app, args []string) int {
	root := newRootCommand(a)
	root.SetArgs(args)
	if err := unknownCommand(root, args); err != nil {
		return a.exit(root, err)
	}
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil || ctx.Err() == nil {
		return a.deliver(a.exit(cmd, err))
	}
	a.exit(cmd, interrupted(ctx, err))
	return a.deliver(exitInterrupted)
}

const (
	groupWrite = "write"
	groupApply = "apply"
	groupLook  = "look"
)

// newRootCommand returns the command with all verbs below it.
func newRootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-sched",
		Short: "Placement as one reviewed document",
		Long: "kubectl sched compiles placement policies, written in CUE, into built-in\n" +
			"Kubernetes fields: affinity, tolerations, spread constraints and priorities.",
		Example: "  # Start a folder of policies, check it, and see what it does to your manifests\n" +
			"  kubectl sched init placement\n" +
			"  kubectl sched lint -p placement -f manifests/\n" +
			"  kubectl sched compile -p placement -f manifests/",
		Annotations:           map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl sched"},
		SilenceErrors:         true,
		SilenceUsage:          true,
		DisableSuggestions:    true,
		DisableFlagsInUseLine: true,
		CompletionOptions:     cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE:                  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.ErrOut)
	root.SetFlagErrorFunc(flagError)
	root.SetUsageFunc(usage)
	root.AddGroup(
		&cobra.Group{ID: groupWrite, Title: "Write policies:"},
		&cobra.Group{ID: groupApply, Title: "Compile and apply:"},
		&cobra.Group{ID: groupLook, Title: "Look and learn:"},
	)
	for _, construct := range commands() {
		root.AddCommand(construct(a))
	}
	addFindingsFlag(a, root)
	completeFlags(a, root)
	return root
}

// options is a verb whose flags have been resolved.
type options interface {
	// Validate returns what is wrong with the combination of flags and arguments.
	Validate() error
	// Run does the work.
	Run(ctx context.Context) error
}

// runE makes a cobra RunE of the three steps of a verb. Errors of the first two
// are usage errors.
func runE[O options](toOptions func(args []string) (O, error)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		o, err := toOptions(args)
		if err != nil {
			return usageError{err}
		}
		if err := o.Validate(); err != nil {
			return usageError{err}
		}
		return o.Run(cmd.Context())
	}
}

// unknownCommand returns the usage error for a first argument that is no verb.
func unknownCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 || args[0] == "" || strings.HasPrefix(args[0], "-") || strings.HasPrefix(args[0], "__") || args[0] == "help" {
		return nil
	}
	var names []string
	for _, c := range root.Commands() {
		if c.Name() == args[0] || c.HasAlias(args[0]) {
			return nil
		}
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	return usageError{fmt.Errorf("unknown command %q; %s", args[0], didYouMean(args[0], names))}
}

// flagError adds the flag that was most likely meant to pflag's error.
func flagError(cmd *cobra.Command, err error) error {
	var missing *pflag.NotExistError
	if errors.As(err, &missing) {
		if name := missing.GetSpecifiedName(); len(name) > 1 {
			var names []string
			cmd.Flags().VisitAll(func(f *pflag.Flag) {
				if !f.Hidden {
					names = append(names, f.Name)
				}
			})
			if near, ok := diag.Nearest(name, names); ok {
				return usageError{fmt.Errorf("unknown flag \"--%s\"; did you mean \"--%s\"?", name, near)}
			}
			return usageError{fmt.Errorf("unknown flag \"--%s\"", name)}
		}
	}
	return usageError{err}
}

// didYouMean suggests the nearest of the allowed words, or lists all.
func didYouMean(word string, allowed []string) string {
	if near, ok := diag.Nearest(word, allowed); ok {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "allowed are " + strings.Join(allowed, ", ")
}

// warn prints a warning as kubectl does.
func warn(w io.Writer, format string, args ...any) {
	fmt.Fprintf(w, "Warning: "+format+"\n", args...)
}
