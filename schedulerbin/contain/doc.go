// Package contain runs scheduler plugins so that none of them can take the
// scheduler down or slow it unseen: a panic becomes an error for that pod alone,
// and the time of every call is measured against a budget.
//
// There is one adapter for each extension point. The framework decides by type
// assertion which extension points a plugin has (runtime/framework.go:
// shouldHaveEnqueueExtensions, computeBatchablePlugins, expandMultiPointPlugins),
// so a wrapped plugin must have exactly the interfaces of the plugin inside: one
// too many would cost every pod a call and change what MultiPoint means, one too
// few would silently switch something off. Go cannot make method sets at run
// time (reflect.StructOf promotes the methods of one embedded field at most), and
// code generated for every subset of seventeen interfaces is 131,072 types. So each
// plugin states its composition once, as a struct that embeds the adapters of
// its extension points, and Wrap compares the two method sets by reflection:
//
//	type contained struct {
//		contain.Plugin
//		contain.FilterPlugin
//		contain.ScorePlugin
//	}
//	return contain.Wrap[contained](guard, plugin)
//
// A composition that does not fit is an error when the scheduler starts and in
// the plugin's test, never a silent difference. The cost is one list of names a
// plugin; nothing is generated and nothing is shared between plugins.
//
// The package must not know any plugin.
package contain
