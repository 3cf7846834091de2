package ownership

// Parse reads the value of the annotation. It is strict: unknown fields, a
// version that is not ours, fields without a path or twice the same are errors.
func Parse(annotation string) (*Record, error) {
	return nil, nil
}

// Encode returns the record as compact JSON, the value of the annotation: equal
// records give equal bytes.
func (r *Record) Encode() (string, error) {
	return "", nil
}

// Build returns the record of the given writes, or nil if none changes
// anything. Writes whose Before equals After are left out.
func Build(before map[string]any, writes []Write) *Record {
	return nil
}
