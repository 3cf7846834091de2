package ownership

// A Write is one field that is to be ours: what there was without us, and what
// there will be.
type Write struct {
	// Path is the JSON pointer of the field in the object.
	Path string
	// Template is the name of the pod template that the field belongs to, for
	// kinds that have several; empty otherwise.
	Template string
	// Before is the value without us; nil if the field was not there.
	Before any
	// After is the value that we leave; nil if we take the field away.
	After any
}
