package load

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	cueerrors "cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/token"

	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// leadingPosition is how some of CUE's texts begin.
var leadingPosition = regexp.MustCompile(`^\S+:\d+:\d+: `)

// loadFindings explains why a package could not be put together.
func (ev *evaluation) loadFindings(err error) (findings diag.Findings) {
	for _, e := range cueerrors.Errors(err) {
		text, _, _ := strings.Cut(e.Error(), "\n")
		text = leadingPosition.ReplaceAllString(strings.TrimPrefix(text, "import failed: "), "")
		f := ev.finding(nil, "input/syntax", text)
		f.Range = ev.rangeOfError(nil, e)
		switch {
		case strings.Contains(text, "language version") && strings.Contains(text, "too"):
			f.Rule = "input/language-version"
			f.Message = fmt.Sprintf("the module is written for CUE %s, which this plugin is too old for; upgrade the plugin", ev.folder.module.language)
			f.Range = diag.At(diag.Pos{File: ev.set.show(filepath.Join(ev.folder.module.root, moduleFileName))})
		case strings.Contains(text, errNoRegistry.Error()), strings.Contains(text, "cannot find package"),
			strings.Contains(text, "cannot find module"), strings.Contains(text, "no dependency found"):
			f.Rule = "input/import"
			message, reason, unread := strings.Cut(text, ": cannot get imports: ")
			f.Message = message
			if unread {
				f.Message += ": " + reason
			} else if !strings.Contains(text, errNoRegistry.Error()) && !ev.set.opts.AllowRegistry {
				f.Message += "; " + errNoRegistry.Error()
			}
		}
		if strings.Contains(text, "module.cue") && f.Range.Start.Line == 0 {
			f.Rule = "input/module"
			f.Range = diag.At(diag.Pos{File: ev.set.show(filepath.Join(ev.folder.module.root, moduleFileName))})
		}
		findings = append(findings, f)
	}
	return dedupe(findings)
}

// buildFindings explains what is wrong with a package as a whole: a reference
// to nothing, say. What is wrong inside an object is found there.
func (ev *evaluation) buildFindings(err error) (findings diag.Findings) {
	for _, e := range cueerrors.Errors(err) {
		f := ev.finding(nil, "policy/evaluation", cueText(e))
		name, isReference := strings.CutPrefix(f.Message, "reference ")
		if path := pathOf(e); !isReference && len(path) > 1 && (slices.Contains(sections, section(path[0])) || ev.uses[path[0]] != nil) {
			continue
		}
		if isReference && strings.HasSuffix(name, " not found") {
			f.Rule = "policy/reference"
			f.Message = ev.unresolved(strings.TrimSuffix(name, " not found"))
		}
		f.Range = ev.rangeOfError(nil, e)
		if f.Range.Start.Line == 0 {
			// It is in a package that the folder imports, such as a vendored catalog.
			for _, p := range cueerrors.Positions(e) {
				if p.IsValid() && within(ev.folder.module.root, p.Filename()) && !strings.HasSuffix(p.Filename(), injectedName) {
					f.Range = diag.At(ev.set.pos(p))
					break
				}
			}
		}
		findings = append(findings, f)
	}
	return dedupe(findings)
}

// unresolved says that a name refers to nothing.
func (ev *evaluation) unresolved(quoted string) string {
	name, err := strconv.Unquote(quoted)
	if err != nil {
		name = quoted
	}
	var known []string
	for label := range ev.index.root.children {
		known = append(known, label)
	}
	if near, ok := diag.Nearest(name, known); ok && near != name {
		return fmt.Sprintf("nothing is called %q here; did you mean %q?", name, near)
	}
	if slices.ContainsFunc(shipped(), func(p shippedPackage) bool { return p.name == name }) {
		return fmt.Sprintf("nothing is called %q here; add: import %q", name, policy.ModulePath+"/"+name)
	}
	return fmt.Sprintf("nothing is called %q here; define it, or put a text into quotes", name)
}

// rest finds what is wrong with the fields that hold no objects.
func (ev *evaluation) rest() (findings diag.Findings) {
	if v := ev.value.LookupPath(cue.MakePath(cue.Str("params"))); v.Exists() {
		if err := v.Validate(); err != nil {
			findings = append(findings, ev.valueFindings(nil, []string{"params"}, err)...)
		}
	}
	// Fields that a comprehension or an embedding brings in are in no index.
	fields, err := ev.value.Fields()
	if err != nil {
		return findings
	}
	for fields.Next() {
		name := label(fields.Selector())
		if ev.shapes.fields[name] != nil || ev.index.root.children[name] != nil {
			continue
		}
		f := ev.unknownField(nil, nil, name, ev.shapes, nil)
		f.Range = ev.rangeOfPath([]string{name}, fields.Value())
		findings = append(findings, f)
	}
	return findings
}

// objectFindings explains what is wrong with an object. One wrong value makes
// CUE silent about others beside it, so every field is asked by itself.
func (ev *evaluation) objectFindings(o *object, path []string, v cue.Value, sh *shape, err error) (findings diag.Findings) {
	findings = append(ev.valueFindings(o, path, err), ev.unmask(o, path, v, sh)...)
	if len(findings) == 0 && (o == nil || len(o.findings) == 0) {
		// Whatever it is, it must not pass.
		for _, e := range cueerrors.Errors(err) {
			f := ev.finding(o, "policy/evaluation", cueText(e))
			f.Range = ev.rangeOfError(pathOf(e), e)
			findings = append(findings, f)
		}
	}
	return findings
}

func (ev *evaluation) unmask(o *object, path []string, v cue.Value, sh *shape) (findings diag.Findings) {
	nodes := ev.index.find(path...)
	if sh == nil || isListFor(nodes, sh) {
		return nil
	}
	labels := map[string]cue.Value{}
	for _, n := range nodes {
		for name := range n.children {
			labels[name] = v.LookupPath(cue.MakePath(selector(sh, name)))
		}
	}
	isStructHere := slices.ContainsFunc(declared(nodes), func(p place) bool { return isStruct(p.value) })
	if fields, err := v.Fields(); err == nil {
		isStructHere = true
		for fields.Next() {
			labels[label(fields.Selector())] = fields.Value()
		}
	}
	for _, name := range sh.requiredFields() {
		if _, there := labels[name]; !there && isStructHere && len(ev.index.step(nodes, name, maxReferences)) == 0 {
			findings = append(findings, ev.missing(o, path, name, sh))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		child := labels[name]
		if hidden(name) || sh.child(name) == nil {
			continue
		}
		p := append(slices.Clip(path), name)
		if child.Exists() {
			if err := child.Validate(cue.Concrete(true), cue.Final()); err != nil {
				findings = append(findings, ev.valueFindings(o, p, err)...)
			}
		}
		findings = append(findings, ev.unmask(o, p, child, sh.child(name))...)
	}
	return findings
}

// label returns a field's name, or a list element's index.
func label(s cue.Selector) string {
	if s.LabelType() == cue.StringLabel {
		return s.Unquoted()
	}
	return s.String()
}

// selector returns how a field or element of that label is looked up.
func selector(sh *shape, label string) cue.Selector {
	if sh.elem != nil {
		if i, err := strconv.Atoi(label); err == nil {
			return cue.Index(i)
		}
	}
	return cue.Str(label)
}

// requiredFields returns the names of a struct's required fields, sorted.
func (s *shape) requiredFields() (names []string) {
	for _, name := range s.fieldNames() {
		if s.fields[name].required {
			names = append(names, name)
		}
	}
	return names
}

// valueFindings explains errors of values at or below a path.
func (ev *evaluation) valueFindings(o *object, path []string, err error) (findings diag.Findings) {
	for _, e := range cueerrors.Errors(err) {
		at := pathOf(e)
		if len(at) < len(path) || !slices.Equal(at[:len(path)], path) {
			at = path
		}
		if f, ok := ev.explain(o, slices.Clone(at), e); ok {
			findings = append(findings, f)
		}
	}
	return findings
}

// pathOf returns the path of the value that an error is about.
func pathOf(e cueerrors.Error) []string {
	path := slices.Clone(e.Path())
	for i, p := range path {
		if s, err := strconv.Unquote(p); err == nil {
			path[i] = s // CUE quotes what is no identifier
		}
	}
	return path
}

// explain turns one error of a value into a finding. It reports false for a
// mere consequence of another error.
func (ev *evaluation) explain(o *object, path []string, e cueerrors.Error) (diag.Finding, bool) {
	text := cueText(e)
	for len(path) > 1 && hidden(path[len(path)-1]) {
		path = path[:len(path)-1]
	}
	var last string
	var parentPath []string
	if len(path) > 0 {
		last, parentPath = path[len(path)-1], path[:len(path)-1]
	}
	parent := ev.shapeAt(parentPath)
	if len(path) > 1 && ev.uses[path[0]] != nil && hidden(path[1]) {
		return diag.Finding{}, false // what comes of the parameters
	}
	if f, ok := ev.leftToFillIn(o, path); ok {
		return f, true
	}
	switch {
	case strings.Contains(text, "field not allowed"):
		// Of an unknown field with fields below it, the outermost is the mistake.
		for len(parentPath) > len(path)-len(inObject(path)) && parent == nil {
			last, parentPath = parentPath[len(parentPath)-1], parentPath[:len(parentPath)-1]
			path, parent = path[:len(path)-1], ev.shapeAt(parentPath)
		}
		if parent.child(last) != nil && (!parent.names || parent.fields[last] != nil || namePattern.MatchString(last)) {
			return diag.Finding{}, false // something around or below it is not allowed
		}
		var at ast.Node
		if p, ok := firstPlace(ev.index.find(path...)); ok {
			at = p.label
		}
		f := ev.unknownField(o, parentPath, last, parent, at)
		if at == nil {
			f.Range = ev.rangeOfError(path, e)
		}
		return f, true
	case strings.Contains(text, "field is required but not present"):
		return ev.missing(o, parentPath, last, parent), true
	}
	if sh := parent.child(last); sh != nil && slices.Contains(sh.kinds, "struct") && !strings.Contains(text, "incomplete") && !strings.Contains(text, "cycle") &&
		slices.ContainsFunc(declared(ev.index.find(path...)), func(p place) bool { return isStruct(p.value) }) {
		return diag.Finding{}, false // a struct where one belongs: what is wrong is below it
	}
	if f, ok := ev.badValue(o, path, last, parent.child(last), e); ok {
		return f, f.Rule != ""
	}
	f := ev.finding(o, "policy/evaluation", text)
	f.Range = ev.rangeOfError(path, e)
	return f, true
}

// leftToFillIn is the finding about a field whose value is an error that somebody wrote
// there, to say what belongs in its place: error("which workloads it is for").
func (ev *evaluation) leftToFillIn(o *object, path []string) (diag.Finding, bool) {
	for _, p := range declared(ev.index.find(path...)) {
		call, ok := p.value.(*ast.CallExpr)
		if !ok || len(call.Args) != 1 {
			continue
		}
		id, isIdent := call.Fun.(*ast.Ident)
		lit, isLit := call.Args[0].(*ast.BasicLit)
		if !isIdent || !isLit || id.Name != "error" {
			continue
		}
		said, err := strconv.Unquote(lit.Value)
		if err != nil {
			continue
		}
		f := ev.finding(o, "policy/incomplete", fmt.Sprintf("%s is still to be filled in: %s", dottedQuote(inside(path)), said))
		f.Range = ev.set.rangeOf(p.value)
		return f, true
	}
	return diag.Finding{}, false
}

// missing is the finding about a required field that is not there.
func (ev *evaluation) missing(o *object, path []string, name string, parent *shape) diag.Finding {
	f := ev.finding(o, "policy/missing-field", fmt.Sprintf("field %q is missing", name))
	if inside := inObject(path); len(inside) > 0 {
		f.Message += " in " + dottedQuote(inside)
	}
	if parent != nil {
		if field := parent.fields[name]; field != nil {
			switch {
			case field.doc != "":
				f.Message += "; " + firstSentence(field.doc)
			case field.message != "" && field.message != nameRule:
				f.Message += "; " + field.message
			default:
				f.Message += "; it is " + field.String()
			}
		}
	}
	f.Range = ev.rangeOfPath(path, cue.Value{})
	return f
}

// firstSentence returns a doc comment's first sentence, without its full stop.
func firstSentence(doc string) string {
	s, _, _ := strings.Cut(doc, ". ")
	return strings.TrimSuffix(s, ".")
}

// badValue explains a value that does not fit the schema, or two that do not
// fit each other. It reports false where neither is to be seen, and returns no
// finding where there is one to come about a field below.
func (ev *evaluation) badValue(o *object, path []string, name string, sh *shape, e cueerrors.Error) (diag.Finding, bool) {
	places := declared(ev.index.find(path...))
	sortPlaces(places)
	f := ev.finding(o, "policy/bad-value", "")
	var literals []place
	for _, p := range places {
		if !isLiteral(p.value) {
			continue
		}
		literals = append(literals, p)
		if sh != nil && !sh.fits(p.value) {
			f.Range = ev.set.rangeOf(p.value)
			f.Message = sh.wrong(name, p.value)
			return f, true
		}
	}
	for _, p := range literals[min(1, len(literals)):] {
		first, second := source(literals[0].value), source(p.value)
		if first == second || isStruct(p.value) || isStruct(literals[0].value) {
			continue
		}
		f.Rule = "policy/conflict"
		f.Range = ev.set.rangeOf(p.value)
		f.Message = fmt.Sprintf("%s is %s here and %s elsewhere; a field can have one value only", dottedQuote(inside(path)), second, first)
		f.Related = []diag.Related{{Range: ev.set.rangeOf(literals[0].value), Message: "the other value"}}
		return f, true
	}
	text := cueText(e)
	if strings.Contains(text, "incomplete") || strings.Contains(text, "non-concrete value") {
		f.Rule = "policy/incomplete"
		field := dottedQuote(inside(path))
		switch choice, ok := strings.CutPrefix(text, "incomplete value "); {
		case ok && strings.Contains(choice, " | "):
			f.Message = fmt.Sprintf("%s is still one of %s; give it one value", field, choice)
		case sh != nil && len(sh.kinds) > 0:
			f.Message = fmt.Sprintf("%s has no value yet; it must be %s", field, sh)
		default:
			f.Message = fmt.Sprintf("%s has no value yet; give it one", field)
		}
		f.Range = ev.rangeOfError(path, e)
		return f, true
	}
	if sh == nil || len(sh.kinds) == 0 || sh.open || strings.Contains(text, "cycle") {
		return f, false
	}
	if len(literals) == 0 && slices.Equal(sh.kinds, []string{"struct"}) {
		return diag.Finding{}, true // what is wrong is below it
	}
	f.Range = ev.rangeOfError(path, e)
	if len(literals) > 0 {
		f.Range = ev.set.rangeOf(literals[0].value)
		f.Message = sh.wrong(name, literals[0].value)
	} else {
		f.Message = sh.wrong(name, nil)
	}
	return f, true
}

// wrong says what a field must be, and, if it is written out, what it is.
func (s *shape) wrong(name string, e ast.Expr) string {
	var message string
	switch {
	case strings.HasPrefix(s.message, "must"):
		message = fmt.Sprintf("%q %s", name, s.message)
	case s.message != "":
		message = s.message
	case strings.Trim(name, "0123456789") == "":
		message = "each element must be " + s.String()
	default:
		message = fmt.Sprintf("%q must be %s", name, s)
	}
	if e == nil {
		return message
	}
	if list, ok := e.(*ast.ListLit); ok && len(list.Elts) == 0 && slices.Contains(s.kinds, "list") {
		return message + ", and not empty"
	}
	text := source(e)
	message += ", not " + text
	lit, ok := e.(*ast.BasicLit)
	if !ok {
		return message
	}
	switch lit.Kind {
	case token.STRING:
		if !slices.Contains(s.kinds, "string") && s.elem != nil && slices.Contains(s.elem.kinds, "string") {
			message += fmt.Sprintf("; write [%s]", text)
		} else if word, err := strconv.Unquote(text); err == nil {
			if near, ok := diag.Nearest(word, s.allowed); ok {
				message += fmt.Sprintf("; did you mean %q?", near)
			}
		}
	case token.TRUE, token.FALSE, token.INT, token.FLOAT:
		if slices.Contains(s.kinds, "string") && (s.free || len(s.allowed) == 0) {
			message += fmt.Sprintf("; write %q", text)
		}
	}
	return message
}

// fits reports whether a literal is of a kind that the shape allows.
func (s *shape) fits(e ast.Expr) bool {
	if len(s.kinds) == 0 {
		return true
	}
	switch e := e.(type) {
	case *ast.BasicLit:
		switch e.Kind {
		case token.STRING:
			if !slices.Contains(s.kinds, "string") {
				return false
			}
			word, err := strconv.Unquote(e.Value)
			return err != nil || s.free || len(s.allowed) == 0 || slices.Contains(s.allowed, word)
		case token.INT:
			return slices.Contains(s.kinds, "int")
		case token.TRUE:
			return slices.Contains(s.kinds, "true") || slices.Contains(s.kinds, "bool")
		case token.FALSE:
			return slices.Contains(s.kinds, "false") || slices.Contains(s.kinds, "bool")
		}
		return false
	case *ast.UnaryExpr:
		return slices.Contains(s.kinds, "int")
	case *ast.ListLit:
		return slices.Contains(s.kinds, "list") && len(e.Elts) > 0
	case *ast.StructLit:
		return slices.Contains(s.kinds, "struct")
	}
	return true
}

// isListFor reports whether a list is written where the shape has none.
func isListFor(nodes []*node, sh *shape) bool {
	return sh.elem == nil && slices.ContainsFunc(declared(nodes), func(p place) bool {
		_, ok := p.value.(*ast.ListLit)
		return ok
	})
}

func isStruct(e ast.Expr) bool {
	_, ok := e.(*ast.StructLit)
	return ok
}

// isLiteral reports whether an expression is written out.
func isLiteral(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit, *ast.StructLit, *ast.ListLit:
		return true
	case *ast.UnaryExpr:
		lit, ok := e.X.(*ast.BasicLit)
		return ok && lit.Kind != token.STRING && (e.Op == token.SUB || e.Op == token.ADD)
	}
	return false
}

// source returns an expression as it would be written on one line, shortened.
func source(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Value
	case *ast.StructLit:
		return "fields in braces"
	case *ast.ListLit:
		for _, x := range e.Elts {
			if _, ok := x.(*ast.BasicLit); !ok {
				return "a list"
			}
		}
	}
	text, err := format.Node(e, format.Simplify())
	if err != nil || strings.Contains(string(text), "\n") || len(text) > 60 {
		return "what is written here"
	}
	return string(text)
}

// cueText is the text of a CUE error: its first line, without the path.
func cueText(e cueerrors.Error) string {
	format, args := e.Msg()
	text := fmt.Sprintf(format, args...)
	if text == "" {
		text = e.Error()
	}
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimSuffix(strings.TrimSpace(line), ":")
}
