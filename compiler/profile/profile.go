package profile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// NamePrefix begins the name of every profile that we make.
const NamePrefix = "placement-"

// Profile is a profile of the scheduler for one need, or for several equal ones.
type Profile struct {
	// Name is what the schedulerName of its pods says. It is made of what is asked
	// for, and does not depend on what other policies there are.
	Name string
	// Need is what the profile is for, with all who ask for it.
	Need Need

	// settings are what differs from upstream's defaults, by key.
	settings map[string]setting
}

// Of returns the profile for the need, whose Conflicts must have been reported:
// where it contradicts itself, one of the values is taken.
func Of(n Need) Profile {
	p := Profile{Need: n, settings: settle(n)}
	p.Name = NamePrefix + strings.Join(n.Features(), "-")
	if own := texts(p.settings); !slices.Equal(own, texts(settle(usual(n.Features())))) {
		sum := sha256.Sum256([]byte(strings.Join(own, "\n")))
		p.Name += "-" + hex.EncodeToString(sum[:])[:hashDigits]
	}
	return p
}

// hashDigits is how many hexadecimal digits tell profiles of the same features
// apart.
const hashDigits = 6

// Join returns one profile for each name, sorted, with all who need it. Profiles
// with one name have the same settings, or differ in a hash.
func Join(profiles ...Profile) []Profile {
	byName := map[string]Profile{}
	for _, p := range profiles {
		if have, ok := byName[p.Name]; ok {
			p.Need = Merge(have.Need, p.Need)
		}
		byName[p.Name] = p
	}
	var out []Profile
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		out = append(out, byName[name])
	}
	return out
}

func texts(settings map[string]setting) []string {
	var out []string
	for _, s := range settings {
		out = append(out, s.text())
	}
	slices.Sort(out)
	return out
}

// usual is the need for the features with the arguments that they have by default.
func usual(features []string) Need {
	var wishes []Wish
	for _, f := range features {
		switch f {
		case FeaturePack:
			wishes = append(wishes, Pack(nil, 0, "", Origin{}))
		case FeatureBalance:
			wishes = append(wishes, Balance(nil, "", Origin{}))
		}
		for score, feature := range winFeatures {
			if f == feature {
				wishes = append(wishes, MustWin(score, "", Origin{}))
			}
		}
		for plugin, of := range pluginFeatures {
			if f == of.feature {
				if w, err := Plugin(plugin, nil, "", Origin{}); err == nil {
					wishes = append(wishes, w)
				}
			}
		}
	}
	return NewNeed(wishes...)
}

// settle returns the settings of the need that differ from upstream's defaults.
// Of several for one path, that of the first wish is taken.
func settle(n Need) map[string]setting {
	out := map[string]setting{}
	for _, s := range n.settings() {
		if _, ok := out[s.key()]; !ok {
			out[s.key()] = s
		}
	}
	d := defaults()
	strategy := setting{path: []string{pathArgs, resourcesFit, "scoringStrategy", "type"}}
	kind, said := out[strategy.key()]
	maps.DeleteFunc(out, func(_ string, s setting) bool {
		switch s.path[0] {
		case pathEnabled:
			return s.value == slices.Contains(d.plugins, s.path[1])
		case pathWeight:
			_, known := d.weights[s.path[1]]
			return known && s.value == d.weights[s.path[1]]
		case pathArgs:
			return isDefault(d.args[s.path[1]], s.path[2:], s.value)
		}
		return false
	})
	dropDefaultResources(out)
	// A strategy that says anything must say its type: upstream has a default for
	// the whole of it alone.
	for _, s := range out {
		if said && s.under(strategy.path[:3]) {
			out[strategy.key()] = kind
			break
		}
	}
	return out
}

// isDefault reports whether the value is what the tree has at the path.
func isDefault(tree map[string]any, path []string, value any) bool {
	var at any = tree
	for _, step := range path {
		m, ok := at.(map[string]any)
		if !ok {
			return false
		}
		if at, ok = m[step]; !ok {
			return false
		}
	}
	return reflect.DeepEqual(normal(at), normal(value))
}

// normal returns a JSON value with one type for all numbers.
func normal(v any) any {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = normal(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = normal(v[k])
		}
		return out
	}
	return v
}

// dropDefaultResources drops lists of resources that are what upstream counts
// anyway. A list replaces upstream's as a whole.
func dropDefaultResources(settings map[string]setting) {
	lists := map[string]map[string]any{}
	paths := map[string][]string{}
	for _, s := range settings {
		if at := s.path[:len(s.path)-1]; isResources(at) {
			key := strings.Join(at, separator)
			if lists[key] == nil {
				lists[key], paths[key] = map[string]any{}, at
			}
			lists[key][s.path[len(s.path)-1]] = s.value
		}
	}
	for key, list := range lists {
		var at any = defaults().args[paths[key][1]]
		for _, step := range paths[key][2:] {
			m, _ := at.(map[string]any)
			at = m[step]
		}
		usual, _ := at.([]any)
		byName, ok := resourceWeights(paths[key], usual)
		if !ok || !reflect.DeepEqual(normal(byName), normal(list)) {
			continue
		}
		for name := range list {
			delete(settings, key+separator+name)
		}
	}
}

// enables reports whether the plugin runs in the profile at all.
func (p Profile) enables(plugin string) bool {
	if s, ok := p.settings[setting{path: []string{pathEnabled, plugin}}.key()]; ok {
		return s.value == true
	}
	return slices.Contains(defaults().plugins, plugin) && !p.switchedOff(pointMulti, plugin)
}

// switchedOff reports whether a fragment disables the plugin at the point.
func (p Profile) switchedOff(point, plugin string) bool {
	for _, name := range []string{plugin, "*"} {
		if _, off := p.settings[setting{path: []string{pathPoints, point, "disabled", name}}.key()]; off {
			return true
		}
	}
	return false
}

// Plugins returns the plugins that run in the profile besides upstream's default
// ones, sorted.
func (p Profile) Plugins() []string {
	var out []string
	for _, s := range p.settings {
		if s.path[0] == pathEnabled && s.value == true {
			out = append(out, s.path[1])
		}
	}
	slices.Sort(out)
	return out
}

// String returns the profile's name and what it is for.
func (p Profile) String() string {
	return fmt.Sprintf("%s (%s)", p.Name, strings.Join(p.Need.Features(), ", "))
}
