package profile

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The group, version and kind of a scheduler's configuration.
const (
	APIVersion = "kubescheduler.config.k8s.io/v1"
	Kind       = "KubeSchedulerConfiguration"
)

// Lease is the name of the bundled scheduler's lease. In that of the default
// scheduler it would stand by for ever.
const Lease = "placement-scheduler"

// header is the comment on top of every configuration that we write.
const header = "Written by kubectl sched compile from the placement policies. Do not edit:\n" +
	"profiles come and go with the policies that need them."

// Configuration returns a KubeSchedulerConfiguration with the profiles, as YAML:
// what differs from upstream's defaults, each with a comment that names the policy
// and its line. Equal profiles give equal bytes, in whatever order they are given.
// With no profile it has none, and upstream would add its default one.
func Configuration(profiles []Profile) ([]byte, error) {
	root := mapping()
	root.add("apiVersion", scalar(APIVersion))
	root.add("kind", scalar(Kind))
	lease := mapping()
	lease.add("resourceName", scalar(Lease))
	root.add("leaderElection", lease)
	if list := Join(profiles...); len(list) > 0 {
		all := sequence()
		for _, p := range list {
			all.append(p.node())
		}
		root.add("profiles", all)
	}
	root.HeadComment = header
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode((*yaml.Node)(root)); err != nil {
		return nil, fmt.Errorf("encode the configuration of the scheduler: %w", err)
	}
	if err := encoder.Close(); err != nil {
		return nil, fmt.Errorf("encode the configuration of the scheduler: %w", err)
	}
	return b.Bytes(), nil
}

// IsOurs reports whether the text is a configuration that we wrote, and so ours to
// replace.
func IsOurs(text []byte) bool {
	first, _, _ := strings.Cut(header, "\n")
	return bytes.HasPrefix(text, []byte("# "+first+"\n"))
}

// node is a YAML node that is being built.
type node yaml.Node

func mapping() *node  { return &node{Kind: yaml.MappingNode, Tag: "!!map"} }
func sequence() *node { return &node{Kind: yaml.SequenceNode, Tag: "!!seq"} }

// scalar is a string, true, false or a number.
func scalar(v any) *node {
	n := new(yaml.Node)
	n.SetString(fmt.Sprint(v))
	if _, text := v.(string); !text {
		n.Tag = ""
		n.Kind, n.Style = yaml.ScalarNode, 0
	}
	return (*node)(n)
}

func (n *node) add(key string, value *node) {
	n.Content = append(n.Content, (*yaml.Node)(scalar(key)), (*yaml.Node)(value))
}

func (n *node) append(value *node) { n.Content = append(n.Content, (*yaml.Node)(value)) }

func (n *node) empty() bool { return len(n.Content) == 0 }

// value is any JSON value; the keys of maps are sorted.
func value(v any) *node {
	switch v := v.(type) {
	case map[string]any:
		out := mapping()
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out.add(key, value(v[key]))
		}
		if out.empty() {
			out.Style = yaml.FlowStyle
		}
		return out
	case []any:
		out := sequence()
		for _, e := range v {
			out.append(value(e))
		}
		if out.empty() {
			out.Style = yaml.FlowStyle
		}
		return out
	}
	return scalar(v)
}

// node is the profile as an element of the list of profiles.
func (p Profile) node() *node {
	out := mapping()
	out.add("schedulerName", scalar(p.Name))
	out.HeadComment = said(p.Need.Wishes())
	for _, s := range p.sorted(pathFields) {
		out.add(s.path[1], value(s.value))
	}
	if plugins := p.pluginsNode(); !plugins.empty() {
		out.add("plugins", plugins)
	}
	if config := p.argsNode(); !config.empty() {
		out.add("pluginConfig", config)
	}
	return out
}

// sorted are the settings whose paths begin so, by path.
func (p Profile) sorted(path ...string) []setting {
	var out []setting
	for _, key := range slices.Sorted(maps.Keys(p.settings)) {
		if s := p.settings[key]; s.under(path) {
			out = append(out, s)
		}
	}
	return out
}

// pluginsNode is what is enabled and disabled. Everything stands at multiPoint,
// where a plugin that upstream has by default keeps its place in the order.
func (p Profile) pluginsNode() *node {
	multi, enabled, disabled := mapping(), sequence(), sequence()
	weights, winners := p.Weights(), p.Winners()
	var run []string
	for _, s := range slices.Concat(p.sorted(pathEnabled), p.sorted(pathWeight), p.sorted(pathWins)) {
		if p.enables(s.path[1]) {
			run = append(run, s.path[1])
			continue
		}
		e := named(s.path[1])
		e.HeadComment = p.about([]string{pathEnabled, s.path[1]})
		disabled.append(e)
	}
	slices.Sort(run)
	for _, name := range slices.Compact(run) {
		e := named(name)
		// A plugin that scores is given its weight in any case: upstream takes 1 for
		// one that has none, also where the default is more.
		if weight, ok := weights[name]; ok {
			e.add("weight", scalar(weight))
		}
		e.HeadComment = p.about([]string{pathEnabled, name}, []string{pathWeight, name}, []string{pathWins, name})
		if slices.Contains(winners, name) {
			e.HeadComment += "\n" + wrapped(p.Arithmetic()+".")
		}
		enabled.append(e)
	}
	for _, s := range p.sorted(pathPoints, pointMulti, "disabled") {
		e := named(s.path[3])
		e.HeadComment = p.about(s.path)
		disabled.append(e)
	}
	if !enabled.empty() {
		multi.add("enabled", enabled)
	}
	if !disabled.empty() {
		multi.add("disabled", disabled)
	}
	out := mapping()
	if !multi.empty() {
		out.add(pointMulti, multi)
	}
	p.addPoints(out)
	return out
}

func named(plugin string) *node {
	e := mapping()
	e.add("name", scalar(plugin))
	return e
}

// addPoints adds what fragments say of single extension points.
func (p Profile) addPoints(out *node) {
	var points []string
	for _, s := range p.sorted(pathPoints) {
		if s.path[1] != pointMulti && !slices.Contains(points, s.path[1]) {
			points = append(points, s.path[1])
		}
	}
	for _, point := range points {
		set, enabled, disabled := mapping(), sequence(), sequence()
		binds := false
		for _, s := range p.sorted(pathPoints, point) {
			if s.path[2] == "disabled" {
				binds = binds || s.path[3] == defaultBinder || s.path[3] == "*"
				e := named(s.path[3])
				e.HeadComment = p.about(s.path)
				disabled.append(e)
				continue
			}
			enabled = value(s.value)
			enabled.Content[0].HeadComment = p.about(s.path)
		}
		if point == pointBind && !enabled.empty() && !binds {
			lastBinder(enabled, disabled)
		}
		if !enabled.empty() {
			set.add("enabled", enabled)
		}
		if !disabled.empty() {
			set.add("disabled", disabled)
		}
		out.add(point, set)
	}
}

// lastBinder puts DefaultBinder behind the other plugins that bind. Upstream puts
// the default plugins of multiPoint first (expandMultiPointPlugins in
// pkg/scheduler/framework/runtime), and DefaultBinder never leaves a pod to the
// next one, so that none of the others would ever run.
func lastBinder(enabled, disabled *node) {
	e := named(defaultBinder)
	e.HeadComment = wrapped("It binds whatever it gets, so it must stand behind the others, and it does so only where it is disabled and listed again.")
	disabled.append(e)
	for _, have := range enabled.Content {
		if have.Content[1].Value == defaultBinder {
			return
		}
	}
	enabled.append(named(defaultBinder))
}

// argsNode are the arguments of plugins.
func (p Profile) argsNode() *node {
	trees := map[string]map[string]any{}
	for _, s := range p.sorted(pathArgs) {
		if trees[s.path[1]] == nil {
			trees[s.path[1]] = map[string]any{}
		}
		put(trees[s.path[1]], s.path[2:], s.value)
	}
	out := sequence()
	for _, name := range slices.Sorted(maps.Keys(trees)) {
		e := named(name)
		e.HeadComment = p.about([]string{pathArgs, name})
		e.add("args", value(listed([]string{pathArgs, name}, trees[name])))
		out.append(e)
	}
	return out
}

// put sets the value at the path, and makes the maps on the way.
func put(tree map[string]any, path []string, v any) {
	for _, step := range path[:len(path)-1] {
		next, ok := tree[step].(map[string]any)
		if !ok {
			next = map[string]any{}
			tree[step] = next
		}
		tree = next
	}
	tree[path[len(path)-1]] = v
}

// listed returns the tree with the resources that are kept by name as the lists
// that the arguments have.
func listed(path []string, tree map[string]any) map[string]any {
	out := map[string]any{}
	for key, v := range tree {
		m, ok := v.(map[string]any)
		switch at := below(path, key); {
		case ok && isResources(at):
			var list []any
			for _, name := range slices.Sorted(maps.Keys(m)) {
				list = append(list, map[string]any{"name": name, "weight": m[name]})
			}
			out[key] = list
		case ok:
			out[key] = listed(at, m)
		default:
			out[key] = v
		}
	}
	return out
}

// about says who asks for what is at the paths or below them.
func (p Profile) about(paths ...[]string) string {
	var wishes []Wish
	for _, w := range p.Need.wishes {
		if slices.ContainsFunc(w.settings, func(s setting) bool {
			_, differs := p.settings[s.key()]
			return differs && slices.ContainsFunc(paths, s.under)
		}) {
			wishes = append(wishes, w)
		}
	}
	return said(wishes)
}

// said names the wishes, one a line.
func said(wishes []Wish) string {
	var lines []string
	for _, w := range wishes {
		at := w.Origin.Range.Start
		at.Column = 0
		lines = append(lines, fmt.Sprintf("%s: policy %q at %s", w.Feature, w.Origin.Policy, at))
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n")
}

// wrapped breaks a text into lines for a comment.
func wrapped(text string) string {
	const width = 90
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return strings.Join(append(lines, line), "\n")
}
