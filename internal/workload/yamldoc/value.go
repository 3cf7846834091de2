package yamldoc

import (
	"fmt"
	"math"
	"slices"

	"go.yaml.in/yaml/v3"
)

// maxExpansion is how many values the aliases of one document may stand for:
// far above any manifest, and far below what fills the memory.
const maxExpansion = 1_000_000

// Decode returns the document as a plain value: map[string]any, []any, string,
// bool, int64, float64 or nil (also for an empty document). With problems the
// value is what could be read, or nil. Every duplicate key is a problem; the
// last one wins in the value, as in kubectl.
func (d Doc) Decode() (any, []*Problem) {
	if d.JSON {
		tree, err := d.parseJSON()
		if err != nil {
			return nil, []*Problem{err}
		}
		c := converter{doc: d}
		return c.tree(tree), c.problems
	}
	root, problem := d.parse()
	if problem != nil {
		return nil, []*Problem{problem}
	}
	if root == nil {
		return nil, nil
	}
	c := converter{doc: d}
	v := c.value(root)
	return v, c.problems
}

// converter turns nodes into values. Its keys are shared between the objects
// of a document, which are much alike.
type converter struct {
	doc      Doc
	problems []*Problem
	// aliases are the nodes whose alias is being followed: an alias of one of
	// them would never end.
	aliases  []*yaml.Node
	expanded int
	full     bool
}

func (c *converter) fail(n *yaml.Node, format string, args ...any) {
	c.problems = append(c.problems, &Problem{
		Line:    c.doc.Line + n.Line - 1,
		Column:  c.doc.byteColumn(n.Line, n.Column),
		Message: fmt.Sprintf(format, args...),
	})
}

func (c *converter) value(n *yaml.Node) any {
	if len(c.aliases) > 0 {
		if c.expanded++; c.expanded > maxExpansion {
			if !c.full {
				c.fail(c.aliases[0], "the aliases of this document stand for more than %d values; write them out", maxExpansion)
			}
			c.full = true
			return nil
		}
	}
	switch n.Kind {
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			list[i] = c.value(item)
		}
		return list
	case yaml.MappingNode:
		return c.mapping(n)
	case yaml.AliasNode:
		if slices.Contains(c.aliases, n.Alias) || n.Alias == nil {
			c.fail(n, "the anchor %q contains itself", n.Value)
			return nil
		}
		c.aliases = append(c.aliases, n.Alias)
		v := c.value(n.Alias)
		c.aliases = c.aliases[:len(c.aliases)-1]
		return v
	default:
		return c.scalar(n)
	}
}

func (c *converter) scalar(n *yaml.Node) any {
	var v any
	switch {
	case n.Style&yaml.TaggedStyle != 0:
		tagged, err := resolveTagged(n.ShortTag(), n.Value)
		if err != nil {
			c.fail(n, "%v", err)
		}
		v = tagged
	case n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return n.Value
	default:
		v = ResolvePlain(n.Value)
	}
	if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		c.fail(n, "%q is a number that JSON does not have", n.Value)
		return nil
	}
	return v
}

// isMerge reports whether a key is the merge key of YAML 1.1.
func isMerge(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Value == "<<" && (n.Style == 0 || n.Tag == "!!merge")
}

func (c *converter) mapping(n *yaml.Node) any {
	m := make(map[string]any, len(n.Content)/2)
	merges := 0
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if isMerge(k) {
			merges++
			continue
		}
		key, ok := c.key(k)
		if !ok {
			continue
		}
		size := len(m)
		m[key] = c.value(n.Content[i+1])
		if len(m) == size {
			c.fail(k, "the key %q is there twice; the second one would win", key)
		}
	}
	if merges > 0 {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if isMerge(n.Content[i]) {
				c.merge(m, n.Content[i+1])
			}
		}
	}
	return m
}

func (c *converter) key(k *yaml.Node) (string, bool) {
	if k.Kind == yaml.ScalarNode && k.Style == 0 && k.Tag == "!!str" && k.Anchor == "" {
		if s, ok := ResolvePlain(k.Value).(string); ok {
			return s, true
		}
	}
	v := c.value(k)
	s, err := keyString(v)
	if err != nil {
		c.fail(k, "%v", err)
		return "", false
	}
	return s, true
}

// merge adds what "<<: n" brings to m, where m does not have it.
func (c *converter) merge(m map[string]any, n *yaml.Node) {
	switch v := c.value(n).(type) {
	case map[string]any:
		for k, e := range v {
			if _, ok := m[k]; !ok {
				m[k] = e
			}
		}
	case []any:
		for _, item := range v {
			source, ok := item.(map[string]any)
			if !ok {
				c.fail(n, "a merge key takes a map or a list of maps")
				return
			}
			for k, e := range source {
				if _, ok := m[k]; !ok {
					m[k] = e
				}
			}
		}
	default:
		c.fail(n, "a merge key takes a map or a list of maps")
	}
}

// tree is value for a JSON tree, which has neither aliases nor tags.
func (c *converter) tree(n *Node) any {
	switch n.Kind {
	case Sequence:
		list := make([]any, len(n.Values))
		for i, item := range n.Values {
			list[i] = c.tree(item)
		}
		return list
	case Mapping:
		m := make(map[string]any, len(n.Keys))
		for i, k := range n.Keys {
			key, _ := k.Value.(string)
			if _, ok := m[key]; ok {
				line, column := c.doc.Position(k.Start)
				c.problems = append(c.problems, &Problem{line, column, fmt.Sprintf("the key %q is there twice; the second one would win", key)})
			}
			m[key] = c.tree(n.Values[i])
		}
		return m
	default:
		return n.Value
	}
}
