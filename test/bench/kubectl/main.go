// Command kubectl is upstream's kubectl at the Kubernetes minor that the plugin
// is built against: the baseline for how fast a command starts.
//
// It must not know anything of the plugin.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
		os.Exit(1)
	}
}
