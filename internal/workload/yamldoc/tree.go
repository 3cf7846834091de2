package yamldoc

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Kind is what a Node is.
type Kind int

// The kinds of nodes.
const (
	Scalar Kind = iota
	Mapping
	Sequence
	Alias
)

// Style is how a scalar is written.
type Style int

// The styles of scalars.
const (
	Plain Style = iota
	Single
	Double
	Literal
	Folded
)

// Node is one value of a document and the bytes that it is written in. Offsets
// count in the whole text that the document was split from.
type Node struct {
	Kind  Kind
	Style Style
	// Flow says that a collection is written in brackets.
	Flow bool
	// Bare says that a flow mapping has no braces: the pair in "[a: b]".
	Bare bool
	// Start is where the node begins, its anchor and tag included; Body where
	// it begins after them. End is the byte after its last one, without the
	// line break that ends it; a node that is not written at all ("key:") has
	// all three the same.
	Start, Body, End int
	// Anchor is the name by which aliases know the node, or empty.
	Anchor string
	// Tagged says that the node has an explicit tag.
	Tagged bool
	// Value is a scalar's value.
	Value any
	// Keys and Values are the entries of a mapping; a sequence has Values only.
	Keys, Values []*Node
	// Merge says that the node is the merge key "<<".
	Merge bool
	// Target is the node that an Alias stands for.
	Target *Node
}

// Get returns the value of a mapping's key itself (not what it merges), or nil.
func (n *Node) Get(key string) *Node {
	if i := n.Index(key); i >= 0 {
		return n.Values[i]
	}
	return nil
}

// Index returns the index of a mapping's key, the last one if it is there
// twice, or -1.
func (n *Node) Index(key string) int {
	if n.Kind != Mapping {
		return -1
	}
	for i := len(n.Keys) - 1; i >= 0; i-- {
		if s, ok := KeyOf(n.Keys[i]); ok && s == key {
			return i
		}
	}
	return -1
}

// Resolve returns the node that an alias stands for, and any other node itself.
func (n *Node) Resolve() *Node {
	for n != nil && n.Kind == Alias {
		n = n.Target
	}
	return n
}

// Tree returns the root of the document with the place of every node; nil for
// an empty document. The error is a *Problem.
func (d Doc) Tree() (*Node, error) {
	if d.JSON {
		n, problem := d.parseJSON()
		if problem != nil {
			return nil, problem
		}
		return n, nil
	}
	root, problem := d.parse()
	if problem != nil {
		return nil, problem
	}
	return d.tree(root)
}

// TreeValue is Tree and Decode in one parse. The first problem of either is the
// error.
func (d Doc) TreeValue() (*Node, any, error) {
	c := converter{doc: d}
	var tree *Node
	var value any
	if d.JSON {
		n, problem := d.parseJSON()
		if problem != nil {
			return nil, nil, problem
		}
		tree, value = n, c.tree(n)
	} else {
		root, problem := d.parse()
		if problem != nil {
			return nil, nil, problem
		}
		if root != nil {
			value = c.value(root)
		}
		var err error
		if tree, err = d.tree(root); err != nil {
			return nil, nil, err
		}
	}
	if len(c.problems) > 0 {
		return nil, nil, c.problems[0]
	}
	return tree, value, nil
}

func (d Doc) tree(root *yaml.Node) (*Node, error) {
	if root == nil {
		return nil, nil
	}
	b := &builder{doc: d, src: d.src[:d.End], nodes: map[*yaml.Node]*Node{}}
	for at := d.Start; ; {
		b.lines = append(b.lines, at)
		next := NextLine(b.src, at)
		if next == at {
			break
		}
		at = next
	}
	n := b.build(root, 0)
	if b.problem != nil {
		return nil, b.problem
	}
	return n, nil
}

// builder finds the byte range of each of the parser's nodes. The parser says
// where a node begins; the end follows from how the node is written.
type builder struct {
	doc     Doc
	src     []byte
	lines   []int
	nodes   map[*yaml.Node]*Node
	problem *Problem
}

func (b *builder) fail(n *yaml.Node, message string) {
	if b.problem == nil {
		b.problem = &Problem{Line: b.doc.Line + n.Line - 1, Column: b.doc.byteColumn(n.Line, n.Column), Message: message}
	}
}

// offset returns the byte offset of the parser's line and column, which counts
// characters.
func (b *builder) offset(n *yaml.Node) int {
	if n.Line < 1 || n.Line > len(b.lines) {
		return len(b.src)
	}
	at := b.lines[n.Line-1]
	for range n.Column - 1 {
		if at >= len(b.src) {
			break
		}
		if b.src[at] < utf8.RuneSelf {
			at++
			continue
		}
		_, size := utf8.DecodeRune(b.src[at:])
		at += size
	}
	return at
}

func (b *builder) build(n *yaml.Node, depth int) *Node {
	if depth > maxDepth {
		b.fail(n, fmt.Sprintf("the document is nested deeper than %d", maxDepth))
	}
	start := b.offset(n)
	node := &Node{Start: start, Body: start, End: start, Anchor: n.Anchor, Tagged: n.Style&yaml.TaggedStyle != 0, Flow: n.Style&yaml.FlowStyle != 0}
	if b.problem != nil {
		return node
	}
	if n.Kind == yaml.AliasNode {
		node.Kind, node.Target = Alias, b.nodes[n.Alias]
		node.End = start + 1 + len(n.Value)
		if node.Target == nil {
			b.fail(n, fmt.Sprintf("the anchor %q contains itself", n.Value))
		}
		return node
	}
	if n.Anchor != "" {
		defer func() { b.nodes[n] = node }()
	}
	if n.Anchor != "" || node.Tagged {
		b.properties(node, n)
	}
	switch n.Kind {
	case yaml.SequenceNode:
		node.Kind = Sequence
		for _, item := range n.Content {
			node.Values = append(node.Values, b.build(item, depth+1))
		}
		b.collectionEnd(node, n)
	case yaml.MappingNode:
		node.Kind = Mapping
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := b.build(n.Content[i], depth+1)
			key.Merge = isMerge(n.Content[i])
			node.Keys = append(node.Keys, key)
			node.Values = append(node.Values, b.build(n.Content[i+1], depth+1))
		}
		b.collectionEnd(node, n)
	default:
		b.scalar(node, n)
	}
	return node
}

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

// KeyOf returns the string that a key is in JSON; false for the merge key and
// for keys that are no scalars.
func KeyOf(key *Node) (string, bool) {
	key = key.Resolve()
	if key.Merge || key.Kind != Scalar {
		return "", false
	}
	s, err := keyString(key.Value)
	return s, err == nil
}
