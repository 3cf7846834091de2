package load

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/cuecontext"
	cueload "cuelang.org/go/cue/load"
	"cuelang.org/go/cue/parser"

	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// section is one of the top-level fields that hold named objects.
type section string

// The sections, in the order in which they are judged.
const (
	clustersSection section = "clusters"
	poolsSection    section = "pools"
	kindsSection    section = "kinds"
	policiesSection section = "policies"
	testsSection    section = "tests"
)

var sections = []section{clustersSection, poolsSection, kindsSection, policiesSection, testsSection}

// singular returns what one object of the section is called.
func (s section) singular() string {
	if s == policiesSection {
		return "policy"
	}
	return strings.TrimSuffix(string(s), "s")
}

// definition returns the name of the schema's definition of one object.
func (s section) definition() string {
	name := s.singular()
	return "#" + strings.ToUpper(name[:1]) + name[1:]
}

// object is one cluster, pool, kind, policy or test as a folder's evaluation has it.
type object struct {
	section   section
	name      string
	json      []byte // nil if it has errors
	positions policy.Positions
	// declaredIn are the folders whose files declare it, sorted, topmost first.
	declaredIn []*folder
	declaredAt map[*folder]diag.Range
	// suspect is what most likely changes the object where its folder declares
	// nothing of that name: a pattern over the whole section, say.
	suspect  diag.Range
	findings diag.Findings
	// overrides are the policies that it overrides, if it has errors and they can
	// be told all the same.
	overrides        []string
	overridesUnknown bool
}

// result is what evaluating one folder came to.
type result struct {
	folder   *folder
	objects  []*object
	findings diag.Findings // about no object
	failed   bool          // nothing could be evaluated
}

// object returns the object of that name, or nil.
func (r *result) object(s section, name string) *object {
	for _, o := range r.objects {
		if o.section == s && o.name == name {
			return o
		}
	}
	return nil
}

// injectedName is the file that the loader adds to each package, so that its
// fields are checked against the schema whatever the user imports.
const injectedName = "kubectl_sched_injected.cue"

// evaluation is one folder while it is being evaluated.
type evaluation struct {
	set    *folderSet
	folder *folder
	shapes *shape
	index  *index
	value  cue.Value
	// uses are the entries of catalogs that the package uses, by the fields that do.
	uses map[string]*use
	// catalogs are the packages that were looked at for entries.
	catalogs map[*build.Instance]catalogSyntax
}

// evaluateFolder evaluates one folder's package.
func evaluateFolder(set *folderSet, f *folder, shapes *shape) (r *result) {
	r = &result{folder: f}
	defer func() {
		// The evaluator is other people's code, and a document a stranger's.
		if p := recover(); p != nil {
			r = &result{folder: f, failed: true, findings: diag.Findings{inputError("input/evaluator", f.display,
				"the CUE evaluator gave up on this folder (%v); take parts of it out to find which it is", p)}}
		}
	}()
	inst, err := set.load(f, true)
	if err != nil {
		r.failed = true
		r.findings = append(r.findings, inputError("input/schema", f.display, "%v", err))
		return r
	}
	ev := &evaluation{set: set, folder: f, shapes: shapes, index: newIndex(f.allFiles())}
	r.findings = append(r.findings, ev.unknownTopLevel()...)
	if inst.Err != nil {
		r.failed = true
		r.findings = append(r.findings, ev.loadFindings(inst.Err)...)
		return r
	}
	ev.value = cuecontext.New().BuildInstance(inst)
	ev.uses = ev.findUses(inst)
	r.findings = append(r.findings, ev.checkUses()...)
	r.findings = append(r.findings, ev.uncheckedUses(inst)...)
	if err := ev.value.Err(); err != nil {
		fs := ev.buildFindings(err)
		r.findings = append(r.findings, fs...)
		if len(fs) > 0 && !ev.value.LookupPath(cue.MakePath(cue.Str("policies"))).Exists() {
			r.failed = true
		}
	}
	for _, s := range sections {
		objects, fs := ev.section(s)
		r.objects = append(r.objects, objects...)
		r.findings = append(r.findings, fs...)
	}
	r.findings = append(r.findings, ev.rest()...)
	return r
}

// allFiles returns the files that the folder's package is made of: those that
// it absorbs first.
func (f *folder) allFiles() (files []*cueSource) {
	for _, a := range f.above {
		files = append(files, a.files...)
	}
	return append(files, f.files...)
}

// load loads the folder's package. With share, the syntax that was parsed to
// find the folder is used for it, which only one load may do.
func (set *folderSet) load(f *folder, share bool) (*build.Instance, error) {
	overlay, err := schemaOverlay()
	if err != nil {
		return nil, err
	}
	maps.Copy(overlay, f.module.overlay)
	for _, src := range f.allFiles() {
		overlay[src.file] = cueload.FromBytes(src.data)
	}
	injected := filepath.Join(f.dir, injectedName)
	overlay[injected] = cueload.FromBytes(injection(f))
	if top := f.top(); set.params[top.dir] != nil {
		overlay[filepath.Join(top.dir, "params_"+injectedName)] = cueload.FromBytes(set.params[top.dir])
	}
	reg, err := newRegistry(set.opts.AllowRegistry)
	if err != nil {
		return nil, err
	}
	own := map[string]*cueSource{}
	if share {
		for _, src := range f.files {
			own[src.file] = src
		}
	}
	cfg := &cueload.Config{
		Dir:        f.dir,
		ModuleRoot: f.module.root,
		Overlay:    overlay,
		Registry:   reg,
		Env:        []string{"CUE_REGISTRY=none"},
		Tags:       set.opts.Tags,
		ParseFile: func(name string, src any, cfg parser.Config) (*ast.File, error) {
			if s := own[name]; s != nil {
				return s.syntax, nil
			}
			if _, ours := overlay[name]; !ours && within(f.module.root, name) {
				data, err := f.module.readFile(name)
				if err != nil {
					return nil, fmt.Errorf("%s: %s", set.show(name), pathProblem(err))
				}
				src = data
			}
			return parser.ParseFile(name, src, cfg)
		},
	}
	args := []string{"."}
	if f.only {
		args = args[:0]
		for _, src := range f.files {
			args = append(args, src.file)
		}
		args = append(args, injected)
	}
	return cueload.Instances(args, cfg)[0], nil
}

// injection returns the file that ties a folder's fields to the schema. Where
// the user's files do so already, by the very patterns that init writes, doing
// it twice would only cost time.
func injection(f *folder) []byte {
	typed := map[section]bool{}
	for _, src := range f.allFiles() {
		for _, s := range typedSections(src.syntax) {
			typed[s] = true
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "package %s\n", f.pkg)
	used := false
	var fields bytes.Buffer
	for _, s := range sections {
		if !typed[s] {
			used = true
			fmt.Fprintf(&fields, "%s?: [string]: kubectl_sched_schema.%s\n", s, s.definition())
		}
	}
	if used {
		fmt.Fprintf(&b, "import kubectl_sched_schema %q\n", schemaPackage)
		b.Write(fields.Bytes())
	}
	return b.Bytes()
}

// typedSections returns the sections that a file ties to the schema by a
// pattern of its own, such as policies: [string]: policy.#Policy.
func typedSections(f *ast.File) (typed []section) {
	imported := schemaImport(f)
	if imported == "" {
		return nil
	}
	for _, d := range f.Decls {
		field, ok := d.(*ast.Field)
		if !ok {
			continue
		}
		name, _, err := ast.LabelName(field.Label)
		if err != nil || !slices.Contains(sections, section(name)) {
			continue
		}
		st, ok := field.Value.(*ast.StructLit)
		if !ok {
			continue
		}
		for _, e := range st.Elts {
			if tiesToSchema(e, imported, section(name).definition()) {
				typed = append(typed, section(name))
			}
		}
	}
	return typed
}

// tiesToSchema reports whether a declaration is [string]: <imported>.<definition>.
func tiesToSchema(d ast.Decl, imported, definition string) bool {
	field, ok := d.(*ast.Field)
	if !ok {
		return false
	}
	pattern, ok := field.Label.(*ast.ListLit)
	if !ok || len(pattern.Elts) != 1 {
		return false
	}
	key, ok := pattern.Elts[0].(*ast.Ident)
	if !ok || key.Name != "string" {
		return false
	}
	ref := reference(field.Value)
	return len(ref) == 2 && ref[0] == imported && ref[1] == definition
}

// schemaImport returns the name under which a file imports the schema, or "".
func schemaImport(f *ast.File) string {
	for spec := range f.ImportSpecs() {
		importPath := strings.Trim(spec.Path.Value, `"`)
		base, _, _ := strings.Cut(importPath, "@")
		if base != schemaPackage && !strings.HasPrefix(base, policy.ModulePath+"/policy:") {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return "policy"
	}
	return ""
}

// section evaluates the objects of one section.
func (ev *evaluation) section(s section) ([]*object, diag.Findings) {
	v := ev.value.LookupPath(cue.MakePath(cue.Str(string(s))))
	if !v.Exists() {
		return nil, nil
	}
	fields, err := v.Fields()
	if err != nil {
		return nil, ev.valueFindings(nil, []string{string(s)}, err)
	}
	var objects []*object
	for fields.Next() {
		objects = append(objects, ev.object(s, label(fields.Selector()), fields.Value()))
	}
	return objects, nil
}

// object evaluates one object.
func (ev *evaluation) object(s section, name string, v cue.Value) *object {
	o := &object{section: s, name: name}
	path := []string{string(s), name}
	nodes := ev.index.find(path...)
	o.positions = ev.positions(path, nodes, v)
	ev.owners(o, nodes, v)
	if s != kindsSection && s != testsSection && !namePattern.MatchString(name) {
		f := ev.finding(o, "policy/name", fmt.Sprintf("the name %q %s", name, nameRule))
		f.Range = o.positions[""]
		o.findings = append(o.findings, f)
	}
	sh := ev.shapes.child(string(s)).child(name)
	o.findings = append(o.findings, ev.unknownFields(o, path, certain(certain([]*node{ev.index.root}, string(s)), name), sh)...)
	if err := v.Validate(cue.Concrete(true), cue.Final()); err != nil {
		o.findings = append(o.findings, ev.objectFindings(o, path, v, sh, err)...)
		o.findings = dedupe(o.findings)
		if fs := ev.noResult(o, nodes); len(fs) > 0 {
			o.findings = fs
		}
		if ev.usesBroken(nodes) {
			o.findings = nil // said at the parameters
		}
	} else if !o.findings.HasErrors() {
		if o.json, err = v.MarshalJSON(); err != nil {
			o.json = nil
			o.findings = append(o.findings, ev.valueFindings(o, path, err)...)
		}
	}
	if o.json == nil && s == policiesSection {
		names, known := overridesOf(v)
		o.overrides, o.overridesUnknown = names, !known
	}
	return o
}

// owners fills in which folders declare an object, and where.
func (ev *evaluation) owners(o *object, nodes []*node, v cue.Value) {
	byDir := map[string]*folder{ev.folder.dir: ev.folder}
	for _, a := range ev.folder.above {
		byDir[a.dir] = a
	}
	o.declaredAt = map[*folder]diag.Range{}
	add := func(file string, at diag.Range) {
		f := byDir[filepath.Dir(file)]
		if _, seen := o.declaredAt[f]; f != nil && !seen {
			o.declaredAt[f] = at
		}
	}
	for _, p := range declared(nodes) {
		add(p.label.Pos().Filename(), ev.set.rangeOf(p.label))
	}
	if len(o.declaredAt) == 0 {
		for _, p := range ev.userPositions(v) {
			add(p.Filename(), diag.At(ev.set.pos(p)))
		}
	}
	if len(o.declaredAt) == 0 {
		o.declaredAt[ev.folder] = o.positions[""]
	}
	o.declaredIn = slices.SortedFunc(maps.Keys(o.declaredAt), func(a, b *folder) int { return len(a.dir) - len(b.dir) })
	if o.declaredIn[0] != ev.folder {
		o.suspect = ev.suspect(o.section)
	}
}

// suspect returns the place in the folder's own files that most likely changes
// objects which it does not name: a pattern over the section, or else the first
// field that it keeps to itself or shares with the folder above.
func (ev *evaluation) suspect(s section) diag.Range {
	own := newIndex(ev.folder.files)
	if n := own.root.children[string(s)]; n != nil {
		for _, w := range n.wild {
			if ref := reference(w.places[0].value); ref == nil {
				return ev.set.rangeOf(w.places[0].label)
			}
		}
	}
	for _, label := range slices.Sorted(maps.Keys(own.root.children)) {
		if hidden(label) {
			return ev.set.rangeOf(own.root.children[label].places[0].label)
		}
	}
	return ev.set.rangeOf(ev.folder.files[0].packageName())
}

// decode fills to from an object's JSON, and refuses fields that it does not
// know: then schema and types have drifted apart.
func (o *object) decode(to any) error {
	d := json.NewDecoder(bytes.NewReader(o.json))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return fmt.Errorf("decode %s %q: %w", o.section.singular(), o.name, err)
	}
	return nil
}
