package registry_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	config "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/registry"
)

// TestGangFirst holds that Gang comes before DefaultPreemption after a pod group
// has failed, unless the profile has its own mind about that.
func TestGangFirst(t *testing.T) {
	t.Parallel()
	list := func(names ...string) []config.Plugin {
		var plugins []config.Plugin
		for _, name := range names {
			plugins = append(plugins, config.Plugin{Name: name})
		}
		return plugins
	}
	for name, test := range map[string]struct {
		multiPoint, enabled, disabled, want []config.Plugin
	}{
		"as enabled":         {list("DefaultPreemption", "Gang"), nil, nil, list("Gang")},
		"beside another":     {list("DefaultPreemption", "Gang"), list("DefaultPreemption"), nil, list("Gang", "DefaultPreemption")},
		"in an order":        {list("Gang"), list("Other", "Gang"), nil, list("Other", "Gang")},
		"disabled there":     {list("Gang"), nil, list("Gang"), nil},
		"all disabled there": {list("Gang"), nil, list("*"), nil},
		"not enabled":        {list("DefaultPreemption"), nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			profiles := []config.KubeSchedulerProfile{{}, {Plugins: &config.Plugins{
				MultiPoint:         config.PluginSet{Enabled: test.multiPoint},
				PodGroupPostFilter: config.PluginSet{Enabled: test.enabled, Disabled: test.disabled},
			}}}
			registry.GangFirst(profiles)
			if diff := cmp.Diff(test.want, profiles[1].Plugins.PodGroupPostFilter.Enabled); diff != "" {
				t.Errorf("enabled (-want +got):\n%s", diff)
			}
		})
	}
}

// TestGangSorts holds that where members are placed one by one all profiles have the
// one sort, that Gang comes first where it must, and that a profile which could not
// keep a gang together is refused.
func TestGangSorts(t *testing.T) {
	t.Parallel()
	set := func(names ...string) config.PluginSet {
		var s config.PluginSet
		for _, name := range names {
			s.Enabled = append(s.Enabled, config.Plugin{Name: name})
		}
		return s
	}
	off := func(names ...string) config.PluginSet { return config.PluginSet{Disabled: set(names...).Enabled} }
	for name, test := range map[string]struct {
		plugins *config.Plugins
		want    *config.Plugins // beside the sort
		problem string
	}{
		"nothing said":       {nil, &config.Plugins{}, ""},
		"without gangs":      {&config.Plugins{MultiPoint: set("Other")}, &config.Plugins{MultiPoint: set("Other")}, ""},
		"sorted as always":   {&config.Plugins{QueueSort: set("PrioritySort")}, &config.Plugins{}, ""},
		"sorted by another":  {&config.Plugins{QueueSort: set("Mine")}, nil, `"Mine" sorts the queue`},
		"with gangs":         {&config.Plugins{MultiPoint: set("DefaultPreemption", "Gang")}, &config.Plugins{MultiPoint: set("DefaultPreemption", "Gang"), PreFilter: set("Gang"), PostFilter: set("Gang")}, ""},
		"in an order":        {&config.Plugins{MultiPoint: set("Gang"), PreFilter: set("Other", "Gang")}, &config.Plugins{MultiPoint: set("Gang"), PreFilter: set("Other", "Gang"), PostFilter: set("Gang")}, ""},
		"half of it":         {&config.Plugins{Permit: set("Gang")}, nil, "at permit alone"},
		"disabled somewhere": {&config.Plugins{MultiPoint: set("Gang"), Reserve: off("Gang")}, nil, "disables Gang at reserve"},
		"all disabled there": {&config.Plugins{MultiPoint: set("Gang"), PreEnqueue: off("*")}, nil, "disables Gang at preEnqueue"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			profiles := []config.KubeSchedulerProfile{{SchedulerName: "p", Plugins: test.plugins}}
			err := registry.GangSorts(profiles, "Sort")
			if test.problem != "" {
				if err == nil || !strings.Contains(err.Error(), test.problem) {
					t.Errorf("got %v, want an error with %q", err, test.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			test.want.QueueSort = config.PluginSet{Enabled: set("Sort").Enabled, Disabled: set("PrioritySort").Enabled}
			if diff := cmp.Diff(test.want, profiles[0].Plugins); diff != "" {
				t.Errorf("plugins (-want +got):\n%s", diff)
			}
		})
	}
}
