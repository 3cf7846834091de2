package snapshot

import (
	"encoding/json"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/trim"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
)

// KeepsAnnotation returns which annotations the configurations of the schedulers
// have plugins read, besides those that are kept anyway.
func KeepsAnnotation(schedulers []Scheduler) trim.Keep {
	var keys []string
	for _, s := range schedulers {
		keys = append(keys, annotationKeys(s.Configuration)...)
	}
	if len(keys) == 0 {
		return nil
	}
	return func(key string) bool { return slices.Contains(keys, key) }
}

// annotationKeys are the keys by which CacheLocality is told to find datasets. Of a
// configuration that cannot be read there are none.
func annotationKeys(configuration string) []string {
	var c struct {
		Profiles []struct {
			PluginConfig []struct {
				Name string          `json:"name"`
				Args json.RawMessage `json:"args"`
			} `json:"pluginConfig"`
		} `json:"profiles"`
	}
	if configuration == "" || yaml.Unmarshal([]byte(configuration), &c) != nil {
		return nil
	}
	var keys []string
	for _, p := range c.Profiles {
		for _, plugin := range p.PluginConfig {
			if plugin.Name != args.CacheLocality {
				continue
			}
			decoded, err := args.Decode(plugin.Name, plugin.Args)
			if a, ok := decoded.(*args.CacheLocalityArgs); ok && err == nil {
				keys = append(append(keys, a.DatasetKeys...), a.WarmKeys...)
			}
		}
	}
	return keys
}
