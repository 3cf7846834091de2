package yamledit

import (
	"bytes"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/workload/yamldoc"
)

// flowEntries removes entries of a flow or JSON mapping and appends new ones.
func (w *writer) flowEntries(n *yamldoc.Node, entries []entry, add []string, target map[string]any) {
	var spans []span
	for _, e := range entries {
		spans = append(spans, span{n.Keys[e.index].Start, max(n.Keys[e.index].End, n.Values[e.index].End), e.remove})
	}
	var texts []string
	for _, k := range add {
		texts = append(texts, w.style.key(k)+w.style.colon+w.flowValue(n, target[k]))
	}
	w.removeSpans(spans)
	w.appendFlow(n, spans, texts)
}

// flowElements removes elements of a flow or JSON sequence and inserts new ones.
func (w *writer) flowElements(n *yamldoc.Node, steps []step, target []any) {
	spans := make([]span, len(n.Values))
	for i, v := range n.Values {
		spans[i] = span{v.Start, v.End, false}
	}
	pending := map[int][]string{} // by the index of the element before
	previous := -1
	for _, s := range steps {
		if s.old >= 0 {
			previous = s.old
			spans[s.old].remove = s.new < 0
			continue
		}
		pending[previous] = append(pending[previous], w.flowValue(n, target[s.new]))
	}
	w.removeSpans(spans)
	for i := range spans {
		if i+1 < len(spans) {
			for _, text := range pending[i] {
				w.replace(spans[i].end, spans[i].end, w.separator(n, spans)+text)
			}
		}
	}
	if len(spans) == 0 {
		w.appendFlow(n, spans, pending[-1])
		return
	}
	for _, text := range pending[-1] {
		w.replace(spans[0].start, spans[0].start, text+w.separator(n, spans))
	}
	w.appendFlow(n, spans, pending[len(spans)-1])
}

// span is an element of a flow collection, with its key.
type span struct {
	start, end int
	remove     bool
}

func (w *writer) flowValue(n *yamldoc.Node, v any) string {
	if !w.style.pretty {
		return w.style.flow(v)
	}
	first := n.Start
	if len(n.Keys) > 0 {
		first = n.Keys[0].Start
	} else if len(n.Values) > 0 {
		first = n.Values[0].Start
	}
	return w.style.spread(v, indentOf(w.src, first))
}

// separator is what stands between a new element and its neighbour.
func (w *writer) separator(n *yamldoc.Node, spans []span) string {
	lead := string(w.src[n.Body+1 : spans[0].start])
	if strings.ContainsAny(lead, "\r\n") {
		return "," + w.style.newline + indentOf(w.src, spans[0].start)
	}
	return w.style.comma
}

// removeSpans deletes elements, each with the comma that parts it from an
// element that stays. Comments between them stay.
func (w *writer) removeSpans(spans []span) {
	stays := -1 // the last element that stays, among those before
	for i, s := range spans {
		if !s.remove {
			stays = i
			continue
		}
		if stays >= 0 {
			w.removeBetween(spans[i-1].end, s.start, s.end)
			continue
		}
		if i+1 < len(spans) {
			next := spans[i+1].start
			if bytes.IndexByte(w.src[s.end:next], '#') < 0 {
				w.replace(s.start, next, "")
				continue
			}
			comma := w.comma(s.end)
			w.replace(s.start, comma+1, "")
		}
	}
}

// removeBetween deletes from the end of the element before to the end of the
// element itself, but for comments.
func (w *writer) removeBetween(before, start, end int) {
	gap := w.src[before:start]
	hash := bytes.LastIndexByte(gap, '#')
	if hash < 0 {
		w.replace(before, end, "")
		return
	}
	comma := w.comma(before)
	w.replace(comma, comma+1, "")
	w.replace(yamldoc.LineEnd(w.src, before+hash), end, "")
}

// comma returns the offset of the comma after an element.
func (w *writer) comma(at int) int {
	for at = w.blanks(at); at < w.doc.End && w.src[at] != ','; {
		at++
	}
	return at
}

// appendFlow adds elements at the end of a flow collection.
func (w *writer) appendFlow(n *yamldoc.Node, spans []span, texts []string) {
	if len(texts) == 0 {
		return
	}
	if len(spans) == 0 {
		w.replace(n.Body+1, n.Body+1, strings.Join(texts, w.style.comma))
		return
	}
	last := spans[len(spans)-1].end
	separator := w.separator(n, spans)
	text := separator + strings.Join(texts, separator)
	if end := w.lineEnd(last); strings.HasPrefix(separator, ",") && len(separator) > 2 && end < n.End {
		if rest := bytes.TrimSpace(w.src[last:end]); len(rest) > 0 && rest[0] == '#' {
			// The comment belongs to the last element: the new ones follow it.
			w.replace(last, last, ",")
			w.replace(end, end, text[1:])
			return
		}
	}
	w.replace(last, last, text)
}
