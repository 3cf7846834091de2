package load

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"

	cueload "cuelang.org/go/cue/load"
	"cuelang.org/go/mod/modconfig"
	"cuelang.org/go/mod/modfile"
	"cuelang.org/go/mod/modregistry"
	"cuelang.org/go/mod/module"

	"github.com/kubectl-sched/kubectl-sched/policy"
)

// virtualRoot is where the schema's module seems to be on disk. Nothing is
// there: the loader's overlay answers for it.
func virtualRoot() string {
	if runtime.GOOS == "windows" {
		return `C:\kubectl-sched.schema`
	}
	return "/kubectl-sched.schema"
}

// schemaOverlay is the module that is shipped, below virtualRoot.
func schemaOverlay() (map[string]cueload.Source, error) {
	overlay := map[string]cueload.Source{
		filepath.Join(virtualRoot(), moduleFileName): cueload.FromString(schemaModuleText()),
	}
	return overlay, addShipped(overlay, virtualRoot())
}

func schemaModuleText() string {
	return "module: " + strconv.Quote(schemaModule) + "\nlanguage: version: " + strconv.Quote(policy.SchemaLanguage) + "\n"
}

// registry serves the schema's module from memory, and every other one from
// next, or, where that is nil, not at all.
type registry struct {
	next modconfig.Registry
}

var _ modconfig.Registry = registry{}

// errNoRegistry is why a module other than the schema's cannot be had.
var errNoRegistry = errors.New("modules are not downloaded; vendor it below cue.mod/pkg, or allow the registry with --allow-registry")

// newRegistry returns the registry for one load.
func newRegistry(allow bool) (registry, error) {
	if !allow {
		return registry{}, nil
	}
	next, err := modconfig.NewRegistry(nil)
	if err != nil {
		return registry{}, fmt.Errorf("set up the module registry: %w", err)
	}
	return registry{next}, nil
}

func isSchema(mv module.Version) bool { return mv.Path() == schemaModule }

// ModFile returns the module file of a module version.
func (r registry) ModFile(ctx context.Context, mv module.Version) (*modfile.File, error) {
	switch {
	case isSchema(mv):
		return modfile.Parse([]byte(schemaModuleText()), path.Join(virtualRoot(), "cue.mod/module.cue"))
	case r.next == nil:
		return nil, fmt.Errorf("module %v: %w", mv, errNoRegistry)
	}
	return r.next.ModFile(ctx, mv)
}

// Fetch returns where the files of a module version are.
func (r registry) Fetch(ctx context.Context, mv module.Version) (module.SourceLoc, error) {
	switch {
	case isSchema(mv):
		schema, err := schemaFS()
		return module.SourceLoc{FS: schema, Dir: "."}, err
	case r.next == nil:
		return module.SourceLoc{}, fmt.Errorf("module %v: %w", mv, errNoRegistry)
	}
	return r.next.Fetch(ctx, mv)
}

// ModuleVersions returns the versions that a module has.
func (r registry) ModuleVersions(ctx context.Context, mpath string) ([]string, error) {
	switch {
	case mpath == schemaModule:
		return []string{policy.SchemaVersion}, nil
	case r.next == nil:
		return nil, nil
	}
	return r.next.ModuleVersions(ctx, mpath)
}

// FetchFromCache says that nothing is cached, but for the schema.
func (r registry) FetchFromCache(mv module.Version) (module.SourceLoc, error) {
	if isSchema(mv) {
		return r.Fetch(context.Background(), mv)
	}
	if cached, ok := r.next.(modconfig.CachedRegistry); ok {
		return cached.FetchFromCache(mv)
	}
	return module.SourceLoc{}, modregistry.ErrNotFound
}

// virtualFS is the schema's module as a file system that claims to be at
// virtualRoot.
type virtualFS struct{ fs.FS }

var _ module.OSRootFS = virtualFS{}

// OSRoot returns where the file system seems to be.
func (virtualFS) OSRoot() string { return virtualRoot() }

// schemaFS is the schema's module. A zip archive in memory is the shortest way
// to a file system with other names than the embedded one's.
var schemaFS = sync.OnceValues(func() (virtualFS, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	add := func(name string, data []byte) error {
		f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err == nil {
			_, err = f.Write(data)
		}
		return err
	}
	if err := add("cue.mod/module.cue", []byte(schemaModuleText())); err != nil {
		return virtualFS{}, err
	}
	for _, p := range shipped() {
		files, err := p.texts()
		if err != nil {
			return virtualFS{}, err
		}
		for _, f := range files {
			if err := add(p.name+"/"+f.name, f.data); err != nil {
				return virtualFS{}, err
			}
		}
	}
	if err := w.Close(); err != nil {
		return virtualFS{}, err
	}
	r, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	return virtualFS{r}, err
})
