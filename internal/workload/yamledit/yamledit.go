// Package yamledit changes values in YAML and JSON text and leaves every other
// byte as it is: comments, key order, indentation, quoting, line ends, anchors.
//
// It maps a text and a list of edits to the new text. Each edit is carried out
// as the least change of text that makes the document mean the new value, and
// the result is read again and compared before it is returned. The package must
// not know Kubernetes objects or why something is edited.
package yamledit

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/kubectl-sched/kubectl-sched/internal/workload/plain"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/yamldoc"
)

// Edit sets or deletes the value at one place of a document.
type Edit struct {
	// Path leads to the value: a string is a map key, an int a list index.
	Path []any
	// Value is the value to set, as plain JSON: map[string]any, []any, string,
	// bool, int64, float64 or nil. Missing parents are made.
	Value any
	// Delete removes the key or list element instead; Value is ignored. What is
	// not there is deleted already.
	Delete bool
}

// Apply returns src with the edits made to its document of that index, counted
// as yamldoc.Split does. The edits are made one after the other, so that list
// indices are those after the edits before. All other bytes stay as they are:
// where a value was added and is deleted again, the text is what it was.
//
// Other users of an anchor keep their value: an alias whose value would change
// by an edit of the anchor, or that an edit leads through, is written out.
//
// Errors name what in the text cannot be edited.
func Apply(src []byte, doc int, edits []Edit) ([]byte, error) {
	return ApplyAll(src, map[int][]Edit{doc: edits}, nil)
}

// Slots bounds how many documents are worked on at a time, by all calls that
// share it: each may need many times the memory of its text.
type Slots chan struct{}

// NewSlots returns slots for as many documents as there are processors to work.
func NewSlots() Slots { return make(Slots, runtime.GOMAXPROCS(0)) }

// ApplyAll is Apply for several documents of one text at once. It works on as
// many at a time as slots has room for; nil is for slots of its own.
func ApplyAll(src []byte, edits map[int][]Edit, slots Slots) ([]byte, error) {
	if slots == nil {
		slots = NewSlots()
	}
	docs := yamldoc.Split(src)
	todo := make([]int, 0, len(edits))
	for i := range edits {
		if i < 0 || i >= len(docs) {
			return nil, fmt.Errorf("there is no document %d among %d", i, len(docs))
		}
		todo = append(todo, i)
	}
	slices.Sort(todo)
	texts, errs := make([][]byte, len(todo)), make([]error, len(todo))
	work := func(n int) {
		slots <- struct{}{}
		defer func() { <-slots }()
		texts[n], errs[n] = applyDoc(src, docs[todo[n]], edits[todo[n]])
	}
	if len(todo) == 1 {
		work(0)
	} else {
		var next atomic.Int64
		var wait sync.WaitGroup
		for range min(cap(slots), len(todo)) {
			wait.Go(func() {
				for n := int(next.Add(1)) - 1; n < len(todo); n = int(next.Add(1)) - 1 {
					work(n)
				}
			})
		}
		wait.Wait()
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var out []byte
	done := 0
	for n, i := range todo {
		if texts[n] == nil {
			continue
		}
		if out == nil {
			out = make([]byte, 0, len(src)+len(src)/2)
		}
		out = append(append(out, src[done:docs[i].Start]...), texts[n]...)
		done = docs[i].End
	}
	if out == nil {
		return src, nil
	}
	return append(out, src[done:]...), nil
}

// applyDoc returns the document's new text, nil if it stays as it is.
func applyDoc(src []byte, d yamldoc.Doc, edits []Edit) ([]byte, error) {
	tree, old, err := d.TreeValue()
	if err != nil {
		return nil, err
	}
	target := old
	for _, e := range edits {
		if target, err = set(target, e.Path, e); err != nil {
			line, _ := d.Position(d.Start)
			return nil, fmt.Errorf("line %d: %s: %w", line, pathString(e.Path), err)
		}
	}
	if plain.Equal(old, target) {
		return nil, nil
	}
	if tree == nil {
		return nil, fmt.Errorf("line %d: the document is empty", d.Line)
	}
	w := &writer{src: src, doc: d, root: tree, style: detect(src, d, tree), anchors: map[*yamldoc.Node]any{}}
	if err := w.diff(place{node: tree}, old, target); err != nil {
		return nil, err
	}
	text, err := w.result()
	if err != nil {
		return nil, err
	}
	if err := check(text, target); err != nil {
		return nil, fmt.Errorf("line %d: this document cannot be edited without changing other parts of it (%w); simplify its layout by hand", d.Line, err)
	}
	return text, nil
}

// check reads the edited text again: what it says counts, not what we meant.
func check(text []byte, target any) error {
	docs := yamldoc.Split(text)
	if len(docs) != 1 {
		return fmt.Errorf("it would become %d documents", len(docs))
	}
	got, problems := docs[0].Decode()
	if len(problems) > 0 {
		return problems[0]
	}
	if !plain.Equal(got, target) {
		return fmt.Errorf("its other values would change")
	}
	return nil
}

// patch replaces the bytes from start to end.
type patch struct {
	start, end int
	text       string
}

// writer collects the patches of one document.
type writer struct {
	src     []byte
	doc     yamldoc.Doc
	root    *yamldoc.Node
	style   style
	patches []patch
	// head is the offset up to which the first lines are deleted, or 0.
	head int
	// anchors has the anchored nodes that change, and their new values.
	anchors map[*yamldoc.Node]any
}

func (w *writer) replace(start, end int, text string) {
	w.patches = append(w.patches, patch{start, end, text})
}

// result applies the patches.
func (w *writer) result() ([]byte, error) {
	slices.SortStableFunc(w.patches, func(a, b patch) int {
		if a.start != b.start {
			return a.start - b.start
		}
		return a.end - b.end // what is inserted comes before what is replaced
	})
	var out bytes.Buffer
	at := w.doc.Start
	for _, p := range w.patches {
		if p.start < at {
			if p.text != "" {
				return nil, w.errorAt(p.start, "two changes overlap here; simplify the layout by hand")
			}
			at = max(at, p.end) // two deletions share a line break
			continue
		}
		out.Write(w.src[at:p.start])
		out.WriteString(p.text)
		at = p.end
	}
	out.Write(w.src[at:w.doc.End])
	return out.Bytes(), nil
}

func (w *writer) errorAt(offset int, message string) error {
	line, column := w.doc.Position(offset)
	return &yamldoc.Problem{Line: line, Column: column, Message: message}
}
