package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// surfaceFlag names a surface that stands over the cluster's own.
type surfaceFlag struct {
	surface string
	allowed []policy.Surface
}

func (f *surfaceFlag) addTo(flags *pflag.FlagSet, usage string, allowed ...policy.Surface) {
	f.allowed = allowed
	flags.StringVar(&f.surface, "surface", "", usage)
}

// words are the values that the flag takes.
func (f *surfaceFlag) words() []string {
	words := make([]string, len(f.allowed))
	for i, s := range f.allowed {
		words[i] = string(s)
	}
	return words
}

// toOptions returns the surface; empty if the flag was not given.
func (f *surfaceFlag) toOptions() (policy.Surface, error) {
	if f.surface == "" || slices.Contains(f.words(), f.surface) {
		return policy.Surface(f.surface), nil
	}
	return "", fmt.Errorf("--surface %q: %s", f.surface, didYouMean(f.surface, f.words()))
}

// stepFlags say how far admission policies are rolled out.
type stepFlags struct {
	surfaceFlag
	observe, everywhere bool
}

func (f *stepFlags) addTo(cmd *cobra.Command) {
	f.surfaceFlag.addTo(cmd.Flags(), "How the placement reaches the pods, whatever the cluster's surface is in the policies: live or admission",
		policy.SurfaceLive, policy.SurfaceAdmission)
	cmd.Flags().BoolVar(&f.observe, "observe", false, "For surface admission: change no pod, and only note in the audit log what would be changed")
	cmd.Flags().BoolVarP(&f.everywhere, "all-namespaces", "A", false, "Act in all namespaces, also if the set acted in some only so far")
	completeValues(cmd, "surface", f.words())
}

// toPipeline resolves the flags into the pipeline.
func (f *stepFlags) toPipeline(p *pipeline) error {
	surface, err := f.surfaceFlag.toOptions()
	if err != nil {
		return err
	}
	if f.everywhere && p.config.Namespace != nil && *p.config.Namespace != "" {
		return errors.New("give -n or -A, not both")
	}
	if f.observe && surface == policy.SurfaceLive {
		return errors.New("--observe is for surface admission; \"kubectl sched diff\" shows what surface live would change")
	}
	p.surface, p.observe, p.everywhere = surface, f.observe, f.everywhere
	return nil
}

// surfaceOf returns how policies reach the workloads of the cluster, nil for the
// only, nameless one: as --surface says, else as the cluster does, else as is
// usual.
func (p *pipeline) surfaceOf(target *policy.Cluster, usual policy.Surface) policy.Surface {
	switch {
	case p.surface != "":
		return p.surface
	case target != nil:
		return target.Surface
	}
	return usual
}

// forManifests returns the plan as manifests are to have it. Under admission the
// API server places the pods: manifests keep nothing of ours.
func forManifests(plan *compiler.Plan, surface policy.Surface) *compiler.Plan {
	if surface != policy.SurfaceAdmission {
		return plan
	}
	bare := *plan
	bare.Changes = nil
	return &bare
}
