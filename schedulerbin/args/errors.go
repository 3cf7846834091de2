package args

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// problems are the mistakes in one plugin's arguments.
type problems = field.ErrorList

// Error says what is wrong with the arguments of one plugin. Each of Problems
// has the path of the field that is wrong, relative to the arguments.
type Error struct {
	Plugin   string
	Problems field.ErrorList
}

// Error returns one line for each problem.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = fmt.Sprintf("arguments of plugin %q: %s", e.Plugin, say(p))
	}
	return strings.Join(lines, "\n")
}

// say returns "path: what is wrong; what is allowed".
func say(p *field.Error) string {
	value := ""
	if p.Type == field.ErrorTypeInvalid && p.BadValue != "" {
		value = fmt.Sprintf("%q ", fmt.Sprint(p.BadValue))
	}
	if p.Field == "" || p.Field == "<nil>" {
		return value + p.Detail
	}
	return p.Field + ": " + value + p.Detail
}

// invalid is a value that is wrong; detail reads after it ("is no …; use …").
func invalid(path *field.Path, value any, detail string) *field.Error {
	return field.Invalid(path, value, detail)
}

// unknownField names the field that was most likely meant, and all that exist.
func unknownField(path *field.Path, name string, known []string) *field.Error {
	detail := "there is no such field"
	if near, ok := nearest(name, known); ok {
		detail += fmt.Sprintf("; did you mean %q?", near)
	}
	return field.Forbidden(path.Child(name), fmt.Sprintf("%s (fields are %s)", detail, quoted(known)))
}

// nearest is the known name that was most likely meant. A name in the wrong case
// is that name: the decoder is strict on case.
func nearest(name string, known []string) (string, bool) {
	for _, k := range known {
		if strings.EqualFold(name, k) {
			return k, true
		}
	}
	return diag.Nearest(name, known)
}

// quoted lists words for a reader.
func quoted(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = fmt.Sprintf("%q", w)
	}
	return strings.Join(out, ", ")
}

// unknownPlugin is the error for a name that is no plugin of ours.
func unknownPlugin(plugin string) error {
	if near, ok := nearest(plugin, Names()); ok {
		return fmt.Errorf("plugin %q is not one of the bundled plugins; did you mean %q?", plugin, near)
	}
	return fmt.Errorf("plugin %q is not one of the bundled plugins (%s)", plugin, quoted(Names()))
}
