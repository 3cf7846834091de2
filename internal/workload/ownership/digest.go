package ownership

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
)

// A Digest tells the value that we wrote from every other without repeating it:
// the annotation is read by people, in each diff of a manifest. Exactly one of
// its fields is set.
type Digest struct {
	// Whole is the sum of a value that is no list.
	Whole string
	// List has the sums of the elements of a list, in their order: enough to
	// find those that are ours among others.
	List []string
}

// DigestOf returns the digest of a plain JSON value; nil for nil. Values that
// are equal have equal digests, whatever Go types their numbers have.
func DigestOf(value any) *Digest {
	switch v := value.(type) {
	case nil:
		return nil
	case []any:
		return &Digest{List: sums(v)}
	}
	return &Digest{Whole: sum(value)}
}

// Is reports whether the value is the one that the digest was made of.
func (d *Digest) Is(value any) bool {
	other := DigestOf(value)
	if d == nil || other == nil {
		return d == nil && other == nil
	}
	return d.Whole == other.Whole && (d.List == nil) == (other.List == nil) && slices.Equal(d.List, other.List)
}

// sums returns the sums of the elements of a list; never nil.
func sums(list []any) []string {
	out := make([]string, len(list))
	for i, e := range list {
		out[i] = sum(e)
	}
	return out
}

// sumLength is the length of a sum: eight characters of base64 are 48 bits, so
// that two of the few elements of one field are not taken for each other.
const sumLength = 8

// sum is the beginning of the SHA-256 of the value as JSON, in which maps have
// an order and whole numbers no fraction.
func sum(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		// Infinity and the like, which no parser of JSON or YAML lets through.
		text = fmt.Append(nil, value)
	}
	all := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(all[:])[:sumLength]
}

// MarshalJSON writes a sum, or the list of them.
func (d Digest) MarshalJSON() ([]byte, error) {
	if d.List != nil {
		return json.Marshal(d.List)
	}
	return json.Marshal(d.Whole)
}

// UnmarshalJSON reads what MarshalJSON writes. Sums of another length are
// errors.
func (d *Digest) UnmarshalJSON(data []byte) error {
	*d = Digest{}
	all := []string{""}
	if len(data) > 0 && data[0] == '[' {
		if err := json.Unmarshal(data, &d.List); err != nil {
			return err
		}
		all = d.List
	} else {
		if err := json.Unmarshal(data, &d.Whole); err != nil {
			return err
		}
		all[0] = d.Whole
	}
	for _, s := range all {
		if len(s) != sumLength {
			return fmt.Errorf("%q is not a sum of %d characters", s, sumLength)
		}
	}
	return nil
}
