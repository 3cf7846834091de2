package yamledit

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/kubectl-sched/kubectl-sched/internal/workload/yamldoc"
)

// style is how a document is laid out.
type style struct {
	newline string
	// unit is the indentation of a map in a map, and offset that of a list
	// below its key.
	unit, offset string
	json         bool
	// pretty says that JSON is written over several lines.
	pretty bool
	// colon and comma are what JSON and flow collections have between the key
	// and its value, and between two elements of one line.
	colon, comma string
}

// detect finds the style of a document from its own text.
func detect(src []byte, d yamldoc.Doc, root *yamldoc.Node) style {
	s := style{newline: "\n", json: d.JSON, colon: ": ", comma: ", "}
	if end := yamldoc.LineEnd(src, d.Start); end < len(src) && src[end] == '\r' {
		s.newline = "\r"
		if end+1 < len(src) && src[end+1] == '\n' {
			s.newline = "\r\n"
		}
	}
	f := finder{src: src, units: map[int]int{}, offsets: map[int]int{}}
	f.visit(root)
	s.unit, s.offset = "  ", ""
	if n, ok := most(f.units); ok && n > 0 {
		s.unit = strings.Repeat(" ", n)
	}
	if n, ok := most(f.offsets); ok {
		s.offset = strings.Repeat(" ", max(0, n))
	}
	if d.JSON {
		s.jsonStyle(src, root, f)
	}
	return s
}

func (s *style) jsonStyle(src []byte, root *yamldoc.Node, f finder) {
	if f.compactColon {
		s.colon, s.comma = ":", ","
	}
	if len(root.Values) == 0 {
		return
	}
	first := root.Values[0].Start
	if len(root.Keys) > 0 {
		first = root.Keys[0].Start
	}
	lead := string(src[root.Body+1 : first])
	if i := strings.LastIndexAny(lead, "\r\n"); i >= 0 {
		s.pretty = true
		s.unit = strings.TrimPrefix(lead[i+1:], indentOf(src, root.Body))
	}
}

// finder counts the indentations in a document.
type finder struct {
	src            []byte
	units, offsets map[int]int
	compactColon   bool
}

func (f *finder) visit(n *yamldoc.Node) {
	for i, v := range n.Values {
		if n.Kind == yamldoc.Mapping {
			k := n.Keys[i]
			if !n.Flow && !v.Flow && len(v.Values) > 0 {
				d := column(f.src, v.Body) - column(f.src, k.Start)
				switch v.Kind {
				case yamldoc.Mapping:
					f.units[d]++
				default:
					f.offsets[d]++
				}
			}
			if n.Flow && v.Start == k.End+1 {
				f.compactColon = true
			}
		}
		f.visit(v)
	}
}

// most returns the most frequent number; the smallest of those that are equally
// frequent.
func most(counts map[int]int) (int, bool) {
	best, found := 0, false
	for _, n := range slices.Sorted(maps.Keys(counts)) {
		if !found || counts[n] > counts[best] {
			best, found = n, true
		}
	}
	return best, found
}

// column counts the characters before an offset in its line.
func column(src []byte, offset int) int {
	return utf8.RuneCount(src[yamldoc.LineStart(src, offset):offset])
}

// indentOf returns the white space that the line of an offset begins with.
func indentOf(src []byte, offset int) string {
	start := yamldoc.LineStart(src, offset)
	end := start
	for end < len(src) && (src[end] == ' ' || src[end] == '\t') {
		end++
	}
	return string(src[start:end])
}

// block returns a collection that is not empty as lines that begin with the
// indentation, without the last line's break.
func (s style) block(v any, indent string) string {
	var lines []string
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			lines = append(lines, indent+scalar(k, yamldoc.Plain)+":"+s.after(v[k], indent))
		}
	case []any:
		for _, e := range v {
			lines = append(lines, indent+"- "+s.item(e, indent+"  "))
		}
	}
	return strings.Join(lines, s.newline)
}

// after returns what follows the colon of a key with the given indentation.
func (s style) after(v any, indent string) string {
	if !isBlock(v) {
		return " " + s.flow(v)
	}
	if _, ok := v.([]any); ok {
		return s.newline + s.block(v, indent+s.offset)
	}
	return s.newline + s.block(v, indent+s.unit)
}

// item returns what follows the dash of a list element; its further lines get
// the indentation.
func (s style) item(v any, indent string) string {
	if !isBlock(v) {
		return s.flow(v)
	}
	return strings.TrimPrefix(s.block(v, indent), indent)
}

// isBlock reports whether a value takes lines of its own in block style.
func isBlock(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) > 0
	case []any:
		return len(v) > 0
	}
	return false
}

// flow returns a value on one line, in JSON or flow style.
func (s style) flow(v any) string {
	switch v := v.(type) {
	case map[string]any:
		parts := make([]string, 0, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, s.key(k)+s.colon+s.flow(v[k]))
		}
		return "{" + strings.Join(parts, s.comma) + "}"
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = s.flow(e)
		}
		return "[" + strings.Join(parts, s.comma) + "]"
	}
	if s.json {
		return scalar(v, yamldoc.Double)
	}
	return scalar(v, yamldoc.Plain)
}

// spread returns a value as JSON over several lines; its further lines get the
// indentation.
func (s style) spread(v any, indent string) string {
	if !s.pretty || !isBlock(v) {
		return s.flow(v)
	}
	inner := s.newline + indent + s.unit
	var parts []string
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, s.key(k)+s.colon+s.spread(v[k], indent+s.unit))
		}
		return "{" + inner + strings.Join(parts, ","+inner) + s.newline + indent + "}"
	case []any:
		for _, e := range v {
			parts = append(parts, s.spread(e, indent+s.unit))
		}
	}
	return "[" + inner + strings.Join(parts, ","+inner) + s.newline + indent + "]"
}

func (s style) key(k string) string {
	if s.json {
		return scalar(k, yamldoc.Double)
	}
	return scalar(k, yamldoc.Plain)
}

// scalar returns a scalar on one line, in the given style where that can
// express it.
func scalar(v any, as yamldoc.Style) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		if as == yamldoc.Plain && yamldoc.PlainSafe(v) {
			return v
		}
		printable := strings.IndexFunc(v, func(r rune) bool { return escaped(r) || r == utf8.RuneError }) < 0
		if printable && (as == yamldoc.Single || as != yamldoc.Double && strings.ContainsAny(v, `"\`)) {
			return "'" + strings.ReplaceAll(v, "'", "''") + "'"
		}
		return quote(v)
	}
	text, err := json.Marshal(v)
	if err != nil { // a NaN or an infinity, which no edit has
		return fmt.Sprint(v)
	}
	return string(text)
}

// quote returns s in double quotes, with escapes that YAML and JSON share.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case escaped(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// escaped reports whether a character may not stand as it is in a YAML text, or
// would be taken for a line break.
func escaped(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7F && r <= 0xA0, r == 0x2028, r == 0x2029, r == 0xFEFF, r == 0xFFFE, r == 0xFFFF:
		return true
	}
	return false
}
