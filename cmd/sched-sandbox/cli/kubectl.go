package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/plugin"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

// kubectlName is the name under which this program is kubectl.
const kubectlName = "kubectl"

// IsKubectl reports whether the program was called, by argument zero, under the
// name kubectl, as through a symbolic link.
func IsKubectl(argument0 string) bool {
	return strings.TrimSuffix(filepath.Base(argument0), ".exe") == kubectlName
}

// Kubectl is upstream's kubectl, plugins on the PATH included. It runs the
// command line args (without the program's name) and returns the exit code; like
// upstream's, it may also end the process itself.
func Kubectl(args []string, streams genericiooptions.IOStreams) int {
	// Upstream looks at os.Args on its own in places.
	os.Args = append([]string{kubectlName}, args...)
	command := cmd.NewDefaultKubectlCommandWithArgs(cmd.KubectlOptions{
		PluginHandler: cmd.NewDefaultPluginHandler(plugin.ValidPluginFilenamePrefixes),
		Arguments:     os.Args,
		IOStreams:     streams,
	})
	if err := cli.RunNoErrOutput(command); err != nil {
		cmdutil.CheckErr(err)
		return 1
	}
	return 0
}

func newKubectl(where *place) *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl ARGUMENT...",
		Short: "Run kubectl against the sandbox",
		Long: `kubectl runs upstream's kubectl, which is part of this program, with the
kubeconfig of the sandbox. Flags that choose the sandbox come before the word
kubectl; all that follows it is kubectl's own. Under the name kubectl, by a
symbolic link, this program is kubectl with the kubeconfig that kubectl would use.`,
		Example: `  sched-sandbox kubectl create --filename web.yaml
  sched-sandbox --name lab kubectl get pods --output wide
  ln -s "$(command -v sched-sandbox)" ~/bin/kubectl`,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			remote, err := where.find()
			if err != nil {
				return err
			}
			if err := os.Setenv("KUBECONFIG", remote.Kubeconfig()); err != nil {
				return err
			}
			code := Kubectl(args, genericiooptions.IOStreams{In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), ErrOut: cmd.ErrOrStderr()})
			if code != exitOK {
				return exitCode(code)
			}
			return nil
		},
	}
}

// exitCode ends a command, with a code other than 0, that has printed by itself
// why.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }
