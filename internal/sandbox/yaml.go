package sandbox

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// fields calls the function of each field of the mapping n, and reports fields
// that have none, and repeated ones.
func (p *poolParser) fields(n *yaml.Node, what string, known map[string]func(*yaml.Node)) {
	for key, value := range p.entries(n, what) {
		if read := known[key.Value]; read != nil {
			read(value)
			continue
		}
		names := slices.Sorted(maps.Keys(known))
		hint := "the fields are " + strings.Join(names, ", ")
		if nearest, ok := diag.Nearest(key.Value, names); ok {
			hint = fmt.Sprintf("did you mean %q?", nearest)
		}
		p.report(key, "%s has no field %q; %s", what, key.Value, hint)
	}
}

// entries yields the keys and values of the mapping n, each key once.
func (p *poolParser) entries(n *yaml.Node, what string) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		n := resolve(n)
		if n.Kind != yaml.MappingNode {
			p.report(n, "%s must be a mapping, not %s", what, kindName(n))
			return
		}
		lines := map[string]int{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if line, twice := lines[key.Value]; twice {
				p.report(key, "%q is there twice, first at line %d", key.Value, line)
				continue
			}
			lines[key.Value] = key.Line
			if !yield(key, resolve(n.Content[i+1])) {
				return
			}
		}
	}
}

func (p *poolParser) list(n *yaml.Node, what string) []*yaml.Node {
	if n = resolve(n); n.Kind == yaml.SequenceNode {
		items := make([]*yaml.Node, len(n.Content))
		for i, item := range n.Content {
			items[i] = resolve(item)
		}
		return items
	}
	p.report(n, "%s must be a list, not %s", what, kindName(n))
	return nil
}

// text returns the value of a scalar; numbers count as the text that they are.
func (p *poolParser) text(n *yaml.Node, what string) string {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		p.report(n, "%s must be a text, not %s", what, kindName(n))
		return ""
	}
	return n.Value
}

func (p *poolParser) texts(n *yaml.Node, what string) []string {
	var texts []string
	for _, item := range p.list(n, what) {
		texts = append(texts, p.text(item, what))
	}
	return texts
}

func (p *poolParser) boolean(n *yaml.Node, what string) bool {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
		p.report(n, "%s must be true or false, not %s", what, valueName(n))
		return false
	}
	return n.Value == "true"
}

// resolve follows an alias to what it stands for.
func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// kindName names what n is, for messages.
func kindName(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "empty"
	}
	return strconv.Quote(n.Value)
}

// valueName is kindName for scalars that are not texts.
func valueName(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode && n.Value != "" {
		return n.Value
	}
	return kindName(n)
}
