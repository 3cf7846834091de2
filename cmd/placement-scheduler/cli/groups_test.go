package cli

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	config "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
)

func TestChooseGroups(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		mode    args.GangMode
		profile string
		served  bool
		want    groups
		problem string // part of the error, "" for none
	}{
		{"gate alone, not served", "", "", false, groups{}, "does not serve PodGroups"},
		{"gate alone, served", "", "", true, groups{native: true}, ""},
		{"native, not served", args.ModeNative, "p", false, groups{}, `use mode "auto"`},
		{"native, served", args.ModeNative, "p", true, groups{native: true}, ""},
		{"auto, not served", args.ModeAuto, "p", false, groups{virtual: true}, ""},
		{"auto, served", args.ModeAuto, "p", true, groups{native: true, virtual: true}, ""},
		{"virtual, not served", args.ModeVirtual, "p", false, groups{virtual: true}, ""},
		{"virtual, served", args.ModeVirtual, "p", true, groups{native: true, virtual: true}, ""},
		{"a mode that is not there", "other", "p", true, groups{}, `mode "other"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := chooseGroups(c.mode, c.profile, c.served)
			check(t, err, c.problem)
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// TestChoosePermit holds that gangs are placed without the pod-group cycle where a
// profile says so, or leaves it open and the gate is switched off, and that what
// contradicts itself is refused.
func TestChoosePermit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		mode         args.GangMode
		profile      string
		on, explicit bool
		want         bool
		problem      string
	}{
		{"no gangs", "", "", false, true, false, ""},
		{"auto", args.ModeAuto, "p", false, false, false, ""},
		{"auto, switched on", args.ModeAuto, "p", true, true, false, ""},
		{"auto, switched off", args.ModeAuto, "p", false, true, true, ""},
		{"permit", args.ModePermit, "p", false, false, true, ""},
		{"permit, switched off", args.ModePermit, "p", false, true, true, ""},
		{"permit, switched on", args.ModePermit, "p", true, true, false, "switches that on"},
		{"virtual, switched off", args.ModeVirtual, "p", false, true, false, `or use mode "permit"`},
		{"native, switched off", args.ModeNative, "p", false, true, false, `or use mode "permit"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := choosePermit(c.mode, c.profile, c.on, c.explicit)
			check(t, err, c.problem)
			if got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestGangMode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		profiles []config.KubeSchedulerProfile
		mode     args.GangMode
		profile  string
		problem  string
	}{
		{"no profile enables it", []config.KubeSchedulerProfile{{SchedulerName: "a"}}, "", "", ""},
		{"default arguments", []config.KubeSchedulerProfile{{SchedulerName: "a"}, gangProfile("b", "")}, args.ModeAuto, "b", ""},
		{"one mode twice", []config.KubeSchedulerProfile{gangProfile("a", "native"), gangProfile("b", "native")}, args.ModeNative, "a", ""},
		{"two modes", []config.KubeSchedulerProfile{gangProfile("a", "native"), gangProfile("b", "")}, "", "", "use one mode"},
		{"arguments that cannot be read", []config.KubeSchedulerProfile{gangProfile("a", "nativ")}, "", "", `profile "a"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			mode, profile, err := gangMode(&config.KubeSchedulerConfiguration{Profiles: c.profiles})
			check(t, err, c.problem)
			if mode != c.mode || profile != c.profile {
				t.Errorf("got mode %q of profile %q, want %q of %q", mode, profile, c.mode, c.profile)
			}
		})
	}
}

// TestOwnLease holds that a scheduler beside the default one does not wait for
// that one's lease, and that what the user says about it stands.
func TestOwnLease(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, profile, resource, flag, want string
	}{
		{"beside the default scheduler", "ours", upstreamLease, "", Name},
		{"in its place", "default-scheduler", upstreamLease, "", ""},
		{"named in the file", "ours", "mine", "", ""},
		{"named by the flag", "ours", upstreamLease, upstreamLease, upstreamLease},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			opts := options.NewOptions()
			flags := opts.Flags.FlagSet("leader election")
			const flag = "leader-elect-resource-name"
			if c.flag != "" {
				if err := flags.Set(flag, c.flag); err != nil {
					t.Fatal(err)
				}
			}
			peeked := &config.KubeSchedulerConfiguration{Profiles: []config.KubeSchedulerProfile{{SchedulerName: c.profile}}}
			peeked.LeaderElection.ResourceName = c.resource
			ownLease(opts, peeked)
			got := ""
			if flags.Changed(flag) {
				got = flags.Lookup(flag).Value.String()
			}
			if got != c.want {
				t.Errorf("the flag is set to %q, want %q", got, c.want)
			}
		})
	}
}

// gangProfile returns a profile that enables Gang in the mode; "" is no argument.
func gangProfile(name, mode string) config.KubeSchedulerProfile {
	p := config.KubeSchedulerProfile{
		SchedulerName: name,
		Plugins:       &config.Plugins{MultiPoint: config.PluginSet{Enabled: []config.Plugin{{Name: args.Gang}}}},
	}
	if mode != "" {
		p.PluginConfig = []config.PluginConfig{{
			Name: args.Gang,
			Args: &runtime.Unknown{Raw: []byte(`{"mode":"` + mode + `"}`), ContentType: runtime.ContentTypeJSON},
		}}
	}
	return p
}

// check fails the test unless err says problem, or is nil where that is "".
func check(t *testing.T, err error, problem string) {
	t.Helper()
	switch {
	case problem == "" && err != nil:
		t.Error(err)
	case problem != "" && (err == nil || !strings.Contains(err.Error(), problem)):
		t.Errorf("got error %v, want one with %q", err, problem)
	}
}
