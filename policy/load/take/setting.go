package take

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/parser"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

// setting is a parameter, or a field inside of one, and its value as CUE.
type setting struct {
	path  []string
	value string
}

// String returns the setting as CUE: `workloads: names: ["web"]`.
func (s setting) String() string {
	var b strings.Builder
	for _, name := range s.path {
		b.WriteString(label(name) + ": ")
	}
	return b.String() + s.value
}

// parse reads the settings of a request.
func parse(r Request) (settings []setting, err error) {
	var names []string
	for _, p := range r.Entry.Parameters {
		names = append(names, p.Path)
	}
	for _, said := range r.Set {
		key, value, ok := strings.Cut(said, "=")
		if !ok || key == "" || value == "" {
			return nil, fmt.Errorf("--set %q must be key=value", said)
		}
		path, err := keyPath(key)
		if err != nil {
			return nil, fmt.Errorf("--set %q: the key is no path of names with dots between them: write a name that has dots in quotes, such as workloads.labels.\"example.com/tier\"=web", said)
		}
		i := slices.Index(names, path[0])
		if i < 0 {
			if near, ok := diag.Nearest(path[0], names); ok {
				return nil, fmt.Errorf("--set %q: %s has no parameter %q; did you mean %q?", said, r.Entry.Name, path[0], near)
			}
			return nil, fmt.Errorf("--set %q: %s has no parameter %q; it has %s", said, r.Entry.Name, path[0], strings.Join(names, ", "))
		}
		same := func(s setting) bool { return slices.Equal(s.path, path) }
		if slices.ContainsFunc(settings, same) {
			return nil, fmt.Errorf("--set %q: %s is set twice", said, key)
		}
		text, err := literal(value, typeAt(r.Entry.Parameters[i], path[1:]))
		if err != nil {
			return nil, fmt.Errorf("--set %q: the value is no CUE: %w", said, err)
		}
		settings = append(settings, setting{path, text})
	}
	return settings, nil
}

// keyPath reads the path of names in a key.
func keyPath(key string) (names []string, err error) {
	path := cue.ParsePath(key)
	if err := path.Err(); err != nil {
		return nil, err
	}
	for _, s := range path.Selectors() {
		if s.LabelType() != cue.StringLabel {
			return nil, fmt.Errorf("%s is no name", s)
		}
		names = append(names, s.Unquoted())
	}
	return names, nil
}

// typeAt is what may be written at a path inside of a parameter, as far as its
// description goes.
func typeAt(p load.Field, path []string) string {
	for _, name := range path {
		if values, ok := strings.CutPrefix(p.Type, "a map, each value "); ok {
			p = load.Field{Type: values}
			continue
		}
		i := slices.IndexFunc(p.Fields, func(f load.Field) bool { return f.Path[strings.LastIndexByte(f.Path, '.')+1:] == name })
		if i < 0 {
			return ""
		}
		p = p.Fields[i]
	}
	return p.Type
}

// literal returns a value as CUE. A word is a string, and words with commas between them
// are a list where one belongs.
func literal(value, kind string) (string, error) {
	expr, err := parser.ParseExpr("value", value)
	begins := strings.HasPrefix(value, "{") || strings.HasPrefix(value, "[") || strings.HasPrefix(value, `"`)
	if err != nil && begins {
		return "", err
	}
	if err == nil && (begins || plain(expr) && !textual(kind)) {
		text, err := format.Node(expr, format.Simplify())
		return string(text), err
	}
	if kind == "a list of strings" {
		var items []string
		for item := range strings.SplitSeq(value, ",") {
			items = append(items, strconv.Quote(strings.TrimSpace(item)))
		}
		return "[" + strings.Join(items, ", ") + "]", nil
	}
	return strconv.Quote(value), nil
}

// textual reports whether values of that kind are texts, whatever they look like.
func textual(kind string) bool {
	return strings.Contains(kind, "string") && !strings.Contains(kind, "number")
}

// plain reports whether an expression is a number, a bool or null.
func plain(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return true
	case *ast.UnaryExpr:
		return plain(e.X)
	}
	return false
}
