package yamledit

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/kubectl-sched/kubectl-sched/internal/workload/yamldoc"
)

// lineEnd is the end of the line of an offset, its comment included.
func (w *writer) lineEnd(offset int) int { return yamldoc.LineEnd(w.src[:w.doc.End], offset) }

// blanks returns the offset after white space, line breaks and comments.
func (w *writer) blanks(at int) int {
	for at < w.doc.End {
		switch w.src[at] {
		case ' ', '\t', '\n', '\r':
			at++
		case '#':
			at = w.lineEnd(at)
		default:
			return at
		}
	}
	return at
}

// colon returns the offset after the colon of a key.
func (w *writer) colon(key *yamldoc.Node) int {
	at := w.blanks(key.End)
	if at < w.doc.End && w.src[at] == ':' {
		return at + 1
	}
	return at
}

// startsLine reports whether nothing but white space stands before an offset
// in its line.
func (w *writer) startsLine(offset int) bool {
	start := yamldoc.LineStart(w.src, offset)
	return len(bytes.TrimLeft(w.src[start:offset], " ")) == 0
}

// removeLines deletes the lines from that of start to that of end. The break
// before them goes, not the one after, so that taking away what was appended to
// a text without a last break leaves none.
func (w *writer) removeLines(start, end int) {
	from, to := yamldoc.LineStart(w.src, start), w.lineEnd(end)
	n := yamldoc.BreakBefore(w.src, from)
	switch {
	case n == 0 || from-n < w.doc.Start || from == w.head:
		// There is no line before, or it has just been deleted.
		to = min(w.doc.End, yamldoc.NextLine(w.src, to))
		w.head = to
	case to == len(w.src) && w.open(from-n):
	default:
		from -= n
	}
	w.replace(from, to, "")
}

// open reports whether a block scalar that stays ends at the offset: at the end
// of a text it needs its break.
func (w *writer) open(offset int) bool {
	n := w.root
	for len(n.Values) > 0 && !n.Flow {
		i := len(n.Values) - 1
		for i > 0 && n.Values[i].Start > offset {
			i--
		}
		n = n.Values[i]
	}
	return n.End == offset && (n.Style == yamldoc.Literal || n.Style == yamldoc.Folded)
}

// blockEntries removes entries of a block mapping and appends new ones.
func (w *writer) blockEntries(n *yamldoc.Node, entries []entry, add []string, target map[string]any) error {
	for i, e := range entries {
		k, v := n.Keys[e.index], n.Values[e.index]
		if !e.remove {
			continue
		}
		if w.startsLine(k.Start) {
			w.removeLines(k.Start, v.End)
			continue
		}
		if i > 0 || k.Start != n.Body {
			return w.errorAt(k.Start, "this key cannot be removed: its line begins with something else; simplify the layout by hand")
		}
		if err := w.removeFirst(n, entries); err != nil {
			return err
		}
	}
	if len(add) == 0 {
		return nil
	}
	indent := w.indent(n)
	var text strings.Builder
	if n.End == len(w.src) && w.open(n.End) && !entries[len(entries)-1].remove {
		// One more line would become part of the scalar that ends the text.
		key := n.Keys[len(n.Keys)-1].Start
		for _, k := range add {
			text.WriteString(scalar(k, yamldoc.Plain) + ":" + w.style.after(target[k], indent) + w.style.newline + indent)
		}
		w.replace(key, key, text.String())
		return nil
	}
	for _, k := range add {
		text.WriteString(w.style.newline + indent + scalar(k, yamldoc.Plain) + ":" + w.style.after(target[k], indent))
	}
	end := w.lineEnd(n.End)
	w.replace(end, end, text.String())
	return nil
}

// indent returns the white space that a block collection's lines begin with.
func (w *writer) indent(n *yamldoc.Node) string {
	return strings.Repeat(" ", column(w.src, n.Body))
}

// removeFirst removes the first entry of a mapping that begins behind a dash.
func (w *writer) removeFirst(n *yamldoc.Node, entries []entry) error {
	next := 1
	for next < len(entries) && entries[next].remove {
		next++
	}
	from, to := n.Keys[0].Start, n.Keys[1].Start
	end := n.Values[0].End
	if bytes.IndexByte(w.src[end:to], '#') >= 0 {
		// The comment stays; the mapping then begins on the next line.
		to = end
		for to < w.doc.End && (w.src[to] == ' ' || w.src[to] == '\t') {
			to++
		}
		for to == w.lineEnd(to) && w.src[from-1] == ' ' {
			from--
		}
	} else if next > 1 {
		// The following entries' lines are removed too, from the break before
		// each; the entry that stays takes the place of the first.
		if next < len(entries) {
			w.replace(from, end, "")
			last := n.Values[next-1].End
			w.replace(w.lineEnd(last), n.Keys[next].Start, "")
			return nil
		}
	}
	w.replace(from, to, "")
	return nil
}

// blockElements removes elements of a block sequence and inserts new ones.
func (w *writer) blockElements(p place, steps []step, target []any) error {
	n := p.node
	indent := w.indent(n)
	gap := "- "
	if last := n.Values[len(n.Values)-1]; true {
		c, err := w.child(p, len(n.Values)-1)
		if err != nil {
			return err
		}
		if last.Start > c.dash+1 && last.Start <= w.lineEnd(c.dash) && utf8.Valid(w.src[c.dash:last.Start]) {
			gap = string(w.src[c.dash:last.Start])
		}
	}
	inner := indent + strings.Repeat(" ", len(gap))
	previous := -1
	for _, s := range steps {
		if s.old >= 0 {
			previous = s.old
		}
		switch {
		case s.old < 0 && previous < 0:
			text := gap + w.style.item(target[s.new], inner) + w.style.newline + indent
			w.replace(n.Body, n.Body, text)
		case s.old < 0:
			end := w.lineEnd(max(n.Values[previous].End, n.Body))
			w.replace(end, end, w.style.newline+indent+gap+w.style.item(target[s.new], inner))
		case s.new < 0:
			c, err := w.child(p, s.old)
			if err != nil {
				return err
			}
			if !w.startsLine(c.dash) {
				if s.old+1 >= len(n.Values) {
					return w.errorAt(c.dash, "this element cannot be removed: its line begins with something else; simplify the layout by hand")
				}
				next, err := w.child(p, s.old+1)
				if err != nil {
					return err
				}
				w.replace(c.dash, next.dash, "")
				continue
			}
			w.removeLines(c.dash, max(c.node.End, c.dash))
		}
	}
	return nil
}

// replaceValue writes a value in the place of another, whatever that was.
func (w *writer) replaceValue(p place, target any) error {
	n := p.node
	switch {
	case w.style.json || p.inFlow || n.Flow && p.key == nil && !p.inDash:
		return w.replaceFlow(p, target)
	case p.key != nil:
		return w.replaceAfterColon(p, target)
	case p.inDash:
		return w.replaceAfterDash(p, target)
	}
	return w.errorAt(n.Start, "the whole document cannot be replaced")
}

func (w *writer) replaceFlow(p place, target any) error {
	n := p.node
	start := n.Start
	if n.Kind == yamldoc.Scalar && !n.Tagged {
		start = n.Body
	}
	text := w.style.spread(target, indentOf(w.src, n.Start))
	if !w.style.json {
		text = w.inline(n, target)
	}
	if start == n.End && start > 0 && w.src[start-1] != ' ' { // nothing, or an anchor and no value
		text = " " + text
	}
	w.replace(start, n.End, text)
	return nil
}

// inline returns a value on one line, quoted as the scalar that it replaces.
func (w *writer) inline(n *yamldoc.Node, target any) string {
	if s, ok := target.(string); ok && n.Kind == yamldoc.Scalar && (n.Style == yamldoc.Single || n.Style == yamldoc.Double) {
		return scalar(s, n.Style)
	}
	return w.style.flow(target)
}

func (w *writer) replaceAfterColon(p place, target any) error {
	n := p.node
	colon := w.colon(p.key)
	ownLines := n.Kind != yamldoc.Scalar && !n.Flow && n.Kind != yamldoc.Alias || n.Body > w.lineEnd(colon)
	if isBlock(target) {
		indent := strings.Repeat(" ", column(w.src, p.key.Start))
		text := w.style.after(target, indent)
		if ownLines {
			w.replace(w.lineEnd(colon), w.lineEnd(n.End), text)
			return nil
		}
		end := w.lineEnd(n.End)
		w.replace(colon, max(colon, n.End), "")
		w.replace(end, end, text)
		return nil
	}
	text := " " + w.inline(n, target)
	if ownLines {
		if target == nil {
			text = ""
		}
		from := w.lineEnd(colon)
		if n.Start < from { // an anchor or a tag
			w.replace(colon, w.lineEnd(n.End), text)
			return nil
		}
		w.replace(colon, colon, text)
		w.replace(from, w.lineEnd(n.End), "")
		return nil
	}
	if n.Start == n.End {
		w.replace(colon, colon, text)
		return nil
	}
	start := n.Start
	if n.Kind == yamldoc.Scalar && !n.Tagged {
		start = n.Body
	}
	if start == n.End { // an anchor and no value
		w.replace(n.End, n.End, text)
		return nil
	}
	w.replace(start, n.End, text[1:])
	return nil
}

func (w *writer) replaceAfterDash(p place, target any) error {
	n := p.node
	indent := strings.Repeat(" ", column(w.src, p.dash)+2)
	start := n.Start
	if n.Kind == yamldoc.Scalar && !n.Tagged && !isBlock(target) {
		start = n.Body
	}
	if n.Start == n.End {
		w.replace(p.dash+1, p.dash+1, " "+w.style.item(target, indent))
		return nil
	}
	if n.Body <= w.lineEnd(p.dash) || n.Start > w.lineEnd(p.dash) {
		indent = strings.Repeat(" ", column(w.src, start))
	}
	if isBlock(target) {
		w.replace(start, n.End, w.style.item(target, indent))
		return nil
	}
	text := w.inline(n, target)
	if start == n.End { // an anchor and no value
		text = " " + text
	}
	w.replace(start, n.End, text)
	return nil
}
