package load

import (
	"fmt"
	"path"
	"strconv"

	"github.com/kubectl-sched/kubectl-sched/policy"
)

// Vendored returns the schema as a module carries a copy of it, so that plain
// cue and editors find it: file names relative to the module's root, with
// slashes, and their texts.
func Vendored() (map[string][]byte, error) {
	entries, err := policy.Schema().ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("read the built-in schema: %w", err)
	}
	files := map[string][]byte{}
	for _, e := range entries {
		data, err := policy.Schema().ReadFile(e.Name())
		if err != nil {
			return nil, fmt.Errorf("read the built-in schema: %w", err)
		}
		files[path.Join("cue.mod/pkg", policy.ModulePath, "policy", e.Name())] = stamped(data)
	}
	return files, nil
}

// ModuleFile returns the name, relative to a module's root, and the text of the
// file that makes a folder the CUE module of that path.
func ModuleFile(modulePath string) (name string, text []byte) {
	return "cue.mod/module.cue", fmt.Appendf(nil, "module: %s\nlanguage: version: %s\n", strconv.Quote(modulePath), strconv.Quote(policy.SchemaLanguage))
}

// ModuleRoot returns the root of the CUE module that an absolute folder belongs
// to, if it belongs to one.
func ModuleRoot(dir string) (root string, found bool) { return moduleRoot(dir) }
