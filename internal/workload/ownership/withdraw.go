package ownership

// An Edited is a field that we wrote and that somebody has changed since, so
// that what was there before cannot be put back.
type Edited struct {
	// Path is the JSON pointer of the field in the object.
	Path string
	// Template is the name of the pod template that the field belongs to.
	Template string
	// Wrote is the value that we left, and Now the one that is there (nil if the
	// field is gone). Now is kept, as the user's own.
	Wrote, Now any
}

// Withdraw returns the object as it would be without us. The object itself is
// not changed; the result shares the parts that stay the same, and is the
// object itself where the record owns nothing. The annotation is taken away.
func Withdraw(object map[string]any, record *Record) (map[string]any, []Edited) {
	return object, nil
}
