package yamldoc

import (
	"fmt"
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
