package load

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"cuelang.org/go/cue/ast"
	cueload "cuelang.org/go/cue/load"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/mod/modconfig"
	"cuelang.org/go/mod/modfile"
	"cuelang.org/go/mod/modregistry"
	"cuelang.org/go/mod/module"

	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// cueModule is the CUE module that a folder belongs to: the nearest folder above
// with a cue.mod, or, where there is none, the folder that the user named.
type cueModule struct {
	root     string
	language string
	dir      *os.Root
	overlay  map[string]cueload.Source
	// schemaDir is where the schema's own repository keeps it, else empty.
	schemaDir string
}

// moduleFileName is where a module says what it is, below its root.
var moduleFileName = filepath.Join("cue.mod", "module.cue")

// schemaModule is the module that the schema is served as.
const schemaModule = policy.ModulePath + "@" + policy.ModuleMajor

// moduleOf returns the module of a directory.
func (set *folderSet) moduleOf(dir string) (*cueModule, diag.Findings) {
	root, hasFile := moduleRoot(dir)
	if !hasFile {
		root = dir
		for _, g := range set.given { // sorted: the topmost comes first
			if within(g.abs, dir) {
				root = g.abs
				break
			}
		}
	}
	if m := set.modules[root]; m != nil {
		return m, nil
	}
	opened, err := os.OpenRoot(root)
	if err != nil {
		return nil, diag.Findings{inputError("input/unreadable", set.show(root), "%s", pathProblem(err))}
	}
	m := &cueModule{root: root, dir: opened, language: policy.SchemaLanguage, overlay: map[string]cueload.Source{}}
	set.modules[root] = m

	file := filepath.Join(root, moduleFileName)
	text := []byte("module: \"policy.local@v0\"\nlanguage: version: " + strconv.Quote(policy.SchemaLanguage) + "\n")
	own := false
	var findings diag.Findings
	if hasFile {
		if text, err = m.readFile(file); err != nil {
			return nil, diag.Findings{inputError(ruleOfRead(err), set.show(file), "%s", pathProblem(err))}
		}
		said, err := readModuleFile(file, text)
		if err != nil {
			return nil, set.syntaxFindings(err, &cueSource{display: set.show(file)})
		}
		if said.language != "" {
			m.language = said.language
		}
		if said.module == policy.ModulePath {
			// The schema's own repository: its folder is replaced by the one that
			// this build carries, so that the two cannot differ.
			own = true
			m.schemaDir = filepath.Join(root, "policy")
			if err := addSchema(m.overlay, m.schemaDir); err != nil {
				return nil, diag.Findings{inputError("input/schema", set.show(root), "%v", err)}
			}
		}
		if said.pinned != "" && said.pinned != policy.SchemaVersion {
			findings = append(findings, diag.Finding{
				Rule: "policy/schema-pin", Severity: diag.Warning,
				Range: diag.At(diag.Pos{File: set.show(file)}),
				Message: fmt.Sprintf("the module pins schema %s, and this plugin checks by its own, %s; pin %q",
					said.pinned, policy.SchemaVersion, policy.SchemaVersion),
			})
		}
		own = own || said.pinned != ""
	}
	vendored, fs := set.checkVendored(m)
	findings = append(findings, fs...)
	if !own && !vendored {
		// Fields of one name unify, so the dependency can simply be appended.
		text = append(bytes.TrimRight(text, "\n"), "\ndeps: "+strconv.Quote(schemaModule)+": v: "+strconv.Quote(policy.SchemaVersion)+"\n"...)
	}
	m.overlay[file] = cueload.FromBytes(text)
	return m, findings
}

// moduleRoot returns the nearest folder at or above dir that is the root of a
// CUE module. The root of the file system is never one: its files would all be
// part of every document.
func moduleRoot(dir string) (root string, found bool) {
	for d := dir; d != filepath.Dir(d); d = filepath.Dir(d) {
		if info, err := os.Stat(filepath.Join(d, moduleFileName)); err == nil && !info.IsDir() {
			return d, true
		}
	}
	return "", false
}

// moduleFacts is what matters of a module.cue.
type moduleFacts struct {
	module   string // without the major version
	language string
	pinned   string // the version of the schema's module, if it is a dependency
}

// readModuleFile reads the literal fields of a module.cue.
func readModuleFile(name string, text []byte) (moduleFacts, error) {
	f, err := parser.ParseFile(name, text)
	if err != nil {
		return moduleFacts{}, err
	}
	var facts moduleFacts
	str := func(e ast.Expr) string {
		lit, _ := e.(*ast.BasicLit)
		if lit == nil {
			return ""
		}
		s, _ := strconv.Unquote(lit.Value)
		return s
	}
	var visit func(path string, decls []ast.Decl)
	visit = func(path string, decls []ast.Decl) {
		for _, d := range decls {
			field, ok := d.(*ast.Field)
			if !ok {
				continue
			}
			label, _, _ := ast.LabelName(field.Label)
			p := path + "\n" + label
			if st, ok := field.Value.(*ast.StructLit); ok {
				visit(p, st.Elts)
			}
			switch p {
			case "\nmodule":
				facts.module, _, _ = strings.Cut(str(field.Value), "@")
			case "\nlanguage\nversion":
				facts.language = str(field.Value)
			case "\ndeps\n" + schemaModule + "\nv":
				facts.pinned = str(field.Value)
			}
		}
	}
	visit("", f.Decls)
	return facts, nil
}

// checkVendored reports whether the module carries its own copy of the schema,
// with a finding if that is not the one of this build.
func (set *folderSet) checkVendored(m *cueModule) (bool, diag.Findings) {
	vendored := false
	for _, kind := range []string{"pkg", "gen", "usr"} {
		dir := filepath.Join(m.root, "cue.mod", kind, filepath.FromSlash(policy.ModulePath), "policy")
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			continue
		}
		vendored = true
		entries, err := os.ReadDir(dir)
		if err != nil {
			return true, diag.Findings{inputError("input/unreadable", set.show(dir), "%s", pathProblem(err))}
		}
		for _, e := range entries {
			if !isPolicyFile(e.Name()) {
				continue
			}
			file := filepath.Join(dir, e.Name())
			data, err := m.readFile(file)
			if err != nil {
				return true, diag.Findings{inputError(ruleOfRead(err), set.show(file), "%s", pathProblem(err))}
			}
			want, err := policy.Schema().ReadFile(e.Name())
			if err == nil && bytes.Equal(data, stamped(want)) {
				continue
			}
			message := "the vendored schema has been edited; run \"kubectl sched init --vendor\" to restore it"
			if v := stampOf(data); v != policy.SchemaVersion {
				message = fmt.Sprintf("the vendored schema is %s, and this plugin's is %s; run \"kubectl sched init --vendor\" to renew it",
					v, policy.SchemaVersion)
			}
			return true, diag.Findings{inputError("policy/schema-version", set.show(file), "%s", message)}
		}
	}
	return vendored, nil
}

// stampPrefix begins the first line of a vendored schema file; the version
// follows.
const stampPrefix = "// Vendored by kubectl sched, schema "

// stamped returns a schema file as it is vendored.
func stamped(data []byte) []byte {
	return append([]byte(stampPrefix+policy.SchemaVersion+"; do not edit.\n\n"), data...)
}

// stampOf returns the version that a vendored schema file says it is of.
func stampOf(data []byte) string {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	version, ok := bytes.CutPrefix(line, []byte(stampPrefix))
	if !ok {
		return "of no known version"
	}
	v, _, _ := bytes.Cut(version, []byte(";"))
	return string(v)
}

// readFile reads a file below the module's root. A link that leads out of the
// root is an error, and so is what is too large or no regular file.
func (m *cueModule) readFile(abs string) ([]byte, error) {
	rel, err := filepath.Rel(m.root, abs)
	if err != nil {
		return nil, err
	}
	// Opening a pipe would wait for a writer, so look first.
	info, err := m.dir.Stat(rel)
	if err != nil {
		if _, outside := os.Stat(abs); outside == nil && !errors.Is(err, fs.ErrPermission) {
			return nil, errEscapes
		}
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	f, err := m.dir.Open(rel)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readLimited(f)
}

// virtualRoot is where the schema's module seems to be on disk. Nothing is
// there: the loader's overlay answers for it.
func virtualRoot() string {
	if runtime.GOOS == "windows" {
		return `C:\kubectl-sched.schema`
	}
	return "/kubectl-sched.schema"
}

// theirs reports whether a file is one that the user wrote: not the schema's,
// not one that the loader put in, and not a vendored one.
func (set *folderSet) theirs(name string) bool {
	if strings.HasPrefix(name, virtualRoot()) || strings.HasSuffix(name, injectedName) ||
		strings.Contains(filepath.ToSlash(name), "/cue.mod/") || !filepath.IsAbs(name) {
		return false
	}
	for _, m := range set.modules {
		if m.schemaDir != "" && filepath.Dir(name) == m.schemaDir {
			return false
		}
	}
	return true
}

// schemaOverlay is the schema's module, below virtualRoot.
func schemaOverlay() (map[string]cueload.Source, error) {
	overlay := map[string]cueload.Source{
		filepath.Join(virtualRoot(), moduleFileName): cueload.FromString(schemaModuleText()),
	}
	return overlay, addSchema(overlay, filepath.Join(virtualRoot(), "policy"))
}

// addSchema adds the schema's files to an overlay, in the given folder.
func addSchema(overlay map[string]cueload.Source, dir string) error {
	entries, err := policy.Schema().ReadDir(".")
	if err != nil {
		return fmt.Errorf("read the built-in schema: %w", err)
	}
	for _, e := range entries {
		data, err := policy.Schema().ReadFile(e.Name())
		if err != nil {
			return fmt.Errorf("read the built-in schema: %w", err)
		}
		overlay[filepath.Join(dir, e.Name())] = cueload.FromBytes(data)
	}
	return nil
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
	entries, err := policy.Schema().ReadDir(".")
	if err != nil {
		return virtualFS{}, err
	}
	for _, e := range entries {
		data, err := policy.Schema().ReadFile(e.Name())
		if err != nil {
			return virtualFS{}, err
		}
		if err := add("policy/"+e.Name(), data); err != nil {
			return virtualFS{}, err
		}
	}
	if err := w.Close(); err != nil {
		return virtualFS{}, err
	}
	r, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	return virtualFS{r}, err
})
