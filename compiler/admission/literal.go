package admission

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/compiler/cel"
)

// literal returns the CEL literal of a JSON value and its type. The API server
// wants the elements of a list or a map to be of one type; where they are not,
// they are made dyn.
func literal(v any) (text, kind string) {
	switch v := v.(type) {
	case nil:
		return "null", "null"
	case string:
		return cel.Quote(v), "string"
	case bool:
		return strconv.FormatBool(v), "bool"
	case int:
		return strconv.Itoa(v), "int"
	case int32:
		return strconv.FormatInt(int64(v), 10), "int"
	case int64:
		return strconv.FormatInt(v, 10), "int"
	case float64:
		if v == float64(int64(v)) {
			return strconv.FormatInt(int64(v), 10), "int"
		}
		return strconv.FormatFloat(v, 'g', -1, 64), "double"
	case []any:
		texts, kind := elements(v)
		return "[" + strings.Join(texts, ", ") + "]", "list(" + kind + ")"
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		values := make([]any, len(keys))
		for i, k := range keys {
			values[i] = v[k]
		}
		texts, kind := elements(values)
		for i, k := range keys {
			texts[i] = cel.Quote(k) + ": " + texts[i]
		}
		return "{" + strings.Join(texts, ", ") + "}", "map(" + kind + ")"
	}
	return fmt.Sprintf("%#v", v), "dyn"
}

// elements returns the literals of values and their type.
func elements(values []any) (texts []string, kind string) {
	kinds := map[string]bool{}
	texts = make([]string, len(values))
	each := make([]string, len(values))
	for i, v := range values {
		texts[i], each[i] = literal(v)
		kinds[each[i]] = true
	}
	if len(kinds) == 0 {
		return texts, "dyn"
	}
	if len(kinds) == 1 {
		return texts, each[0]
	}
	for i := range values {
		if each[i] != "dyn" {
			texts[i] = "dyn(" + texts[i] + ")"
		}
	}
	return texts, "dyn"
}

// texts returns the literal of a list of strings.
func texts(list []string) string { return cel.List(list) }

// chunk is how many choices stand in one expression at most: the API server's
// type checker takes time with the square of them.
const chunk = 16

// list returns the list of expressions, one a line; a long one is put together
// from variables, each with a part of it.
func (p *program) list(name string, elements []string) string {
	if len(elements) <= chunk {
		return lines(elements)
	}
	var parts []string
	for part := range slices.Chunk(elements, chunk) {
		variable := fmt.Sprintf("%s_part_%d", name, len(parts))
		p.define(variable, "%s", lines(part))
		parts = append(parts, "variables."+variable)
	}
	return "(" + strings.Join(parts, " + ") + ")"
}

// lines returns a list of expressions, one a line.
func lines(elements []string) string {
	if len(elements) == 0 {
		return "[]"
	}
	return "[\n  " + strings.Join(elements, ",\n  ") + "\n]"
}

// numberRows returns the literal of a list of lists of numbers.
func numberRows(rows [][]int) string {
	out := make([]string, len(rows))
	for i, row := range rows {
		out[i] = numbers(row)
	}
	return list(out)
}

// numbers returns the literal of a list of numbers.
func numbers(all []int) string {
	out := make([]string, len(all))
	for i, n := range all {
		out[i] = strconv.Itoa(n)
	}
	return list(out)
}
