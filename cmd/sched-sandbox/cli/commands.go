package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kubectl-sched/kubectl-sched/internal/sandbox"
)

func newDown(where *place) *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "End the sandbox and remove its folder",
		Long: `down ends all processes of the sandbox, also when its supervisor has crashed or
hangs, and removes its folder. With --keep-data the folder stays, and the next
"up" has all objects again.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			remote, err := where.find()
			if err != nil {
				return err
			}
			if err := remote.Stop(cmd.Context(), keep); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "sandbox %q is down\n", where.name)
			return nil
		},
	}
	cmd.Flags().BoolVar(&keep, "keep-data", false, "keep the folder with the objects, certificates and logs")
	return cmd
}

func newKubeconfig(where *place) *cobra.Command {
	var whole bool
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the path of the kubeconfig",
		Long: `kubeconfig prints the path of a kubeconfig with all rights in the sandbox, or,
with --print, the file itself, which is complete and may be copied.`,
		Example: `  export KUBECONFIG=$(sched-sandbox kubeconfig)`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			remote, err := where.find()
			if err != nil {
				return err
			}
			data, err := os.ReadFile(remote.Kubeconfig())
			if err != nil {
				return fmt.Errorf("the sandbox has no kubeconfig yet: %w", err)
			}
			if whole {
				_, err := cmd.OutOrStdout().Write(data)
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), remote.Kubeconfig())
			return err
		},
	}
	cmd.Flags().BoolVar(&whole, "print", false, "print the file instead of its path")
	return cmd
}

func newStatus(where *place) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the parts of the sandbox, and whether they run",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "" && output != "json" {
				return fmt.Errorf("--output %q: the only other format is json", output)
			}
			remote, err := where.find()
			if err != nil {
				return err
			}
			state, err := remote.State(cmd.Context())
			if err != nil {
				return err
			}
			if output == "json" {
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(state)
			}
			return printState(cmd, state)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "format: json, or a table when empty")
	return cmd
}

func printState(cmd *cobra.Command, state sandbox.State) error {
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "PART\tSTATE\tPID\tMEMORY\tADDRESS\tLOG")
	for _, part := range state.Parts {
		pid, memory, condition := "-", "-", "ended"
		switch {
		case part.Running:
			condition, pid = "running", fmt.Sprint(part.PID)
			if bytes, ok := residentMemory(part.PID); ok {
				memory = fmt.Sprintf("%d MiB", bytes>>20)
			}
		case part.Killed:
			condition = "killed"
		case state.Supervised && part.PID != 0:
			condition = "failed"
		case part.PID == 0:
			condition = "not started"
		}
		address := part.Address
		if address == "" {
			address = "-"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", part.Part, condition, pid, memory, address, part.Log)
	}
	return table.Flush()
}

// onPart returns the body of a command that does one thing to the part that its
// argument names.
func onPart(where *place, do func(*sandbox.Remote, context.Context, sandbox.Part) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		part, err := sandbox.ParsePart(args[0])
		if err != nil {
			return err
		}
		remote, err := where.find()
		if err != nil {
			return err
		}
		return do(remote, cmd.Context(), part)
	}
}

func newKill(where *place) *cobra.Command {
	return &cobra.Command{
		Use:       "kill PART",
		Short:     "Kill a part (SIGKILL), as a crash would",
		Long:      "kill ends one part at once, as a crash would. The parts are " + partList() + ".",
		Example:   "  sched-sandbox kill kube-apiserver",
		Args:      cobra.ExactArgs(1),
		ValidArgs: partNames(),
		RunE:      onPart(where, (*sandbox.Remote).Kill),
	}
}

func newStart(where *place) *cobra.Command {
	return &cobra.Command{
		Use:       "start PART",
		Short:     "Start a part that was killed or has failed, and wait until it is ready",
		Long:      "start starts one part again, on the port and with the data that it had. The parts are " + partList() + ".",
		Example:   "  sched-sandbox start kube-apiserver",
		Args:      cobra.ExactArgs(1),
		ValidArgs: partNames(),
		RunE:      onPart(where, (*sandbox.Remote).StartPart),
	}
}
