package yamldoc

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// CheckText returns a Problem if the text cannot be a manifest at all: binary,
// or in an encoding other than UTF-8.
func CheckText(src []byte) *Problem {
	if bytes.HasPrefix(src, []byte{0xFF, 0xFE}) || bytes.HasPrefix(src, []byte{0xFE, 0xFF}) {
		return &Problem{Line: 1, Column: 1, Message: "the text is in UTF-16; save it as UTF-8"}
	}
	if i := bytes.IndexByte(src, 0); i >= 0 {
		return at(src, i, "the file has a zero byte and is no text; give YAML or JSON in UTF-8")
	}
	if utf8.Valid(src) {
		return nil
	}
	for i := 0; i < len(src); {
		r, n := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && n <= 1 {
			return at(src, i, fmt.Sprintf("the byte %#02x is not UTF-8; save the file as UTF-8", src[i]))
		}
		i += n
	}
	return nil
}

func at(src []byte, offset int, message string) *Problem {
	line, column := Doc{Line: 1, src: src, End: len(src)}.Position(offset)
	return &Problem{Line: line, Column: column, Message: message}
}

// errorLine takes the line number out of the parser's own message.
var errorLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// parse returns the document's root node, nil for an empty document.
func (d Doc) parse() (root *yaml.Node, problem *Problem) {
	defer func() {
		// A stranger's text must not end the program where the parser's authors
		// did not foresee it.
		if r := recover(); r != nil {
			root, problem = nil, &Problem{Line: d.Line, Message: fmt.Sprintf("the YAML parser gave up: %v", r)}
		}
	}()
	var doc yaml.Node
	if err := yaml.Unmarshal(d.Text(), &doc); err != nil {
		return nil, d.syntaxProblem(err)
	}
	if doc.Kind == 0 || len(doc.Content) == 0 {
		return nil, nil
	}
	return doc.Content[0], nil
}

func (d Doc) syntaxProblem(err error) *Problem {
	m := errorLine.FindStringSubmatch(err.Error())
	if m == nil {
		return &Problem{Line: d.Line, Message: err.Error()}
	}
	p := &Problem{Line: d.Line, Message: "this is not YAML: " + strings.TrimSpace(m[2])}
	if n, err := strconv.Atoi(m[1]); err == nil {
		p.Line = d.Line + n - 1
		d.place(p, n)
	}
	return p
}

// The parser names the line where what it was parsing began, and no column. What
// is wrong is where the document stops being YAML: the first line that the lines
// before it can do without.
const (
	// placed is how long a document may be, in bytes, for that to be looked for.
	placed = 256 << 10
	// placeLines is how far behind the parser's line it is looked for.
	placeLines = 200
)

func (d Doc) place(p *Problem, reported int) {
	lines := bytes.SplitAfter(d.Text(), []byte("\n"))
	at := reported
	if len(d.Text()) <= placed {
		end := 0
		for i := range min(reported-1, len(lines)) {
			end += len(lines[i])
		}
		for n := reported; n <= min(len(lines), reported+placeLines); n++ {
			end += len(lines[n-1])
			if parses(d.Text()[:end]) {
				at = n + 1
			}
		}
	}
	if at > len(lines) || len(bytes.TrimSpace(lines[at-1])) == 0 {
		at = min(reported, len(lines))
	}
	if at < 1 {
		return
	}
	line := lines[at-1]
	column := len(line) - len(bytes.TrimLeft(line, " ")) + 1
	p.Line, p.Column = d.Line+at-1, column
}

func parses(text []byte) (ok bool) {
	defer func() { ok = recover() == nil && ok }()
	var n yaml.Node
	return yaml.Unmarshal(text, &n) == nil
}
