package load

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	cueload "cuelang.org/go/cue/load"
	"cuelang.org/go/cue/parser"

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
	// shippedDirs are where the schema's own repository keeps what is shipped.
	shippedDirs []string
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
		replaced, ok := set.replace[file]
		if text = replaced; !ok {
			text, err = m.readFile(file)
		}
		if err != nil {
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
			// The schema's own repository: its folders are replaced by those that
			// this build carries, so that the two cannot differ.
			own = true
			for _, p := range shipped() {
				m.shippedDirs = append(m.shippedDirs, filepath.Join(root, p.name))
			}
			if err := addShipped(m.overlay, root); err != nil {
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
	// deps are the versions of the modules that it depends on, by their paths with the
	// major version.
	deps map[string]string
}

// readModuleFile reads the literal fields of a module.cue.
func readModuleFile(name string, text []byte) (moduleFacts, error) {
	f, err := parser.ParseFile(name, text)
	if err != nil {
		return moduleFacts{}, err
	}
	facts := moduleFacts{deps: map[string]string{}}
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
			}
			if dependency, ok := strings.CutPrefix(path, "\ndeps\n"); ok && label == "v" {
				facts.deps[dependency] = str(field.Value)
			}
		}
	}
	visit("", f.Decls)
	facts.pinned = facts.deps[schemaModule]
	return facts, nil
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

// theirs reports whether a file is one that the user wrote: not the schema's or the catalog's,
// not one that the loader put in, and not one of another module, vendored or fetched.
func (set *folderSet) theirs(name string) bool {
	if strings.HasSuffix(name, injectedName) || strings.Contains(filepath.ToSlash(name), "/cue.mod/") || !filepath.IsAbs(name) {
		return false
	}
	own := false
	for _, m := range set.modules {
		if slices.Contains(m.shippedDirs, filepath.Dir(name)) {
			return false
		}
		own = own || within(m.root, name)
	}
	return own
}
