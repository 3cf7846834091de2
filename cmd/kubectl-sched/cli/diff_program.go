package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/kubectl-sched/kubectl-sched/internal/apply"
	"github.com/kubectl-sched/kubectl-sched/internal/objectyaml"
)

// externalDiff names the program that compares, as for kubectl diff.
const externalDiff = "KUBECTL_EXTERNAL_DIFF"

// compare shows the objects before and after with the user's diff program, else
// with diff(1), else, where there is none, by itself.
func (a *app) compare(ctx context.Context, comparisons []apply.Comparison) (err error) {
	program, args := diffCommand(a.getenv(externalDiff))
	if a.getenv(externalDiff) == "" {
		if _, err := exec.LookPath(program); err != nil {
			return a.compareHere(comparisons)
		}
	}
	root, err := os.MkdirTemp("", "kubectl-sched-diff-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	live, merged := filepath.Join(root, "LIVE"), filepath.Join(root, "MERGED")
	for _, c := range comparisons {
		if err := writeObject(live, c.Name, c.Before); err != nil {
			return err
		}
		if err := writeObject(merged, c.Name, c.After); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, program, append(args, live, merged)...)
	cmd.Stdout, cmd.Stderr = a.Out, a.ErrOut
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == exitFindings {
		return nil
	}
	if err != nil {
		return fmt.Errorf("run %q: %w", program, err)
	}
	return nil
}

// argument is what kubectl lets through of the arguments in the variable.
var argument = regexp.MustCompile(`^[a-zA-Z0-9-=]+$`)

// diffCommand returns the program of the variable's value and its arguments.
func diffCommand(value string) (string, []string) {
	words := strings.Split(value, " ")
	if value == "" {
		return "diff", []string{"-u", "-N"}
	}
	var args []string
	for _, word := range words[1:] {
		if argument.MatchString(word) {
			args = append(args, word)
		}
	}
	return words[0], args
}

// writeObject writes an object as YAML; one that is not there is no file.
func writeObject(folder, name string, object map[string]any) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	if object == nil {
		return nil
	}
	text, err := objectyaml.Marshal(object)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	return os.WriteFile(filepath.Join(folder, name), text, 0o600)
}

// compareHere writes unified diffs by itself.
func (a *app) compareHere(comparisons []apply.Comparison) error {
	for _, c := range comparisons {
		var texts [2]string
		for i, object := range []map[string]any{c.Before, c.After} {
			if object == nil {
				continue
			}
			text, err := objectyaml.Marshal(object)
			if err != nil {
				return fmt.Errorf("encode %s: %w", c.Name, err)
			}
			texts[i] = string(text)
		}
		err := difflib.WriteUnifiedDiff(a.Out, difflib.UnifiedDiff{
			A: slices.Collect(strings.Lines(texts[0])), B: slices.Collect(strings.Lines(texts[1])),
			FromFile: "LIVE/" + c.Name, ToFile: "MERGED/" + c.Name, Context: 3,
		})
		if err != nil {
			return err
		}
	}
	return nil
}
