package profile

import (
	"bytes"
	"slices"
	"strconv"

	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// ruleQueueSort is the rule of profiles that do not sort the queue alike.
const ruleQueueSort = "scheduler/queue-sort"

const prioritySort = "PrioritySort"

// fromMulti returns the plugins that multiPoint puts at a point, in their order, as
// expandMultiPointPlugins does (pkg/scheduler/framework/runtime): the default ones
// that are left, then the profile's own. Of plugins that are not known only those
// are told which the point lists itself.
func fromMulti(plugins *configv1.Plugins, set pluginSet) []string {
	off := namesOf(set.Disabled)
	if slices.Contains(off, "*") {
		return nil
	}
	on, multiOff := namesOf(plugins.MultiPoint.Enabled), namesOf(plugins.MultiPoint.Disabled)
	var out []string
	for _, name := range defaults().plugins {
		if slices.Contains(on, name) || !slices.Contains(multiOff, name) && !slices.Contains(multiOff, "*") {
			out = append(out, name)
		}
	}
	for _, name := range on {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return slices.DeleteFunc(out, func(name string) bool {
		points, known := pluginPoints[name]
		there := slices.Contains(points, set.point) || !known && slices.Contains(namesOf(set.Enabled), name)
		return !there || slices.Contains(off, name)
	})
}

// order looks for points whose plugins run in another order than they are listed in.
// Where a plugin binds, more hangs on it, and binders says so; scores have no order.
func (l *linter) order(plugins *configv1.Plugins, path []string) {
	for _, set := range setsOf(plugins) {
		switch set.point {
		case pointMulti, pointBind, pointQueueSort, pointScore, pointPlacementScore:
			continue
		}
		moved := fromMulti(plugins, set)
		late := ""
		for i, e := range set.Enabled {
			switch {
			case !slices.Contains(moved, e.Name):
				if late == "" {
					late = e.Name
				}
			case late != "":
				l.bad(diag.Warning, "scheduler/order", below(path, "plugins", set.point, "enabled", strconv.Itoa(i), "name"),
					"plugin %q runs before %q all the same, because multiPoint enables it; put it under %s.disabled too, and the order holds", e.Name, late, set.point)
			}
		}
	}
}

// sorting is what a profile sorts the queue by.
type sorting struct {
	// name is empty where a plugin that is not known must be it.
	name string
	args []byte
	path []string
}

// queueSorts looks for profiles that sort the queue by nothing, by two plugins, or
// otherwise than the first: that multiPoint brings about, which upstream's
// validation does not look at.
func (l *linter) queueSorts(c *configv1.KubeSchedulerConfiguration) {
	var first *sorting
	for i := range c.Profiles {
		p := &c.Profiles[i]
		s := l.queueSort(p, []string{"profiles", strconv.Itoa(i)})
		switch {
		case s == nil:
		case first == nil:
			first = s
		case !sameSets(c.Profiles[0].Plugins, p.Plugins): // Upstream's validation says so.
		case s.name != first.name && (s.name == "" || first.name == ""):
			l.bad(diag.Warning, ruleQueueSort, s.path, "profile %q sorts the queue by another plugin than profile %q, if a plugin of multiPoint does so; all profiles share one queue, and the scheduler would not start", deref(p.SchedulerName), deref(c.Profiles[0].SchedulerName))
		case s.name != first.name:
			l.bad(diag.Error, ruleQueueSort, s.path, "profile %q sorts the queue by %q, and profile %q by %q; all profiles share one queue, so write the same in each", deref(p.SchedulerName), s.name, deref(c.Profiles[0].SchedulerName), first.name)
		case !bytes.Equal(s.args, first.args):
			l.bad(diag.Error, ruleQueueSort, s.path, "%q has other arguments than in profile %q; all profiles share one queue, so write the same in each", s.name, deref(c.Profiles[0].SchedulerName))
		}
	}
}

func sameSets(a, b *configv1.Plugins) bool {
	of := func(p *configv1.Plugins) [2][]string {
		if p == nil {
			return [2][]string{}
		}
		return [2][]string{namesOf(p.QueueSort.Enabled), namesOf(p.QueueSort.Disabled)}
	}
	x, y := of(a), of(b)
	return slices.Equal(x[0], y[0]) && slices.Equal(x[1], y[1])
}

// queueSort returns what a profile sorts the queue by; nil where that is nothing, or
// too much.
func (l *linter) queueSort(p *configv1.KubeSchedulerProfile, path []string) *sorting {
	plugins := p.Plugins
	if plugins == nil {
		plugins = &configv1.Plugins{}
	}
	set := pluginSet{pointQueueSort, plugins.QueueSort}
	all := fromMulti(plugins, set)
	for _, name := range namesOf(set.Enabled) {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	s := &sorting{path: below(path, "plugins")}
	switch {
	case len(all) > 1:
		l.bad(diag.Error, ruleQueueSort, below(path, "plugins", pointQueueSort), "%s would sort the queue, and the scheduler would not start with more than one plugin that does; disable %s there", listOf(all), all[0])
		return nil
	case len(all) == 1:
		s.name = all[0]
	case hasStranger(plugins.MultiPoint):
	default:
		l.bad(diag.Error, "scheduler/no-queue-sort", below(path, "plugins"), "no plugin sorts the queue, and the scheduler would not start; enable %s", prioritySort)
		return nil
	}
	for i, pc := range p.PluginConfig {
		if pc.Name == s.name {
			s.args, s.path = pc.Args.Raw, below(path, "pluginConfig", strconv.Itoa(i), "args")
		}
	}
	return s
}
