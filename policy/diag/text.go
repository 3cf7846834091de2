package diag

import (
	"bytes"
	"strings"
)

// Text is the text of a file in which positions are looked up. Lines end with
// "\n" or "\r\n"; a byte order mark at the start belongs to no line.
type Text struct {
	data []byte
	// starts are the offsets at which the lines begin.
	starts []int
}

// NewText returns the text for data, which must not change while it is used.
func NewText(data []byte) *Text {
	first := 0
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		first = 3
	}
	t := &Text{data: data, starts: []int{first}}
	for at := first; ; {
		end := bytes.IndexByte(data[at:], '\n')
		if end < 0 {
			return t
		}
		at += end + 1
		t.starts = append(t.starts, at)
	}
}

// Lines returns how many lines there are; what follows the last line break counts,
// even if it is empty.
func (t *Text) Lines() int { return len(t.starts) }

// Line returns the line of that number, from 1, without the break that ends it;
// false if the text has no such line.
func (t *Text) Line(n int) (string, bool) {
	if n < 1 || n > len(t.starts) {
		return "", false
	}
	end := len(t.data)
	if n < len(t.starts) {
		end = t.starts[n] - 1
	}
	return strings.TrimSuffix(string(t.data[t.starts[n-1]:end]), "\r"), true
}

// Offset returns the byte offset of a position, whose file is not looked at; false
// if the text has no such place. The place after the last byte of a line counts, and
// so does that after its "\r", where the line has one.
func (t *Text) Offset(p Pos) (int, bool) {
	if p.Line < 1 || p.Line > len(t.starts) || p.Column < 1 {
		return 0, false
	}
	offset, end := t.starts[p.Line-1]+p.Column-1, len(t.data)
	if p.Line < len(t.starts) {
		end = t.starts[p.Line] - 1
	}
	return offset, offset <= end
}

// Pos returns the position in file of a byte offset, the inverse of Offset.
func (t *Text) Pos(file string, offset int) Pos {
	low, high := 0, len(t.starts)
	for low+1 < high {
		if mid := (low + high) / 2; t.starts[mid] <= offset {
			low = mid
		} else {
			high = mid
		}
	}
	return Pos{File: file, Line: low + 1, Column: offset - t.starts[low] + 1}
}
