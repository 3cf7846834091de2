package yamldoc

import (
	"math"
	"strings"

	"go.yaml.in/yaml/v3"
)

// properties sets Body after the anchor and the tag at Start.
func (b *builder) properties(node *Node, n *yaml.Node) {
	at := node.Start
	for at < len(b.src) && (b.src[at] == '&' || b.src[at] == '!') {
		if b.src[at] == '&' {
			at = min(len(b.src), at+1+len(n.Anchor))
		} else {
			for at < len(b.src) && b.src[at] != ' ' && b.src[at] != '\t' && breakLen(b.src[at:]) == 0 {
				if n.Value == "" && strings.IndexByte(",]}", b.src[at]) >= 0 {
					break
				}
				at++
			}
		}
		node.Body, node.End = at, at
		if n.Kind == yaml.ScalarNode && n.Value == "" && n.Style&^yaml.TaggedStyle == 0 {
			// Nothing needs to follow; another property may.
			next := b.blanks(at)
			if next < len(b.src) && (b.src[next] == '&' || b.src[next] == '!') {
				at = next
				continue
			}
			return
		}
		at = b.blanks(at)
	}
	node.Body, node.End = at, at
}

// blanks returns the offset after white space, line breaks and comments.
func (b *builder) blanks(at int) int {
	for at < len(b.src) {
		switch {
		case b.src[at] == ' ' || b.src[at] == '\t':
			at++
		case breakLen(b.src[at:]) > 0:
			at += breakLen(b.src[at:])
		case b.src[at] == '#':
			at = NextLine(b.src, at)
		default:
			return at
		}
	}
	return at
}

func (b *builder) collectionEnd(node *Node, n *yaml.Node) {
	last := node.Body
	if len(node.Values) > 0 {
		last = max(last, node.Values[len(node.Values)-1].End)
	}
	node.End = last
	at := node.Body
	for i, v := range node.Values {
		if node.Kind == Mapping {
			if k := node.Keys[i]; k.Start < at || v.Start < k.End {
				b.fail(n, "this value is written in a way that cannot be followed")
				return
			}
		}
		if v.Start < at {
			b.fail(n, "this value is written in a way that cannot be followed")
			return
		}
		at = v.End
	}
	if !node.Flow {
		return
	}
	if node.Body >= len(b.src) || b.src[node.Body] != '{' && b.src[node.Body] != '[' {
		node.Bare = true
		return
	}
	at = last
	if len(node.Values) == 0 {
		at++
	}
	for at = b.blanks(at); at < len(b.src) && b.src[at] == ','; {
		at = b.blanks(at + 1)
	}
	if at >= len(b.src) || b.src[at] != '}' && b.src[at] != ']' {
		b.fail(n, "the end of this value cannot be found")
		return
	}
	node.End = at + 1
}

func (b *builder) scalar(node *Node, n *yaml.Node) {
	c := converter{doc: b.doc}
	node.Value = c.scalar(n)
	if f, ok := node.Value.(float64); ok && math.IsNaN(f) || len(c.problems) > 0 {
		b.problem = c.problems[0]
		return
	}
	ok := true
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		node.Style = Double
		node.End, ok = b.quotedEnd(node.Body, '"')
	case n.Style&yaml.SingleQuotedStyle != 0:
		node.Style = Single
		node.End, ok = b.quotedEnd(node.Body, '\'')
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		node.Style = Literal
		if n.Style&yaml.FoldedStyle != 0 {
			node.Style = Folded
		}
		node.End = b.blockEnd(node.Body, n.Value)
	default:
		node.End, ok = b.plainEnd(node.Body, n.Value)
	}
	if !ok {
		b.fail(n, "the end of this value cannot be found")
	}
}

func (b *builder) quotedEnd(at int, quote byte) (int, bool) {
	if at >= len(b.src) || b.src[at] != quote {
		return at, false
	}
	for at++; at < len(b.src); at++ {
		switch {
		case b.src[at] == '\\' && quote == '"':
			at++
		case b.src[at] == quote:
			if quote == '\'' && at+1 < len(b.src) && b.src[at+1] == quote {
				at++
				continue
			}
			return at + 1, true
		}
	}
	return at, false
}

// plainEnd follows a plain scalar's value through the text, where each of its
// line breaks and some of its spaces may be a fold.
func (b *builder) plainEnd(at int, value string) (int, bool) {
	for j := 0; j < len(value); {
		c := value[j]
		if c == '\n' || c == ' ' {
			end, folded := b.gap(at)
			if folded {
				at = end
				for j++; c == '\n' && j < len(value) && value[j] == '\n'; {
					j++
				}
				continue
			}
		}
		if at >= len(b.src) || b.src[at] != c {
			return at, false
		}
		at++
		j++
	}
	return at, true
}

// gap returns the offset after a run of white space, and whether the run has a
// line break in it.
func (b *builder) gap(at int) (end int, folded bool) {
	for at < len(b.src) {
		if n := breakLen(b.src[at:]); n > 0 {
			folded = true
			at += n
			continue
		}
		if b.src[at] != ' ' && b.src[at] != '\t' {
			break
		}
		at++
	}
	return at, folded
}

// blockEnd returns the end of a literal or folded scalar, whose header is at
// the given offset.
func (b *builder) blockEnd(at int, value string) int {
	header := NextLine(b.src, at)
	keep := strings.Contains(string(b.src[at:min(header, at+4)]), "+")
	end := trimBreak(b.src, at, header)
	content := strings.TrimLeft(value, "\n")
	indent := -1
	for line := header; line < len(b.src); {
		next := NextLine(b.src, line)
		text := b.src[line:next]
		spaces := 0
		for spaces < len(text) && text[spaces] == ' ' {
			spaces++
		}
		blank := (breakLen(text[spaces:]) > 0 || spaces == len(text)) && (indent < 0 || spaces <= indent)
		switch {
		case blank && content == "" && !keep:
			return end
		case blank:
			if keep {
				end = trimBreak(b.src, line, next)
			}
		case content == "":
			return end
		case indent < 0:
			// An indentation indicator may leave spaces in the value.
			indent = spaces - (len(content) - len(strings.TrimLeft(content, " ")))
			end = trimBreak(b.src, line, next)
		case spaces < indent:
			return end
		default:
			end = trimBreak(b.src, line, next)
		}
		line = next
	}
	return end
}

// trimBreak returns the end of the line from start to next without its break.
func trimBreak(src []byte, start, next int) int {
	for i := start; i < next; i++ {
		if breakLen(src[i:next]) == next-i {
			return i
		}
	}
	return next
}
