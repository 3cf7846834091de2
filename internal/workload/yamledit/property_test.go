package yamledit

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/internal/workload/plain"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/yamldoc"
)

// author writes random YAML the way many people do: every style, comments
// everywhere, no two files alike.
type author struct {
	t        *rapid.T
	newline  string
	unit     int
	offset   int
	comments int
	anchors  []string
}

func (a *author) pick(of ...string) string { return rapid.SampledFrom(of).Draw(a.t, "pick") }
func (a *author) chance(percent int) bool {
	return rapid.IntRange(1, 100).Draw(a.t, "chance") <= percent
}

func (a *author) comment() string {
	a.comments++
	return fmt.Sprintf("# comment %d: [\"it's\", {x", a.comments)
}

// tail is what may follow a value in its line.
func (a *author) tail() string {
	switch {
	case a.chance(15):
		return "  " + a.comment() + a.newline
	case a.chance(5):
		return "  " + a.newline
	}
	return a.newline
}

// between is what may stand between two entries.
func (a *author) between(indent int) string {
	switch {
	case a.chance(12):
		return strings.Repeat(" ", indent) + a.comment() + a.newline
	case a.chance(6):
		return a.newline
	case a.chance(4):
		return a.comment() + a.newline
	}
	return ""
}

func (a *author) scalar(indent int) string {
	if a.chance(8) {
		header := a.pick("|", ">-", "|-", ">", "|+")
		return header + a.tail() + strings.Repeat(" ", indent) + "text # not a comment" + a.newline + a.newline + strings.Repeat(" ", indent) + "  more" + a.newline
	}
	if a.chance(4) {
		return "plain text" + a.newline + strings.Repeat(" ", indent) + "on two lines" + a.tail()
	}
	return a.pick("1", "yes", "'it''s'", `"q\"\u00e9"`, "text", "~", "", "a b", "0x1F", "1.5", "é", "'#'", "http://x/#y", "{}", "[]", `"two`+a.newline+strings.Repeat(" ", indent)+`lines"`) + a.tail()
}

func (a *author) flow(depth int) string {
	if depth == 0 || a.chance(50) {
		return a.pick("1", "'a'", `"b"`, "c", "true")
	}
	var parts []string
	n := rapid.IntRange(0, 3).Draw(a.t, "n")
	isMap := a.chance(50)
	for i := range n {
		v := a.flow(depth - 1)
		if isMap {
			v = fmt.Sprintf("k%d: %s", i, v)
		}
		parts = append(parts, v)
	}
	text := strings.Join(parts, a.pick(", ", ",", " , "))
	if n > 0 && a.chance(10) {
		text += ","
	}
	if isMap {
		return "{" + text + "}"
	}
	return "[" + text + "]"
}

// value writes what follows "key:" or "-" at the given indentation of the
// parent, up to and with the last line break.
func (a *author) value(indent, depth int, inSequence bool) string {
	anchor := ""
	if a.chance(6) {
		name := fmt.Sprintf("a%d", len(a.anchors))
		anchor = " &" + name
		defer func() { a.anchors = append(a.anchors, name) }()
	} else if len(a.anchors) > 0 && a.chance(10) {
		return " *" + rapid.SampledFrom(a.anchors).Draw(a.t, "alias") + a.tail()
	}
	switch {
	case depth == 0 || a.chance(30):
		return anchor + " " + a.scalar(indent+a.unit)
	case a.chance(15):
		return anchor + " " + a.flow(2) + a.tail()
	case a.chance(55):
		if inSequence && anchor == "" && a.chance(70) {
			return " " + strings.TrimLeft(a.mapping(indent+2, depth-1, true), " ")
		}
		return anchor + a.tail() + a.mapping(indent+a.unit, depth-1, false)
	}
	if inSequence {
		if anchor == "" && a.chance(50) {
			return " " + strings.TrimLeft(a.sequence(indent+2, depth-1, true), " ")
		}
		return anchor + a.tail() + a.sequence(indent+2, depth-1, false)
	}
	return anchor + a.tail() + a.sequence(indent+a.offset, depth-1, false)
}

func (a *author) mapping(indent, depth int, compact bool) string {
	var b strings.Builder
	n := rapid.IntRange(1, 4).Draw(a.t, "entries")
	for i := range n {
		if !compact || i > 0 {
			b.WriteString(a.between(indent))
		}
		key := a.pick("k", "'q", `"d`, "long-key.example.com/")
		key += fmt.Sprint(i)
		switch key[0] {
		case '\'':
			key += "'"
		case '"':
			key += `"`
		}
		b.WriteString(strings.Repeat(" ", indent) + key + ":" + a.value(indent, depth, false))
	}
	return b.String()
}

func (a *author) sequence(indent, depth int, compact bool) string {
	var b strings.Builder
	n := rapid.IntRange(1, 4).Draw(a.t, "elements")
	for i := range n {
		if !compact || i > 0 {
			b.WriteString(a.between(indent))
		}
		b.WriteString(strings.Repeat(" ", indent) + "-" + a.value(indent, depth, true))
	}
	return b.String()
}

func text(t *rapid.T) string {
	a := &author{
		t:       t,
		newline: rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "newline"),
		unit:    rapid.SampledFrom([]int{2, 4, 3}).Draw(t, "unit"),
		offset:  rapid.SampledFrom([]int{0, 2}).Draw(t, "offset"),
	}
	src := a.mapping(0, 4, false)
	if a.chance(30) {
		src = a.comment() + a.newline + "---" + a.newline + src
	}
	if a.chance(20) {
		return strings.TrimRight(src, "\r\n")
	}
	if a.chance(30) {
		src += a.between(0)
	}
	return src
}

// paths lists the paths of all values below v.
func paths(v any, prefix []any) [][]any {
	var out [][]any
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			p := append(slices.Clone(prefix), k)
			out = append(append(out, p), paths(v[k], p)...)
		}
	case []any:
		for i, e := range v {
			p := append(slices.Clone(prefix), i)
			out = append(append(out, p), paths(e, p)...)
		}
	}
	return out
}

func randomValue(t *rapid.T, depth int) any {
	n := rapid.IntRange(0, 5).Draw(t, "kind")
	switch {
	case n == 0 && depth > 0:
		m := map[string]any{}
		for i := range rapid.IntRange(0, 3).Draw(t, "n") {
			m[fmt.Sprintf("new%d", i)] = randomValue(t, depth-1)
		}
		return m
	case n == 1 && depth > 0:
		var l []any
		for range rapid.IntRange(0, 3).Draw(t, "n") {
			l = append(l, randomValue(t, depth-1))
		}
		return append([]any{}, l...)
	case n == 2:
		return rapid.Int64().Draw(t, "int")
	case n == 3:
		return rapid.Bool().Draw(t, "bool")
	}
	return rapid.OneOf(rapid.SampledFrom([]string{"a", "yes", "it's", "1", "a: b", "- x", "#", "", "é", "{", "*a", "x\ny", "null"}), rapid.String()).Draw(t, "string")
}

func decode(t interface{ Fatalf(string, ...any) }, src string) any {
	var docs []any
	for _, d := range yamldoc.Split([]byte(src)) {
		v, problems := d.Decode()
		if len(problems) > 0 {
			t.Fatalf("%v\n%s", problems[0], src)
		}
		docs = append(docs, v)
	}
	return docs[len(docs)-1]
}

var commentPattern = regexp.MustCompile(`# comment \d+`)

// Adding keys anywhere changes nothing else, and taking them away restores
// every byte.
func TestAddAndTakeBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		src := text(t)
		old := decode(t, src)
		var places [][]any
		for _, p := range append(paths(old, nil), nil) {
			if m, ok := get(old, p).(map[string]any); ok && len(m) > 0 {
				places = append(places, p)
			}
		}
		var add, back []Edit
		for i := range rapid.IntRange(1, 3).Draw(t, "edits") {
			p := append(slices.Clone(rapid.SampledFrom(places).Draw(t, "place")), fmt.Sprintf("added%d", i))
			add = append(add, Edit{Path: p, Value: randomValue(t, 2)})
			back = append(back, Edit{Path: p, Delete: true})
		}
		doc := len(yamldoc.Split([]byte(src))) - 1
		got, err := Apply([]byte(src), doc, add)
		if err != nil {
			t.Fatalf("%v\n%s", err, src)
		}
		if again, err := Apply(got, doc, add); err != nil || string(again) != string(got) {
			t.Fatalf("the second time: %v\n%s\n%s", err, got, again)
		}
		if a, b := commentPattern.FindAllString(src, -1), commentPattern.FindAllString(string(got), -1); !slices.Equal(a, b) {
			t.Fatalf("comments: %q became %q\n%s\n%s", a, b, src, got)
		}
		reverted, err := Apply(got, doc, back)
		if err != nil {
			t.Fatalf("%v\n%s", err, got)
		}
		if string(reverted) != src && !strings.Contains(src, "*a") {
			t.Fatalf("taken back:\n%q\n%q\n%q", src, got, reverted)
		}
	})
}

// Any edits give the document that they would give in memory, and leave the
// lines that have nothing to do with them.
func TestAnyEdits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		src := text(t)
		old := decode(t, src)
		all := paths(old, nil)
		doc := len(yamldoc.Split([]byte(src))) - 1
		want := old
		var edits []Edit
		for range rapid.IntRange(1, 4).Draw(t, "edits") {
			e := Edit{Path: rapid.SampledFrom(all).Draw(t, "path"), Delete: rapid.Bool().Draw(t, "delete")}
			if !e.Delete {
				e.Value = randomValue(t, 2)
			}
			next, err := set(want, e.Path, e)
			if err != nil {
				continue
			}
			edits, want = append(edits, e), next
		}
		got, err := Apply([]byte(src), doc, edits)
		if m, ok := want.(map[string]any); ok && len(m) == 0 && err != nil {
			return // the whole document would go
		}
		if err != nil && (strings.Contains(src, "|+") || !strings.HasSuffix(src, "\n") && strings.ContainsAny(src, "|>")) {
			return // what a block scalar keeps would change with what follows it
		}
		if err != nil {
			t.Fatalf("%v\n%s\n%v", err, src, edits)
		}
		if !plain.Equal(decode(t, string(got)), want) {
			t.Fatalf("%s\n%s", src, got)
		}
	})
}

func get(v any, path []any) any {
	for _, s := range path {
		switch s := s.(type) {
		case string:
			v = v.(map[string]any)[s]
		case int:
			v = v.([]any)[s]
		}
	}
	return v
}

func FuzzApply(f *testing.F) {
	for _, c := range cases {
		f.Add([]byte(c.src), 0, "added", "x")
	}
	f.Fuzz(func(t *testing.T, src []byte, doc int, key, value string) {
		if yamldoc.CheckText(src) != nil || len(src) > 4000 {
			return
		}
		got, err := Apply(src, doc, []Edit{{Path: []any{key}, Value: []any{value, map[string]any{key: value}}}})
		if err != nil {
			return
		}
		again, err := Apply(got, doc, []Edit{{Path: []any{key}, Value: []any{value, map[string]any{key: value}}}})
		if err != nil || string(again) != string(got) {
			t.Fatalf("%q became %q and then %q (%v)", src, got, again, err)
		}
	})
}
