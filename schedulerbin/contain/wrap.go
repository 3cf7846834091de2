package contain

import (
	"fmt"
	"reflect"
	"strings"

	fwk "k8s.io/kube-scheduler/framework"
)

// interfaces are all that the framework asks a plugin for by type assertion. A
// test holds the list to upstream's. PlacementFeasiblePlugin is not among them:
// it is not public, and the framework asks the one plugin GangScheduling for it
// alone.
var interfaces = []reflect.Type{
	reflect.TypeFor[fwk.PreEnqueuePlugin](),
	reflect.TypeFor[fwk.QueueSortPlugin](),
	reflect.TypeFor[fwk.EnqueueExtensions](),
	reflect.TypeFor[fwk.SignPlugin](),
	reflect.TypeFor[fwk.PreFilterPlugin](),
	reflect.TypeFor[fwk.FilterPlugin](),
	reflect.TypeFor[fwk.PostFilterPlugin](),
	reflect.TypeFor[fwk.PodGroupPostFilterPlugin](),
	reflect.TypeFor[fwk.PreScorePlugin](),
	reflect.TypeFor[fwk.ScorePlugin](),
	reflect.TypeFor[fwk.ReservePlugin](),
	reflect.TypeFor[fwk.PermitPlugin](),
	reflect.TypeFor[fwk.PreBindPlugin](),
	reflect.TypeFor[fwk.BindPlugin](),
	reflect.TypeFor[fwk.PostBindPlugin](),
	reflect.TypeFor[fwk.PlacementGeneratePlugin](),
	reflect.TypeFor[fwk.PlacementScorePlugin](),
}

// adapter is one of the types that a composition embeds.
type adapter interface {
	// attach gives the adapter the plugin inside. Its error says which interface
	// the plugin lacks.
	attach(*Guard, fwk.Plugin) error
}

// Wrap returns a *T that forwards to the plugin under the guard. T is a struct
// that embeds Plugin and the adapter of every optional interface that the plugin
// has, and nothing else. The error names what does not fit.
func Wrap[T any](guard *Guard, plugin fwk.Plugin) (fwk.Plugin, error) {
	composition := new(T)
	value := reflect.ValueOf(composition).Elem()
	if value.Kind() != reflect.Struct {
		return nil, fmt.Errorf("contain plugin %q: %T is no struct of adapters", guard.plugin, composition)
	}
	for i := range value.NumField() {
		field := value.Type().Field(i)
		if !field.Anonymous || !field.IsExported() {
			return nil, fmt.Errorf("contain plugin %q: field %s of %T is no embedded adapter", guard.plugin, field.Name, composition)
		}
		a, ok := value.Field(i).Addr().Interface().(adapter)
		if !ok {
			return nil, fmt.Errorf("contain plugin %q: %s, embedded in %T, is no adapter", guard.plugin, field.Type, composition)
		}
		if err := a.attach(guard, plugin); err != nil {
			return nil, fmt.Errorf("contain plugin %q: %w", guard.plugin, err)
		}
	}
	wrapped, ok := any(composition).(fwk.Plugin)
	if !ok {
		return nil, fmt.Errorf("contain plugin %q: %T does not embed contain.Plugin", guard.plugin, composition)
	}
	if missing := lacks(reflect.TypeOf(composition), reflect.TypeOf(plugin)); len(missing) > 0 {
		return nil, fmt.Errorf("contain plugin %q: %T has %s, and %T embeds no adapter for it", guard.plugin, plugin, strings.Join(missing, ", "), composition)
	}
	return wrapped, nil
}

// lacks lists the interfaces that the plugin has and the composition has not.
func lacks(composition, plugin reflect.Type) []string {
	var missing []string
	for _, i := range interfaces {
		if plugin.Implements(i) && !composition.Implements(i) {
			missing = append(missing, i.Name())
		}
	}
	return missing
}

// part returns the plugin as one of its optional interfaces.
func part[I any](plugin fwk.Plugin) (I, error) {
	inner, ok := plugin.(I)
	if !ok {
		return inner, fmt.Errorf("%T is no %s, and an adapter for it is embedded", plugin, reflect.TypeFor[I]().Name())
	}
	return inner, nil
}

// Plugin forwards the plugin's name.
type Plugin struct{ name string }

// Name is the name of the plugin inside.
func (p *Plugin) Name() string { return p.name }

func (p *Plugin) attach(_ *Guard, plugin fwk.Plugin) error {
	if p.name = plugin.Name(); p.name == "" {
		return fmt.Errorf("%T has no name, and the framework goes by that", plugin)
	}
	return nil
}

// wrappedByUs marks what Wrap returned, which embeds Plugin.
func (p *Plugin) wrappedByUs() {}

// IsContained reports whether the plugin is one that Wrap returned.
func IsContained(plugin fwk.Plugin) bool {
	_, ok := plugin.(interface{ wrappedByUs() })
	return ok
}
