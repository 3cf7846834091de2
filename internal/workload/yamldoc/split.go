// Package yamldoc reads the YAML and JSON texts that Kubernetes manifests are
// written in.
//
// It maps a text to its documents, a document to a plain value (with the
// scalar rules that kubectl has: those of YAML 1.1), and, where somebody needs
// to know where a value was written, to a tree with the byte range of every
// node. It must not know Kubernetes objects.
package yamldoc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Doc is one document of a text.
type Doc struct {
	// Index counts the documents of the text from 0; empty ones count too.
	Index int
	// Start and End are the byte range of the document in the text, its "---"
	// line and the comments around it included.
	Start, End int
	// Line is the number of the line that Start is in, from 1.
	Line int
	// JSON says that the document is JSON proper; all others are read as YAML.
	JSON bool

	src []byte
}

// Problem is something wrong in a text. Line and Column count from 1 in the
// whole text, Column in bytes; 0 where not known.
type Problem struct {
	Line, Column int
	Message      string
}

// Error implements error.
func (p *Problem) Error() string {
	switch {
	case p.Line == 0:
		return p.Message
	case p.Column == 0:
		return fmt.Sprintf("line %d: %s", p.Line, p.Message)
	}
	return fmt.Sprintf("line %d, column %d: %s", p.Line, p.Column, p.Message)
}

// utf8BOM may stand at the start of a text and is part of no document.
var utf8BOM = []byte("\xef\xbb\xbf")

// Split finds the documents of a text, as kubectl does: YAML documents are
// divided by "---" lines, and a document that is a run of JSON values counts
// once for each. A text without any content has one empty document.
func Split(src []byte) []Doc {
	start := 0
	if bytes.HasPrefix(src, utf8BOM) {
		start = len(utf8BOM)
	}
	var docs []Doc
	line, docLine, content := 1, 1, false
	add := func(end int) {
		docs = appendDoc(docs, Doc{Start: start, End: end, Line: docLine, src: src})
		start, docLine, content = end, line, false
	}
	ended := false // by "...", so that content begins the next document
	for at := start; at < len(src); {
		next := NextLine(src, at)
		text := src[at:next]
		switch {
		case isMarker(text, "---"):
			if content {
				add(at)
			}
			content, ended = true, false
		case isMarker(text, "..."):
			ended = content
		case !content || ended:
			if trimmed := bytes.TrimLeft(text, " \t\r\n"); len(trimmed) > 0 && trimmed[0] != '#' && trimmed[0] != '%' {
				if ended {
					add(at)
				}
				content, ended = true, false
			}
		}
		at = next
		line++
	}
	add(len(src))
	for i := range docs {
		docs[i].Index = i
	}
	return docs
}

// appendDoc appends d, or the JSON values that it is a run of.
func appendDoc(docs []Doc, d Doc) []Doc {
	text := d.src[d.Start:d.End]
	if isMarker(text, "---") { // between JSON values, as some tools write it
		text = text[len("---"):]
	}
	if trimmed := bytes.TrimLeft(text, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
		return append(docs, d)
	}
	base := d.End - len(text)
	dec := json.NewDecoder(bytes.NewReader(text))
	var parts []Doc
	start, line := d.Start, d.Line
	for {
		var raw json.RawMessage
		if dec.Decode(&raw) != nil {
			break
		}
		end := base + int(dec.InputOffset())
		parts = append(parts, Doc{Start: start, End: end, Line: line, JSON: true, src: d.src})
		line += countBreaks(d.src[start:end])
		start = end
	}
	if len(parts) == 0 || len(bytes.TrimSpace(d.src[start:d.End])) > 0 {
		return append(docs, d)
	}
	parts[len(parts)-1].End = d.End
	return append(docs, parts...)
}

// Text returns the document's own bytes; read only.
func (d Doc) Text() []byte { return d.src[d.Start:d.End] }

// isMarker reports whether a line is the document marker m.
func isMarker(line []byte, m string) bool {
	if !bytes.HasPrefix(line, []byte(m)) {
		return false
	}
	return len(line) == len(m) || bytes.IndexByte([]byte(" \t\r\n"), line[len(m)]) >= 0
}

// breakLen returns how many bytes the line break at the start of b has, 0 if
// there is none. YAML 1.1 has more breaks than "\n".
func breakLen(b []byte) int {
	switch {
	case len(b) == 0:
		return 0
	case b[0] == '\n':
		return 1
	case b[0] == '\r':
		if len(b) > 1 && b[1] == '\n' {
			return 2
		}
		return 1
	case b[0] == 0xC2 && len(b) > 1 && b[1] == 0x85:
		return 2
	case b[0] == 0xE2 && len(b) > 2 && b[1] == 0x80 && (b[2] == 0xA8 || b[2] == 0xA9):
		return 3
	}
	return 0
}

// NextLine returns the offset after the line break that ends the line at i.
func NextLine(src []byte, i int) int {
	for ; i < len(src); i++ {
		switch src[i] {
		case '\n', '\r', 0xC2, 0xE2:
			if n := breakLen(src[i:]); n > 0 {
				return i + n
			}
		}
	}
	return len(src)
}

// countBreaks returns the number of line breaks in b.
func countBreaks(b []byte) int {
	n := 0
	for i := 0; i < len(b); {
		j := NextLine(b, i)
		if j > i && j <= len(b) && endsInBreak(b[i:j]) {
			n++
		}
		i = j
	}
	return n
}

// endsInBreak reports whether the last bytes of a line are its break.
func endsInBreak(line []byte) bool {
	for _, n := range []int{1, 2, 3} {
		if n <= len(line) && breakLen(line[len(line)-n:]) == n {
			return true
		}
	}
	return false
}

// Position returns the line and the column of a byte offset in the document's
// text, both counted in the whole text from 1, the column in bytes.
func (d Doc) Position(offset int) (line, column int) {
	at := d.Start
	for at > 0 && !endsInBreak(d.src[max(0, at-3):at]) { // JSON values in a row
		at--
	}
	for line = d.Line; ; line++ {
		next := NextLine(d.src, at)
		if next > offset || !endsInBreak(d.src[at:next]) {
			break
		}
		at = next
	}
	if at == 0 && bytes.HasPrefix(d.src, utf8BOM) {
		at = len(utf8BOM)
	}
	return line, offset - at + 1
}

// byteColumn turns the parser's line and column within the document, which
// count characters, into a column in bytes.
func (d Doc) byteColumn(line, column int) int {
	at := d.Start
	for ; line > 1; line-- {
		at = NextLine(d.src, at)
	}
	start := at
	for ; column > 1 && at < d.End; column-- {
		_, size := utf8.DecodeRune(d.src[at:])
		at += size
	}
	return at - start + 1
}

// LineStart returns the offset at which the line with the given offset begins.
func LineStart(src []byte, offset int) int {
	for offset > 0 && !endsInBreak(src[max(0, offset-3):offset]) {
		offset--
	}
	return offset
}

// LineEnd returns the offset of the break that ends the line with the given
// offset, or of the end of the text.
func LineEnd(src []byte, offset int) int {
	for ; offset < len(src); offset++ {
		if breakLen(src[offset:]) > 0 {
			return offset
		}
	}
	return offset
}

// BreakBefore returns how many bytes the line break that ends at the offset
// has; 0 if none does.
func BreakBefore(src []byte, offset int) int {
	if offset >= 2 && src[offset-2] == '\r' && src[offset-1] == '\n' {
		return 2
	}
	for n := 1; n <= 3 && n <= offset; n++ {
		if breakLen(src[offset-n:offset]) == n {
			return n
		}
	}
	return 0
}
