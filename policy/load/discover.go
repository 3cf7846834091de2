package load

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	cueerrors "cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/parser"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// folderSet is everything that is to be evaluated.
type folderSet struct {
	opts    Options
	given   []given
	folders []*folder             // sorted by directory
	modules map[string]*cueModule // by root directory
	params  map[string][]byte     // what folders set for those above them, by the topmost directory
	display map[string]string     // absolute file or folder → as shown
	sources map[string]*cueSource // by absolute file name
	replace map[string][]byte     // texts in the place of files, by absolute file name
}

// given is one path that the user named.
type given struct {
	abs, shown string
}

// groupKey names the folders of one module whose packages have one name: the
// only ones that can absorb each other's files.
type groupKey struct{ root, pkg string }

// folder is one directory whose files form a CUE package.
type folder struct {
	dir     string // absolute
	display string // as the user named it
	module  *cueModule
	pkg     string
	files   []*cueSource // its own, sorted by name
	only    bool         // files were named one by one: read no others
	// above are the folders whose files the package absorbs, topmost first.
	above []*folder
}

func (f *folder) group() groupKey { return groupKey{f.module.root, f.pkg} }

// cueSource is one CUE file of the user.
type cueSource struct {
	file    string // absolute
	display string
	data    []byte
	syntax  *ast.File
}

// discover finds the folders to evaluate, and reads their files.
func discover(o Options) (*folderSet, diag.Findings) {
	set := &folderSet{
		opts:    o,
		modules: map[string]*cueModule{},
		display: map[string]string{},
		sources: map[string]*cueSource{},
		replace: map[string][]byte{},
	}
	base, err := filepath.Abs(cmp.Or(o.Dir, "."))
	if err != nil {
		return set, diag.Findings{inputError("input/path", o.Dir, "the working directory cannot be told: %v", err)}
	}
	set.opts.Dir = base
	for name, text := range o.Replace {
		if !filepath.IsAbs(name) {
			name = filepath.Join(base, name)
		}
		set.replace[filepath.Clean(name)] = text
	}

	var findings diag.Findings
	dirs := map[string][]string{} // directory → the files named in it, nil for all
	for _, p := range o.Paths {
		g := given{abs: p, shown: filepath.Clean(p)}
		if !filepath.IsAbs(p) {
			g.abs = filepath.Join(base, p)
		}
		g.abs = filepath.Clean(g.abs)
		set.given = append(set.given, g)
		info, err := os.Stat(g.abs)
		switch {
		case err != nil:
			findings = append(findings, inputError("input/path", g.shown, "%s", pathProblem(err)))
		case info.IsDir():
			fs := set.walk(g, dirs)
			findings = append(findings, fs...)
		case filepath.Ext(g.abs) != ".cue":
			findings = append(findings, inputError("input/path", g.shown, "not a folder and not a .cue file"))
		default:
			dir := filepath.Dir(g.abs)
			if names, seen := dirs[dir]; !seen || names != nil {
				dirs[dir] = append(names, filepath.Base(g.abs))
			}
		}
	}
	slices.SortFunc(set.given, func(a, b given) int { return cmp.Compare(a.abs, b.abs) })
	if findings.HasErrors() {
		return set, findings
	}
	if len(o.Paths) == 0 {
		return set, diag.Findings{inputError("input/path", "", "no policy folder is given; name one with --policy")}
	}

	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		m, fs := set.moduleOf(dir)
		findings = append(findings, fs...)
		if fs.HasErrors() {
			continue
		}
		if slices.Contains(m.shippedDirs, dir) {
			continue // the schema and the catalog are no documents
		}
		f, fs := set.read(dir, m, dirs[dir])
		findings = append(findings, fs...)
		if f != nil {
			set.folders = append(set.folders, f)
		}
	}
	if findings.HasErrors() {
		return set, findings
	}
	set.findAbove()
	if len(set.folders) == 0 && !findings.HasErrors() {
		findings = append(findings, inputError("input/no-policies", set.given[0].shown,
			"no .cue files here or in the folders below; run \"kubectl sched init\" to start with one"))
	}
	return set, findings
}

// walk adds every directory at and below g that holds CUE files.
func (set *folderSet) walk(g given, dirs map[string][]string) (findings diag.Findings) {
	err := filepath.WalkDir(g.abs, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			findings = append(findings, inputError("input/unreadable", set.show(path), "%s", pathProblem(err)))
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			if path != g.abs && (ignored(d.Name()) || d.Name() == "cue.mod") {
				return fs.SkipDir
			}
			return nil
		}
		switch {
		case d.Type()&fs.ModeSymlink != 0 && linksOutside(g.abs, path):
			findings = append(findings, inputError("input/symlink", set.show(path), "%v", errEscapes))
		case isPolicyFile(d.Name()):
			dirs[filepath.Dir(path)] = nil
		case strings.HasSuffix(d.Name(), "_test.cue") && !ignored(d.Name()):
			findings = append(findings, diag.Finding{
				Rule: "policy/unread-test", Severity: diag.Warning, Range: diag.At(diag.Pos{File: set.show(path)}),
				Message: "CUE leaves a file of that name out of its package, so that no test in it runs; rename it, such as to tests.cue",
			})
		}
		return nil
	})
	for file := range set.replace {
		if filepath.Dir(file) == g.abs {
			dirs[g.abs] = nil // it may be the first file there
		}
	}
	if err != nil {
		findings = append(findings, inputError("input/unreadable", g.shown, "%s", pathProblem(err)))
	}
	return findings
}

// linksOutside reports whether a link leads to a folder that is not below root.
// (A link to a file is judged when the file is read; one to a folder below root
// is passed over, since that folder is read by itself.)
func linksOutside(root, link string) bool {
	info, err := os.Stat(link)
	if err != nil || !info.IsDir() || ignored(filepath.Base(link)) {
		return false
	}
	realRoot, err := filepath.EvalSymlinks(root)
	if err != nil {
		return true
	}
	target, err := filepath.EvalSymlinks(link)
	return err != nil || !within(realRoot, target)
}

// read parses the CUE files of one directory (those in names, or all). It
// returns nil if there are none, or if they cannot be read.
func (set *folderSet) read(dir string, m *cueModule, names []string) (*folder, diag.Findings) {
	f := &folder{dir: dir, display: set.show(dir), module: m, only: names != nil}
	var findings diag.Findings
	if names == nil {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, diag.Findings{inputError("input/unreadable", f.display, "%s", pathProblem(err))}
		}
		for _, e := range entries {
			if !e.IsDir() && isPolicyFile(e.Name()) {
				names = append(names, e.Name())
			}
		}
		for file := range set.replace {
			if filepath.Dir(file) == dir && isPolicyFile(filepath.Base(file)) {
				names = append(names, filepath.Base(file))
			}
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		src, fs := set.source(filepath.Join(dir, name), m)
		findings = append(findings, fs...)
		if src == nil {
			continue
		}
		f.files = append(f.files, src)
		pkg := src.syntax.PackageName()
		switch {
		case pkg == "":
			findings = append(findings, inputError("input/package", src.display,
				"the file has no package clause; begin it with \"package placement\""))
		case f.pkg == "":
			f.pkg = pkg
		case f.pkg != pkg:
			findings = append(findings, diag.Finding{
				Rule: "input/package", Severity: diag.Error, Range: set.rangeOf(src.packageName()),
				Message: fmt.Sprintf("the files of one folder must be of one package, and here are %q and %q", f.pkg, pkg),
				Related: []diag.Related{{Range: set.rangeOf(f.files[0].packageName()), Message: fmt.Sprintf("package %q", f.pkg)}},
			})
		}
	}
	if len(f.files) == 0 || findings.HasErrors() {
		return nil, findings
	}
	return f, findings
}

// packageName returns the name in the package clause, for its position.
func (s *cueSource) packageName() ast.Node {
	for _, d := range s.syntax.Decls {
		if p, ok := d.(*ast.Package); ok {
			return p.Name
		}
	}
	return s.syntax
}

// source reads and parses one file. It returns nil with findings if it cannot.
func (set *folderSet) source(file string, m *cueModule) (*cueSource, diag.Findings) {
	if s := set.sources[file]; s != nil {
		return s, nil
	}
	s := &cueSource{file: file, display: set.show(file)}
	data, replaced := set.replace[file]
	var err error
	if !replaced {
		data, err = m.readFile(file)
	}
	if err != nil {
		return nil, diag.Findings{inputError(ruleOfRead(err), s.display, "%s", pathProblem(err))}
	}
	s.data = data
	if findings := set.parse(s, m.language); len(findings) > 0 {
		return nil, findings
	}
	set.sources[file] = s
	return s, nil
}

// parse parses the file's text.
func (set *folderSet) parse(s *cueSource, language string) diag.Findings {
	syntax, err := parser.ParseFile(s.file, s.data, parser.ParseComments, parser.AllErrors, parser.Version(language))
	if err != nil {
		return set.syntaxFindings(err, s)
	}
	s.syntax = syntax
	return nil
}

// syntaxFindings turns the parser's errors into findings. One slip makes the
// parser complain of much that follows, so only its first error counts, and then
// the first of each later top-level field that is wrong by itself as well.
func (set *folderSet) syntaxFindings(err error, s *cueSource) (findings diag.Findings) {
	errs := cueerrors.Errors(err)[:1]
	if !bytes.Contains(s.data, []byte(`"""`)) && !bytes.Contains(s.data, []byte("'''")) {
		for _, field := range topLevelFields(s.data, errs[0].Position().Line()) {
			if _, err := parser.ParseFile(s.file, field, parser.AllErrors); err != nil {
				errs = append(errs, cueerrors.Errors(err)[0])
			}
		}
	}
	for _, e := range errs {
		format, args := e.Msg()
		f := diag.Finding{
			Rule: "input/syntax", Severity: diag.Error, Range: diag.At(set.pos(e.Position())),
			Message: fmt.Sprintf(format, args...),
		}
		if !f.Range.Start.IsValid() {
			f.Range.Start.File = s.display
		}
		findings = append(findings, f)
	}
	return findings
}

// topLevelFields cuts a file into what seem to be its top-level fields, which
// begin with a name at the beginning of a line, and returns those behind the
// given line, each behind as many empty lines as it had others before it.
func topLevelFields(data []byte, behind int) (fields [][]byte) {
	n := 0
	for line := range bytes.Lines(data) {
		n++
		c := line[0]
		begins := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '"' || c == '_' || c == '#'
		switch {
		case n <= behind:
		case begins:
			fields = append(fields, append(bytes.Repeat([]byte{'\n'}, n-1), line...))
		case len(fields) > 0:
			fields[len(fields)-1] = append(fields[len(fields)-1], line...)
		}
	}
	return fields
}

// findAbove adds to each folder those above it in its module whose files its
// package absorbs, reading the ones that nobody named.
func (set *folderSet) findAbove() {
	known := map[string]*folder{}
	for _, f := range set.folders {
		known[f.dir] = f
	}
	for _, f := range slices.Clone(set.folders) {
		if f.only {
			continue // CUE reads nothing above files that are named one by one
		}
		for dir := filepath.Dir(f.dir); f.dir != f.module.root && within(f.module.root, dir); dir = filepath.Dir(dir) {
			above, seen := known[dir]
			if !seen {
				// A folder that nobody named and that is wrong by itself is no
				// matter, unless its package is ours.
				if above, _ = set.read(dir, f.module, nil); above != nil && above.pkg == f.pkg {
					set.folders = append(set.folders, above)
					known[dir] = above
				}
			}
			if above != nil && !above.only && above.pkg == f.pkg {
				f.above = append(f.above, above)
			}
			if dir == f.module.root {
				break
			}
		}
		slices.Reverse(f.above)
	}
	// Folders found on the way have folders above them as well.
	for _, f := range set.folders {
		if f.above != nil || f.only {
			continue
		}
		for _, other := range set.folders {
			if other != f && !other.only && other.group() == f.group() && within(other.dir, f.dir) {
				f.above = append(f.above, other)
			}
		}
		slices.SortFunc(f.above, func(a, b *folder) int { return cmp.Compare(len(a.dir), len(b.dir)) })
	}
	slices.SortFunc(set.folders, func(a, b *folder) int { return cmp.Compare(a.dir, b.dir) })
}

// show returns an absolute path as the user would name it.
func (set *folderSet) show(abs string) string {
	if s, ok := set.display[abs]; ok {
		return s
	}
	shown := abs
	best := 0
	for _, g := range set.given {
		if within(g.abs, abs) && len(g.abs) > best {
			rel, err := filepath.Rel(g.abs, abs)
			if err == nil {
				shown, best = filepath.Join(g.shown, rel), len(g.abs)
			}
		}
	}
	if best == 0 {
		if rel, err := filepath.Rel(set.opts.Dir, abs); err == nil && filepath.IsLocal(rel) {
			shown = rel
		}
	}
	set.display[abs] = filepath.ToSlash(shown)
	return set.display[abs]
}

// isPolicyFile reports whether CUE counts a file of that name to a package.
func isPolicyFile(name string) bool {
	return strings.HasSuffix(name, ".cue") && !ignored(name) &&
		!strings.HasSuffix(name, "_tool.cue") && !strings.HasSuffix(name, "_test.cue")
}

// ignored reports whether CUE passes over a file or folder of that name.
func ignored(name string) bool { return name[0] == '.' || name[0] == '_' }

// within reports whether path is dir or lies below it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// Why a file was not read, where the operating system has no error for it.
var (
	errTooLarge   = fmt.Errorf("the file is larger than %d MiB, which is no policy", MaxFile>>20)
	errNotRegular = errors.New("not a regular file")
	errEscapes    = errors.New("the link leads out of the folder; copy the file, or name the folder it leads to with --policy")
)

// readLimited reads a regular file of at most MaxFile bytes.
func readLimited(f fs.File) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	if info.Size() > MaxFile {
		return nil, errTooLarge
	}
	var b bytes.Buffer
	b.Grow(int(info.Size()) + 1)
	if _, err := b.ReadFrom(io.LimitReader(f, MaxFile+1)); err != nil {
		return nil, err
	}
	if b.Len() > MaxFile {
		return nil, errTooLarge
	}
	return b.Bytes(), nil
}

// ruleOfRead returns the rule under which a failed read is reported.
func ruleOfRead(err error) string {
	switch {
	case errors.Is(err, errTooLarge):
		return "input/limit"
	case errors.Is(err, errEscapes):
		return "input/symlink"
	}
	return "input/unreadable"
}

// pathProblem says what is wrong with a path, without repeating it.
func pathProblem(err error) string {
	var pe *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "no such file or folder"
	case errors.Is(err, fs.ErrPermission):
		return "permission denied; make it readable"
	case errors.As(err, &pe):
		return pe.Err.Error()
	}
	return err.Error()
}

// inputError is a finding about a file or folder as a whole.
func inputError(rule, shown, format string, args ...any) diag.Finding {
	return diag.Finding{
		Rule: rule, Severity: diag.Error,
		Range: diag.At(diag.Pos{File: filepath.ToSlash(shown)}), Message: fmt.Sprintf(format, args...),
	}
}
