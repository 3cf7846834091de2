package args

// The names of the bundled plugins, as a KubeSchedulerConfiguration has them.
const (
	// CacheLocality prefers nodes that have a pod's data warm.
	CacheLocality = "CacheLocality"
	// GPUMemory counts GPU memory by device.
	GPUMemory = "GPUMemory"
	// Gang places the members of a group together or not at all.
	Gang = "Gang"
)

// Names returns the names of all plugins that Decode knows, sorted.
func Names() []string { return []string{CacheLocality, GPUMemory, Gang} }

// Args are the arguments of one of our plugins: *CacheLocalityArgs,
// *GPUMemoryArgs or *GangArgs.
type Args interface {
	// PluginName is the name of the plugin that the arguments are for.
	PluginName() string
	// setDefaults gives every field its default value.
	setDefaults()
	// validate returns what is wrong with the values, in the order of the fields.
	validate() problems
}

// Default returns the arguments of the plugin as they are if nothing is said.
// The error names the plugins that there are.
func Default(plugin string) (Args, error) {
	a, err := empty(plugin)
	if err != nil {
		return nil, err
	}
	a.setDefaults()
	return a, nil
}

// empty returns the zero arguments of the plugin.
func empty(plugin string) (Args, error) {
	switch plugin {
	case CacheLocality:
		return &CacheLocalityArgs{}, nil
	case GPUMemory:
		return &GPUMemoryArgs{}, nil
	case Gang:
		return &GangArgs{}, nil
	}
	return nil, unknownPlugin(plugin)
}
