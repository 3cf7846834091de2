// Package fieldpath finds the value that the condition of a gate asks for in an
// object. It maps the path of a condition to a compiled JSONPath, and is apart from
// package condition so that whoever writes conditions needs no client of a
// cluster. It must not know gates.
package fieldpath

import (
	"fmt"

	"k8s.io/client-go/util/jsonpath"
)

// Compile returns the path, compiled. It finds nothing, instead of failing, where
// an object has no such field. Every path that a checked condition has compiles.
func Compile(path string) (*jsonpath.JSONPath, error) {
	compiled := jsonpath.New("path").AllowMissingKeys(true)
	if err := compiled.Parse(path); err != nil {
		return nil, fmt.Errorf("the path %q: %w", path, err)
	}
	return compiled, nil
}
