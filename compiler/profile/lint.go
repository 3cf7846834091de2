package profile

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
)

// ruleBindOrder is the rule of plugins that never bind.
const ruleBindOrder = "scheduler/bind-order"

// ruleUnknownPlugin is the rule of plugins that are neither upstream's nor ours.
const ruleUnknownPlugin = "scheduler/unknown-plugin"

// ruleIdleArgs is the rule of arguments for plugins that do not run.
const ruleIdleArgs = "scheduler/idle-args"

// lint looks for what a scheduler accepts without a word, or refuses only when it
// starts: the framework alone finds that, which knows the plugins.
func lint(c *configv1.KubeSchedulerConfiguration) []Problem {
	l := &linter{}
	for i := range c.Profiles {
		l.profile(&c.Profiles[i], []string{"profiles", strconv.Itoa(i)})
	}
	l.queueSorts(c)
	l.gangModes(c)
	l.extenders(c)
	l.lease(c)
	return l.found
}

type linter struct{ found []Problem }

func (l *linter) bad(severity diag.Severity, rule string, path []string, format string, a ...any) {
	l.found = append(l.found, Problem{Rule: rule, Severity: severity, Path: path, Message: fmt.Sprintf(format, a...)})
}

// pluginSet is what a profile says of one extension point.
type pluginSet struct {
	point string
	configv1.PluginSet
}

// setsOf are the extension points of a profile, multiPoint first.
func setsOf(p *configv1.Plugins) []pluginSet {
	return []pluginSet{
		{pointMulti, p.MultiPoint},
		{pointPreEnqueue, p.PreEnqueue},
		{pointQueueSort, p.QueueSort},
		{pointPreFilter, p.PreFilter},
		{pointFilter, p.Filter},
		{pointPostFilter, p.PostFilter},
		{pointPreScore, p.PreScore},
		{pointScore, p.Score},
		{pointReserve, p.Reserve},
		{pointPermit, p.Permit},
		{pointPreBind, p.PreBind},
		{pointBind, p.Bind},
		{pointPostBind, p.PostBind},
		{pointPlacementGenerate, p.PlacementGenerate},
		{pointPlacementScore, p.PlacementScore},
		{pointPodGroupPostFilter, p.PodGroupPostFilter},
	}
}

func namesOf(plugins []configv1.Plugin) []string {
	out := make([]string, len(plugins))
	for i, p := range plugins {
		out[i] = p.Name
	}
	return out
}

func (l *linter) profile(p *configv1.KubeSchedulerProfile, path []string) {
	plugins := p.Plugins
	if plugins == nil {
		plugins = &configv1.Plugins{}
	}
	runs := map[string]bool{}
	multiOff := namesOf(plugins.MultiPoint.Disabled)
	for _, name := range defaults().plugins {
		runs[name] = !slices.Contains(multiOff, name) && !slices.Contains(multiOff, "*")
	}
	for _, set := range setsOf(plugins) {
		at := below(path, "plugins", set.point)
		for _, e := range set.Enabled {
			runs[e.Name] = true
		}
		l.enabled(set, at)
		l.disabled(set, plugins.MultiPoint, at)
	}
	l.binders(plugins, path)
	l.order(plugins, path)
	if slices.Contains(multiOff, "*") && runs[args.Gang] && !runs["GangScheduling"] {
		l.bad(diag.Warning, "scheduler/no-effect", below(path, "plugins", pointMulti, "disabled"),
			"\"*\" takes GangScheduling out too, without which gangs are not placed as a whole; enable it again, or disable plugins by their names")
	}
	for i, pc := range p.PluginConfig {
		l.config(pc.Name, runs, below(path, "pluginConfig", strconv.Itoa(i), "name"))
	}
}

// enabled looks at the plugins that are enabled at a point.
func (l *linter) enabled(set pluginSet, at []string) {
	for i, e := range set.Enabled {
		here := below(at, "enabled", strconv.Itoa(i))
		points, known := pluginPoints[e.Name]
		switch {
		case slices.Contains(namesOf(set.Enabled[:i]), e.Name):
			l.bad(diag.Error, "scheduler/plugin-twice", below(here, "name"), "plugin %q is enabled twice at %s, and the scheduler would not start; keep one", e.Name, set.point)
		case !known:
			l.unknown(e.Name, here)
		case set.point != pointMulti && !slices.Contains(points, set.point):
			l.bad(diag.Error, "scheduler/wrong-point", below(here, "name"), "plugin %q does nothing at %s, and the scheduler would not start; its points are %s", e.Name, set.point, listOf(points))
		}
		l.weight(set.point, e, points, known, here)
	}
}

// unknown says of a plugin that is neither upstream's nor ours what is most likely
// wrong: it is misspelt, or somebody's own.
func (l *linter) unknown(name string, here []string) {
	if near := suggest(name, KnownPlugins()); near != "" {
		l.bad(diag.Error, ruleUnknownPlugin, below(here, "name"), "there is no plugin %q, and the scheduler would not start%s", name, near)
		return
	}
	l.bad(diag.Warning, ruleUnknownPlugin, below(here, "name"), "plugin %q is neither kube-scheduler's nor the bundled scheduler's: it must be built into the scheduler that reads this, and is not checked", name)
}

// weight looks at the weight of a plugin, or at a missing one.
func (l *linter) weight(point string, e configv1.Plugin, points []string, known bool, here []string) {
	here = below(here, "weight")
	counts := !known || slices.Contains(points, pointScore) || slices.Contains(points, pointPlacementScore)
	usual, isDefault := defaults().weights[e.Name]
	switch {
	case e.Weight == nil:
		if (point == pointMulti || point == pointScore) && isDefault && usual != 1 {
			l.bad(diag.Warning, "scheduler/weight", here[:len(here)-1], "without a weight %q counts 1 where it is listed, and %d by default; say weight: %d, if that is not meant", e.Name, usual, usual)
		}
	case point != pointMulti && point != pointScore && point != pointPlacementScore:
		l.bad(diag.Warning, "scheduler/weight", here, "a weight at %s has no effect; say it at score or multiPoint", point)
	case !counts:
		l.bad(diag.Warning, "scheduler/weight", here, "plugin %q scores nothing, so its weight has no effect; leave it out", e.Name)
	case *e.Weight == 0:
		l.bad(diag.Error, "scheduler/weight", here, "weight 0 is taken for 1; to leave the plugin out, put it under disabled")
	case *e.Weight < 0:
		l.bad(diag.Error, "scheduler/weight", here, "the weight must be at least 1, and the scheduler would not start with %d", *e.Weight)
	}
}

// disabled looks for plugins that are disabled and would not run anyway.
func (l *linter) disabled(set pluginSet, multi configv1.PluginSet, at []string) {
	for i, e := range set.Disabled {
		here := below(at, "disabled", strconv.Itoa(i), "name")
		points, known := pluginPoints[e.Name]
		there := slices.Contains(defaults().plugins, e.Name) || slices.Contains(namesOf(multi.Enabled), e.Name)
		switch {
		case e.Name == "*":
		case !known && !there:
			l.bad(diag.Error, ruleUnknownPlugin, here, "there is no plugin %q, so nothing is disabled%s", e.Name, suggest(e.Name, defaults().plugins))
		case !there:
			l.bad(diag.Warning, "scheduler/no-effect", here, "plugin %q is not enabled by default, so nothing is disabled; leave it out", e.Name)
		case known && set.point != pointMulti && !slices.Contains(points, set.point):
			l.bad(diag.Warning, "scheduler/no-effect", here, "plugin %q does nothing at %s, so nothing is disabled; its points are %s", e.Name, set.point, listOf(points))
		case set.point == pointMulti && slices.Contains(namesOf(set.Enabled), e.Name):
			l.bad(diag.Warning, "scheduler/no-effect", here, "plugin %q is enabled here too, which counts more; keep one", e.Name)
		}
	}
}

// config looks at the name that arguments are for.
func (l *linter) config(name string, runs map[string]bool, here []string) {
	_, known := pluginPoints[name]
	switch {
	case runs[name]:
	case !known:
		l.bad(diag.Error, ruleUnknownPlugin, here, "there is no plugin %q in this profile, so the arguments have no effect%s", name, suggest(name, KnownPlugins()))
	default:
		l.bad(diag.Warning, ruleIdleArgs, here, "plugin %q is not enabled in this profile, so the arguments have no effect; enable it, or leave them out", name)
	}
}

// binders looks for plugins that are to bind and never get to: upstream puts the
// plugins of multiPoint, and so DefaultBinder, before those of bind
// (expandMultiPointPlugins), and DefaultBinder never leaves a pod to the next.
func (l *linter) binders(plugins *configv1.Plugins, path []string) {
	at := below(path, "plugins", pointBind)
	enabled, disabled := namesOf(plugins.Bind.Enabled), namesOf(plugins.Bind.Disabled)
	multiOn, multiOff := namesOf(plugins.MultiPoint.Enabled), namesOf(plugins.MultiPoint.Disabled)
	// first says that multiPoint puts DefaultBinder in front.
	first := slices.Contains(multiOn, defaultBinder) || !slices.Contains(multiOff, defaultBinder) && !slices.Contains(multiOff, "*")
	first = first && !slices.Contains(disabled, defaultBinder) && !slices.Contains(disabled, "*")
	listed := slices.Index(enabled, defaultBinder)
	if len(enabled) == 0 && !first {
		if !hasStranger(plugins.MultiPoint) {
			l.bad(diag.Error, ruleBindOrder, at, "no plugin binds, and the scheduler would not start; enable %s", defaultBinder)
		}
		return
	}
	for i, name := range enabled {
		here := below(at, "enabled", strconv.Itoa(i), "name")
		switch {
		case name == defaultBinder:
		case first:
			l.bad(diag.Error, ruleBindOrder, here, "%s comes first and binds every pod, so %q never runs; put %s under bind.disabled, and behind %q in bind.enabled", defaultBinder, name, defaultBinder, name)
		case listed >= 0 && listed < i:
			l.bad(diag.Error, ruleBindOrder, here, "%s stands before it and binds every pod, so %q never runs; put it behind", defaultBinder, name)
		}
	}
}

// hasStranger reports whether a plugin is enabled whose points are not known.
func hasStranger(set configv1.PluginSet) bool {
	return slices.ContainsFunc(set.Enabled, func(e configv1.Plugin) bool { return pluginPoints[e.Name] == nil })
}

// gangModes looks for profiles that want different machineries for gangs, and for
// those that sort the queue where one of these does.
func (l *linter) gangModes(c *configv1.KubeSchedulerConfiguration) {
	first, mode := "", args.GangMode("")
	for i, p := range c.Profiles {
		own, path := gangMode(p)
		switch {
		case own == "":
		case mode == "":
			first, mode = deref(p.SchedulerName), own
		case own != mode:
			l.bad(diag.Error, "scheduler/gang-modes", below([]string{"profiles", strconv.Itoa(i)}, path...),
				"profile %q has mode %q of %s and profile %q mode %q, and one process has one; use one mode", first, mode, args.Gang, deref(p.SchedulerName), own)
		}
	}
	if mode != args.ModePermit {
		return
	}
	for i, p := range c.Profiles {
		if p.Plugins == nil {
			continue
		}
		for j, sorts := range p.Plugins.QueueSort.Enabled {
			if sorts.Name != prioritySort {
				l.bad(diag.Error, "scheduler/gang-modes", []string{"profiles", strconv.Itoa(i), "plugins", pointQueueSort, "enabled", strconv.Itoa(j), "name"},
					"mode %q of %s in profile %q sorts the queue of all profiles by itself, and the scheduler would not start beside %q; leave queueSort out", mode, args.Gang, first, sorts.Name)
			}
		}
	}
}

// gangMode returns the machinery that the profile wants for gangs, and where it
// says so; empty where it has no gangs, or its arguments are wrong.
func gangMode(p configv1.KubeSchedulerProfile) (args.GangMode, []string) {
	if p.Plugins == nil || !slices.ContainsFunc(setsOf(p.Plugins), func(s pluginSet) bool { return slices.Contains(namesOf(s.Enabled), args.Gang) }) {
		return "", nil
	}
	var raw []byte
	path := []string{"plugins"}
	for i, pc := range p.PluginConfig {
		if pc.Name == args.Gang {
			raw, path = pc.Args.Raw, []string{"pluginConfig", strconv.Itoa(i), "args", "mode"}
		}
	}
	a, err := args.Decode(args.Gang, raw)
	if gang, ok := a.(*args.GangArgs); ok && err == nil {
		return gang.Mode, path
	}
	return "", nil
}

func deref(name *string) string {
	if name == nil {
		return corev1.DefaultSchedulerName
	}
	return *name
}

// lease looks for a second scheduler in the lease of the default one, in which it
// would stand by for ever.
func (l *linter) lease(c *configv1.KubeSchedulerConfiguration) {
	isDefault := len(c.Profiles) == 0 || slices.ContainsFunc(c.Profiles, func(p configv1.KubeSchedulerProfile) bool {
		return p.SchedulerName == nil || *p.SchedulerName == corev1.DefaultSchedulerName
	})
	e := c.LeaderElection
	const lease, namespace = "kube-scheduler", "kube-system"
	elects := e.LeaderElect == nil || *e.LeaderElect
	if isDefault || !elects || e.ResourceName != "" && e.ResourceName != lease || e.ResourceNamespace != "" && e.ResourceNamespace != namespace {
		return
	}
	l.bad(diag.Warning, "scheduler/lease", []string{"leaderElection", "resourceName"},
		"beside the default scheduler it would stand by for ever, because both use the lease %s/%s; give leaderElection.resourceName a name of its own", namespace, lease)
}
