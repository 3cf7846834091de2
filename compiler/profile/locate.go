package profile

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// document is a configuration as somebody wrote it, to find places in.
type document struct {
	file string
	root *yaml.Node // nil for an empty text
}

// parse reads the one document of the text.
func parse(file string, data []byte) (document, error) {
	d := document{file: file}
	decoder := yaml.NewDecoder(strings.NewReader(string(data)))
	for {
		var n yaml.Node
		err := decoder.Decode(&n)
		switch {
		case errors.Is(err, io.EOF):
			return d, nil
		case err != nil:
			return d, err
		case n.Kind == 0 || len(n.Content) == 0 || n.Content[0].Tag == "!!null":
			continue
		case d.root != nil:
			return d, fmt.Errorf("line %d: there is a second document; a scheduler reads one", n.Content[0].Line)
		}
		d.root = n.Content[0]
	}
}

// at returns where the field at the path is, or its nearest ancestor: its key, or
// the element of a list.
func (d document) at(path []string) diag.Range {
	place, n := d.root, d.root
	for _, step := range path {
		var next *yaml.Node
		switch {
		case n == nil:
		case n.Kind == yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == step {
					place, next = n.Content[i], n.Content[i+1]
				}
			}
		case n.Kind == yaml.SequenceNode:
			if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(n.Content) {
				place, next = n.Content[i], n.Content[i]
			}
		}
		if next == nil {
			break
		}
		for next.Kind == yaml.AliasNode && next.Alias != nil {
			next = next.Alias
		}
		n = next
	}
	pos := diag.Pos{File: d.file}
	if place != nil {
		pos.Line, pos.Column = place.Line, place.Column
	}
	return diag.At(pos)
}

// duplicates returns the paths of keys that are there twice in one map.
func (d document) duplicates() []Problem {
	var out []Problem
	var walk func(n *yaml.Node, path []string)
	walk = func(n *yaml.Node, path []string) {
		if n == nil {
			return
		}
		switch n.Kind {
		case yaml.MappingNode:
			seen := map[string]bool{}
			for i := 0; i+1 < len(n.Content); i += 2 {
				at := below(path, n.Content[i].Value)
				if seen[n.Content[i].Value] {
					out = append(out, Problem{Rule: "scheduler/duplicate-key", Severity: diag.Error, Path: at, Message: fmt.Sprintf("the key %q is there twice; keep one", n.Content[i].Value)})
				}
				seen[n.Content[i].Value] = true
				walk(n.Content[i+1], at)
			}
		case yaml.SequenceNode:
			for i, e := range n.Content {
				walk(e, below(path, strconv.Itoa(i)))
			}
		default: // a value, or an alias of what was walked already
		}
	}
	walk(d.root, nil)
	return out
}

// steps takes a path apart as upstream's messages have it: "profiles[0].plugins".
// A key in brackets is a step of its own.
func steps(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
}

// suggest ends a message with the name that was most likely meant.
func suggest(name string, known []string) string {
	for _, k := range known {
		if strings.EqualFold(k, name) {
			return fmt.Sprintf("; did you mean %q?", k)
		}
	}
	if near, ok := diag.Nearest(name, known); ok {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// listOf lists words for a reader.
func listOf(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range slices.Sorted(slices.Values(words)) {
		quoted[i] = strconv.Quote(w)
	}
	return strings.Join(quoted, ", ")
}
