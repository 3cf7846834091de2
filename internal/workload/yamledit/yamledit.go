// Package yamledit changes values in YAML and JSON text and leaves every other
// byte as it is: comments, key order, indentation, quoting, line ends, anchors.
//
// It maps a text and a list of edits to the new text. It must not know
// Kubernetes objects or why something is edited.
package yamledit

import "errors"

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
// from 0. All other bytes stay as they are.
func Apply(src []byte, doc int, edits []Edit) ([]byte, error) {
	return ApplyAll(src, map[int][]Edit{doc: edits})
}

// ApplyAll is Apply for several documents of one text at once.
func ApplyAll(src []byte, edits map[int][]Edit) ([]byte, error) {
	return nil, errors.ErrUnsupported
}
