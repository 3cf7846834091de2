package workload

import (
	"sync"

	"github.com/kubectl-sched/kubectl-sched/internal/workload/yamldoc"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// locateFunc finds where a document has a path.
type locateFunc func(text, Path) diag.Range

// trees remembers the trees of the last few documents in which something was
// looked up. A place is asked for only where there is something to say of it,
// so most documents never get a tree, and none is kept for long: ten thousand
// trees would take more memory than all else.
type trees struct {
	mu     sync.Mutex
	recent []tree
}

type tree struct {
	of   text
	root *yamldoc.Node
}

// treesKept is how many trees are remembered.
const treesKept = 16

func (t *trees) get(of text) *yamldoc.Node {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, known := range t.recent {
		if known.of.file == of.file && known.of.doc.Index == of.doc.Index {
			return known.root
		}
	}
	root, err := of.doc.Tree()
	if err != nil {
		root = nil // the document was decoded, but is too odd for places
	}
	if len(t.recent) == treesKept {
		t.recent = append(t.recent[:0], t.recent[1:]...)
	}
	t.recent = append(t.recent, tree{of, root})
	return root
}

// locate returns where the document has the path, or its nearest ancestor: the
// key with its value, or the element.
func (t *trees) locate(of text, path Path) diag.Range {
	root := t.get(of)
	if root == nil {
		return diag.At(diag.Pos{File: of.file.Name, Line: of.doc.Line})
	}
	start, end := root.Start, root.End
	node := root
	for _, step := range path {
		node = node.Resolve()
		switch step := step.(type) {
		case string:
			i := node.Index(step)
			if i < 0 {
				return of.at(start, end)
			}
			start, end = node.Keys[i].Start, max(node.Keys[i].End, node.Values[i].End)
			node = node.Values[i]
		case int:
			if node.Kind != yamldoc.Sequence || step >= len(node.Values) {
				return of.at(start, end)
			}
			node = node.Values[step]
			start, end = node.Start, node.End
		}
	}
	return of.at(start, end)
}

func (t text) at(start, end int) diag.Range {
	position := func(offset int) diag.Pos {
		line, column := t.doc.Position(offset)
		return diag.Pos{File: t.file.Name, Line: line, Column: column}
	}
	return diag.Range{Start: position(start), End: position(end)}
}
