package yamldoc

import "bytes"

// Comment is one comment of a text.
type Comment struct {
	// Start and End are its byte range in the whole text, the "#" included and the line
	// break not.
	Start, End int
	// Line is the line it is in, Below the line that it speaks of: its own where it
	// follows something, else the first below with anything but a comment; 0 if there
	// is none in the document.
	Line, Below int
}

// Comments returns the comments of a document in their order. A document without a
// tree (JSON, or what cannot be read) has none.
func (d Doc) Comments() []Comment {
	if d.JSON || bytes.IndexByte(d.Text(), '#') < 0 {
		return nil
	}
	root, err := d.Tree()
	if err != nil {
		return nil
	}
	var spans [][2]int
	scalars(root, func(n *Node) { spans = append(spans, [2]int{n.Body, n.End}) })
	var out []Comment
	var waiting []int // of out, for what is below
	line := d.Line
	for at := d.Start; at < d.End; line++ {
		next := NextLine(d.src[:d.End], at)
		start, alone := commentIn(d.src[:d.End], at, next, &spans)
		blank := len(bytes.TrimSpace(d.src[at:min(start, next)])) == 0
		if !blank {
			for _, i := range waiting {
				out[i].Below = line
			}
			waiting = waiting[:0]
		}
		if start < next {
			c := Comment{Start: start, End: LineEnd(d.src[:next], start), Line: line}
			if alone {
				waiting = append(waiting, len(out))
			} else {
				c.Below = line
			}
			out = append(out, c)
		}
		at = next
	}
	return out
}

// commentIn returns where the comment begins in the line from at to next, next if
// there is none, and whether nothing stands before it. It takes the scalars that end
// before off the front of spans.
func commentIn(src []byte, at, next int, spans *[][2]int) (start int, alone bool) {
	for i := at; i < next; i++ {
		if src[i] != '#' || i > at && src[i-1] != ' ' && src[i-1] != '\t' {
			continue
		}
		for len(*spans) > 0 && (*spans)[0][1] <= i {
			*spans = (*spans)[1:]
		}
		if len(*spans) > 0 && (*spans)[0][0] <= i {
			continue // within a text
		}
		return i, len(bytes.TrimSpace(src[at:i])) == 0
	}
	return next, false
}

// scalars calls do for each scalar of the tree in the order of the text.
func scalars(n *Node, do func(*Node)) {
	switch {
	case n == nil:
	case n.Kind == Scalar:
		do(n)
	default:
		for i, v := range n.Values {
			if n.Kind == Mapping {
				scalars(n.Keys[i], do)
			}
			scalars(v, do)
		}
	}
}
