package profile

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// maxScore is the most that one plugin gives a node, before its weight
// (framework.MaxNodeScore); the framework refuses more, and less than 0.
const maxScore = 100

// Weights returns what each plugin that scores counts in the profile. A plugin
// that wins counts so much that one point of it outweighs the maxScore points of
// all others that do not win: the framework sums up score times weight.
func (p Profile) Weights() map[string]int64 {
	out, winners := map[string]int64{}, p.Winners()
	for name, weight := range defaults().weights {
		if p.enables(name) && !p.switchedOff(pointScore, name) {
			out[name] = weight
		}
	}
	for _, s := range p.settings {
		switch {
		case s.path[0] == pathEnabled && s.value == true && scores(s.path[1]) && !p.switchedOff(pointScore, s.path[1]):
			out[s.path[1]] = max(out[s.path[1]], 1)
		case s.path[0] == pathPoints && s.path[1] == pointScore && s.path[2] == "enabled":
			for _, e := range entries(s.value) {
				out[e.name] = max(e.weight, 1)
			}
		}
	}
	for _, s := range p.settings {
		weight, ok := s.value.(int64)
		if _, runs := out[s.path[1]]; ok && s.path[0] == pathWeight && runs {
			out[s.path[1]] = max(weight, 1)
		}
	}
	others := int64(0)
	for name, weight := range out {
		if !slices.Contains(winners, name) {
			others += weight
		}
	}
	for _, name := range winners {
		out[name] = min(others*maxScore+1, math.MaxInt32)
	}
	return out
}

// Winners returns the plugins whose scores outweigh all others, sorted.
func (p Profile) Winners() []string {
	var out []string
	for _, s := range p.settings {
		if s.path[0] == pathWins {
			out = append(out, s.path[1])
		}
	}
	slices.Sort(out)
	return out
}

// Arithmetic says for a reader how the weight of those that win comes about; empty
// if none does.
func (p Profile) Arithmetic() string {
	winners := p.Winners()
	if len(winners) == 0 {
		return ""
	}
	weights := p.Weights()
	var others []string
	sum := int64(0)
	for _, name := range slices.Sorted(maps.Keys(weights)) {
		if !slices.Contains(winners, name) {
			others = append(others, fmt.Sprintf("%s %d", name, weights[name]))
			sum += weights[name]
		}
	}
	return fmt.Sprintf("the other scores weigh %d together (%s) and give at most %d points each, %d in all, so a weight of %d lets one point of %s outweigh them",
		sum, strings.Join(others, ", "), maxScore, sum*maxScore, weights[winners[0]], strings.Join(winners, " or "))
}

// entry is one plugin in a list of enabled ones.
type entry struct {
	name   string
	weight int64 // 0 where nothing is said
}

// entries reads a list of enabled plugins.
func entries(list any) []entry {
	var out []entry
	all, _ := list.([]any)
	for _, e := range all {
		m, _ := e.(map[string]any)
		name, _ := m["name"].(string)
		weight, _ := normal(m["weight"]).(float64)
		out = append(out, entry{name, int64(weight)})
	}
	return out
}
