package docs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/spf13/pflag"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// standIns are programs of others that examples name and that are not here: what they do
// of the example and no more. Arguments that they do not know they refuse.
var standIns = map[string]func(args []string, out io.Writer) error{"kustomize": kustomize, "colordiff": colordiff}

// standIn makes a program of it.
func standIn(name string) func() {
	return func() {
		if err := standIns[name](os.Args[1:], os.Stdout); err != nil {
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				os.Exit(exit.ExitCode())
			}
			fmt.Fprintf(os.Stderr, "the stand-in for %s: %v\n", name, err)
			os.Exit(3)
		}
	}
}

// kustomize is kustomize's own library, which is all of the program but for its flags.
func kustomize(args []string, out io.Writer) error {
	flags := pflag.NewFlagSet("kustomize build", pflag.ContinueOnError)
	plugins := flags.Bool("enable-alpha-plugins", false, "")
	exec := flags.Bool("enable-exec", false, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 2 || flags.Arg(0) != "build" {
		return fmt.Errorf("it knows build FOLDER, not %q", args)
	}
	options := krusty.MakeDefaultOptions()
	if *plugins {
		options.PluginConfig = types.EnabledPluginConfig(types.BploUseStaticallyLinked)
	}
	options.PluginConfig.FnpLoadingOptions.EnableExec = *exec
	resources, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), flags.Arg(1))
	if err != nil {
		return err
	}
	text, err := resources.AsYaml()
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}

// colordiff is diff without colours.
func colordiff(args []string, out io.Writer) error {
	diff := exec.Command("diff", args...)
	diff.Stdout, diff.Stderr = out, os.Stderr
	return diff.Run()
}
