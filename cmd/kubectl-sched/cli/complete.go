package cli

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-sched/kubectl-sched/internal/apply"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// completionTime is how long a completion may look for values: longer than that
// nobody waits at a prompt.
const completionTime = 2 * time.Second

// finder finds the values that complete a flag or an argument of cmd.
type finder func(ctx context.Context, a *app, cmd *cobra.Command) ([]string, error)

// finders are the flags whose values are found in the policies, the kubeconfig
// or the cluster, whichever verb has them.
func finders() map[string]finder {
	return map[string]finder{
		"cluster":   clusterNames,
		"context":   contextNames,
		"namespace": namespaceNames,
		"set":       setNames,
		"surface":   surfaceNames,
		"user":      userNames,
	}
}

// completeFlags completes the flags of finders in a verb and those below it.
func completeFlags(a *app, cmd *cobra.Command) {
	for name, find := range finders() {
		if cmd.Flags().Lookup(name) == nil {
			continue
		}
		if _, done := cmd.GetFlagCompletionFunc(name); !done {
			complete(cmd, name, completing(a, find))
		}
	}
	for _, child := range cmd.Commands() {
		completeFlags(a, child)
	}
}

// completeValues completes a flag that takes one of a few words.
func completeValues(cmd *cobra.Command, flag string, values []string) {
	complete(cmd, flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values, cobra.ShellCompDirectiveNoFileComp
	})
}

// complete registers the completion of a flag. It fails only for a flag that
// does not exist or has a completion, which a test of the command tree finds.
func complete(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		cmd.PrintErrln("completion:", err)
	}
}

// completing makes a completion of a finder. One that fails or takes long
// completes nothing: a prompt is no place for errors.
func completing(a *app, find finder) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		found, err := find(ctx, a, cmd)
		if err != nil {
			cobra.CompDebugln(err.Error(), false)
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		slices.Sort(found)
		found = slices.DeleteFunc(slices.Compact(found), func(n string) bool { return !strings.HasPrefix(n, typed) })
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

var errNoPolicies = errors.New("the policies cannot be loaded")

// loadForCompletion loads the policies that the flags typed so far name.
func loadForCompletion(ctx context.Context, a *app, cmd *cobra.Command) (*policy.Placement, error) {
	f := policyFlags{timeout: completionTime, memory: defaultLoadMemory}
	if flag := cmd.Flags().Lookup("policy"); flag != nil {
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			f.paths = list.GetSlice()
		}
	}
	o, err := f.toOptions(a)
	if err != nil {
		return nil, err
	}
	placement, _ := a.load(ctx, o)
	if placement == nil {
		return nil, errNoPolicies
	}
	return placement, nil
}

func clusterNames(ctx context.Context, a *app, cmd *cobra.Command) ([]string, error) {
	placement, err := loadForCompletion(ctx, a, cmd)
	if err != nil {
		return nil, err
	}
	found := []string{allClusters}
	for _, c := range placement.Clusters {
		found = append(found, c.Name)
	}
	return found, nil
}

// configOf returns kubectl's flags as typed so far.
func configOf(cmd *cobra.Command) *genericclioptions.ConfigFlags {
	config := genericclioptions.NewConfigFlags(true)
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.AddFlags(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		typed := cmd.Flags().Lookup(f.Name)
		if typed == nil || !typed.Changed || f.Name == "cluster" {
			return
		}
		to, isList := f.Value.(pflag.SliceValue)
		from, alike := typed.Value.(pflag.SliceValue)
		var err error
		if isList && alike {
			err = to.Replace(from.GetSlice())
		} else {
			err = f.Value.Set(typed.Value.String())
		}
		if err != nil {
			cobra.CompDebugln(err.Error(), false)
		}
	})
	return config
}

func contextNames(_ context.Context, _ *app, cmd *cobra.Command) ([]string, error) {
	raw, err := configOf(cmd).ToRawKubeConfigLoader().RawConfig()
	return slices.Collect(maps.Keys(raw.Contexts)), err
}

func userNames(_ context.Context, _ *app, cmd *cobra.Command) ([]string, error) {
	raw, err := configOf(cmd).ToRawKubeConfigLoader().RawConfig()
	return slices.Collect(maps.Keys(raw.AuthInfos)), err
}

func clientOf(cmd *cobra.Command) (*cluster.Client, error) {
	rest, err := configOf(cmd).ToRESTConfig()
	if err != nil {
		return nil, err
	}
	return cluster.Connect(rest)
}

func namespaceNames(ctx context.Context, _ *app, cmd *cobra.Command) ([]string, error) {
	client, err := clientOf(cmd)
	if err != nil {
		return nil, err
	}
	list, err := client.Kube.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return namesOf(list.Items, func(n corev1.Namespace) string { return n.Name }), nil
}

// setNames lists the sets whose state is in the usual namespace.
func setNames(ctx context.Context, _ *app, cmd *cobra.Command) ([]string, error) {
	client, err := clientOf(cmd)
	if err != nil {
		return nil, err
	}
	list, err := client.Kube.CoreV1().ConfigMaps(apply.DefaultNamespace).List(ctx, metav1.ListOptions{LabelSelector: ownership.SetLabel})
	if err != nil {
		return nil, err
	}
	return namesOf(list.Items, func(m corev1.ConfigMap) string {
		name, _, _ := strings.Cut(m.Labels[ownership.SetLabel], ".")
		return name
	}), nil
}

func surfaceNames(context.Context, *app, *cobra.Command) ([]string, error) {
	return []string{string(policy.SurfaceAdmission), string(policy.SurfaceLive), string(policy.SurfaceRender)}, nil
}

func namesOf[T any](items []T, name func(T) string) []string {
	found := make([]string, len(items))
	for i, item := range items {
		found[i] = name(item)
	}
	return found
}
