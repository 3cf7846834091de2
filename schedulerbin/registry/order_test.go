package registry_test

import (
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
