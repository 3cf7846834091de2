package cli

import (
	"context"
	"fmt"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/features"
	config "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/podgroup"
)

// genericWorkload is the gate of the in-tree pod-group cycle.
const genericWorkload = features.GenericWorkload

// groups says where the scheduler gets pod groups from: nowhere, the API server,
// PodGroup objects and labels (virtual), or both of these; and whether gangs are
// placed without the in-tree pod-group cycle (permit).
type groups struct{ native, virtual, permit bool }

func (g groups) enabled() bool { return g.native || g.virtual }

// prepareGroups decides where the scheduler gets pod groups from, and sets the
// feature gate accordingly. It must come before the configuration is decoded for
// good: whether the in-tree gang plugin is a default depends on the gate.
//
// Without a profile that enables Gang the gate stays as it was: it changes
// everyone's order of preemption a little.
func prepareGroups(ctx context.Context, opts *options.Options, peeked *config.KubeSchedulerConfiguration) (groups, error) {
	mode, profile, err := gangMode(peeked)
	if err != nil {
		return groups{}, err
	}
	on := utilfeature.DefaultFeatureGate.Enabled(genericWorkload)
	if profile == "" && !on {
		return groups{}, nil
	}
	explicit := utilfeature.DefaultMutableFeatureGate.ExplicitlySet(genericWorkload)
	permit, err := choosePermit(mode, profile, on, explicit)
	if err != nil {
		return groups{}, err
	}
	if permit {
		klog.FromContext(ctx).Info("Gangs are placed without the pod-group cycle: their members wait at Permit. Pods in PodGroups of the API are placed one by one", "profile", profile, "mode", mode)
		return groups{virtual: true, permit: true}, nil
	}
	client, err := discoveryClient(opts, peeked)
	if err != nil {
		return groups{}, err
	}
	served, err := podgroup.Discover(client.Discovery())
	if err != nil {
		return groups{}, fmt.Errorf("ask the API server whether it serves PodGroups: %w", err)
	}
	wanted, err := chooseGroups(mode, profile, served)
	if err != nil {
		return groups{}, err
	}
	if !on {
		if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{string(genericWorkload): true}); err != nil {
			return groups{}, fmt.Errorf("switch on the feature gate %s: %w", genericWorkload, err)
		}
	}
	klog.FromContext(ctx).Info("Gangs are placed as pod groups", "profile", profile, "fromAPI", wanted.native, "fromPodGroupObjectsAndLabels", wanted.virtual)
	return wanted, nil
}

// choosePermit reports whether gangs are placed without the in-tree pod-group cycle,
// when profile ("" for none) asks for mode and the cycle's feature gate is on or off,
// which somebody may have said explicitly.
func choosePermit(mode args.GangMode, profile string, on, explicit bool) (bool, error) {
	switch {
	case profile == "":
		return false, nil
	case mode == args.ModePermit && on:
		return false, fmt.Errorf("profile %q: mode %q of %s does without the feature gate %s, and --feature-gates switches that on; take away one of the two", profile, mode, args.Gang, genericWorkload)
	case mode == args.ModePermit, mode == args.ModeAuto && !on && explicit:
		return true, nil
	case !on && explicit:
		return false, fmt.Errorf("profile %q: mode %q of %s needs the feature gate %s, and --feature-gates switches that off; take away one of the two, or use mode %q", profile, mode, args.Gang, genericWorkload, args.ModePermit)
	}
	return false, nil
}

// chooseGroups returns where pod groups come from when profile ("" for none) asks
// for mode, and the API server serves PodGroups or not.
func chooseGroups(mode args.GangMode, profile string, served bool) (groups, error) {
	if profile == "" {
		if !served {
			return groups{}, fmt.Errorf("the feature gate %s is on, but the API server does not serve PodGroups (scheduling.k8s.io/v1beta1), for which the scheduler would wait for ever; switch it off, or enable %s in a profile", genericWorkload, args.Gang)
		}
		return groups{native: true}, nil
	}
	switch mode {
	case args.ModeNative:
		if !served {
			return groups{}, fmt.Errorf("profile %q: mode %q of %s needs PodGroups of the API (scheduling.k8s.io/v1beta1), which this API server does not serve; use mode %q", profile, mode, args.Gang, args.ModeAuto)
		}
		return groups{native: true}, nil
	case args.ModeAuto, args.ModeVirtual:
		// The API's groups are read wherever they are: the scheduler can have one
		// source only, and pods that name such a group would wait for ever.
		return groups{native: served, virtual: true}, nil
	default:
		return groups{}, fmt.Errorf("profile %q: mode %q of %s is not one of pod groups; use mode %q", profile, mode, args.Gang, args.ModeAuto)
	}
}
