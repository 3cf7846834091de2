package profile

import (
	"fmt"
	"maps"
	"slices"
)

// Fragment is the wish for what a fragment of a KubeSchedulerProfile says, given
// as JSON values; CheckFragment must have found nothing wrong with it. Maps of
// several fragments merge, arguments by the plugin's name; what is enabled at an
// extension point is one value, since its order counts there.
func Fragment(fragment map[string]any, reason string, origin Origin) Wish {
	w := Wish{Feature: FeatureRaw, Reason: reason, Origin: origin}
	for _, field := range slices.Sorted(maps.Keys(fragment)) {
		switch field {
		case "plugins":
			points, _ := fragment[field].(map[string]any)
			for _, point := range slices.Sorted(maps.Keys(points)) {
				set, _ := points[point].(map[string]any)
				w.settings = append(w.settings, pointSettings(point, set)...)
			}
		case "pluginConfig":
			list, _ := fragment[field].([]any)
			for _, e := range list {
				m, _ := e.(map[string]any)
				arguments, _ := m["args"].(map[string]any)
				arguments = maps.Clone(arguments)
				delete(arguments, "apiVersion")
				delete(arguments, "kind")
				w.settings = appendLeaves(w.settings, []string{pathArgs, fmt.Sprint(m["name"])}, arguments)
			}
		default:
			w.settings = appendLeaves(w.settings, []string{pathFields, field}, fragment[field])
		}
	}
	return w
}

// pointSettings are what a fragment says of one extension point.
func pointSettings(point string, set map[string]any) []setting {
	var out []setting
	disabled, _ := set["disabled"].([]any)
	for _, e := range entries(disabled) {
		if point == pointMulti && e.name != "*" {
			out = append(out, off(e.name))
			continue
		}
		out = append(out, setting{[]string{pathPoints, point, "disabled", e.name}, true})
	}
	list, _ := set["enabled"].([]any)
	if len(list) == 0 {
		return out
	}
	if point != pointMulti {
		return append(out, setting{[]string{pathPoints, point, "enabled"}, list})
	}
	for _, e := range entries(list) {
		// Upstream takes what is both enabled and disabled for enabled.
		out = slices.DeleteFunc(out, func(s setting) bool { return s.text() == off(e.name).text() })
		out = append(out, on(e.name))
		if e.weight > 0 {
			out = append(out, setting{[]string{pathWeight, e.name}, e.weight})
		}
	}
	return out
}
