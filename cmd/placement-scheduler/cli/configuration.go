package cli

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
)

// upstreamLease is the lease of a cluster's default scheduler.
const upstreamLease = "kube-scheduler"

// peek returns the configuration as far as it counts before the feature gates
// are set: profiles as written, and the connection.
func peek(logger klog.Logger, opts *options.Options) (*config.KubeSchedulerConfiguration, error) {
	if opts.ConfigFile != "" {
		return options.LoadConfigFromFile(logger, opts.ConfigFile)
	}
	c, err := latest.Default()
	if err != nil {
		return nil, err
	}
	c.ClientConnection.Kubeconfig = opts.Deprecated.Kubeconfig
	return c, nil
}

// ownLease gives the scheduler a lease of its own where it runs beside the default
// one and the configuration does not name a lease: in the default scheduler's, it
// would stand by for ever.
func ownLease(opts *options.Options, c *config.KubeSchedulerConfiguration) {
	isDefault := slices.ContainsFunc(c.Profiles, func(p config.KubeSchedulerProfile) bool {
		return p.SchedulerName == corev1.DefaultSchedulerName
	})
	flags := opts.Flags.FlagSet("leader election")
	const flag = "leader-elect-resource-name"
	if isDefault || c.LeaderElection.ResourceName != upstreamLease || flags.Changed(flag) {
		return
	}
	// A string flag takes every string.
	_ = flags.Set(flag, Name)
}

// gangMode returns the mode of the profiles that enable Gang, and the scheduler
// name of the first of them, or "" if none does. One process has one mode.
func gangMode(c *config.KubeSchedulerConfiguration) (mode args.GangMode, profile string, err error) {
	for _, p := range c.Profiles {
		if !enablesGang(p) {
			continue
		}
		var object runtime.Object
		for _, pc := range p.PluginConfig {
			if pc.Name == args.Gang {
				object = pc.Args
			}
		}
		a, err := args.FromObject[*args.GangArgs](args.Gang, object)
		if err != nil {
			return "", "", fmt.Errorf("profile %q: %w", p.SchedulerName, err)
		}
		if profile != "" && a.Mode != mode {
			return "", "", fmt.Errorf("profile %q has mode %q of %s and profile %q mode %q; use one mode", profile, mode, args.Gang, p.SchedulerName, a.Mode)
		}
		if profile == "" {
			mode, profile = a.Mode, p.SchedulerName
		}
	}
	return mode, profile, nil
}

// enablesGang reports whether profile enables Gang at any extension point.
func enablesGang(profile config.KubeSchedulerProfile) bool {
	if profile.Plugins == nil {
		return false
	}
	for _, set := range []config.PluginSet{
		profile.Plugins.MultiPoint, profile.Plugins.PreEnqueue, profile.Plugins.PreFilter, profile.Plugins.Filter,
		profile.Plugins.PodGroupPostFilter, profile.Plugins.Reserve, profile.Plugins.Permit, profile.Plugins.PostBind,
	} {
		if slices.ContainsFunc(set.Enabled, func(p config.Plugin) bool { return p.Name == args.Gang }) {
			return true
		}
	}
	return false
}
