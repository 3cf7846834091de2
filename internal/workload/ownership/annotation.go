package ownership

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// version is the version of the record's format.
const version = 1

// Parse reads the value of the annotation. It is strict: unknown fields, a
// version that is not ours, fields without a path or twice the same are errors.
func Parse(annotation string) (*Record, error) {
	var head struct {
		Version int `json:"v"`
	}
	if err := json.Unmarshal([]byte(annotation), &head); err != nil {
		return nil, fmt.Errorf("the annotation %s is damaged: %w; restore it, or remove it and the fields that it names", Annotation, err)
	}
	if head.Version != version {
		return nil, fmt.Errorf("the annotation %s has version %d, and this kubectl-sched knows version %d; use the newer one", Annotation, head.Version, version)
	}
	dec := json.NewDecoder(strings.NewReader(annotation))
	dec.DisallowUnknownFields()
	dec.UseNumber()
	r := &Record{}
	err := dec.Decode(r)
	if err == nil {
		if _, end := dec.Token(); end != io.EOF {
			err = fmt.Errorf("something follows the record")
		}
	}
	if err == nil {
		err = r.complete()
	}
	if err != nil {
		return nil, fmt.Errorf("the annotation %s is damaged: %w; restore it, or remove it and the fields that it names", Annotation, err)
	}
	return r, nil
}

// complete checks the fields and gives their numbers the types of an object.
func (r *Record) complete() error {
	seen := map[string]bool{}
	for i := range r.Fields {
		f := &r.Fields[i]
		if len(f.Path) < 2 || f.Path[0] != '/' {
			return fmt.Errorf("%q is no path of a field", f.Path)
		}
		if seen[f.Path] {
			return fmt.Errorf("the field %s is there twice", f.Path)
		}
		seen[f.Path] = true
		if f.Made < 0 || f.Made >= len(Tokens(f.Path)) {
			return fmt.Errorf("the field %s cannot have %d parents", f.Path, f.Made)
		}
		f.Before, f.Wrote = numbers(f.Before), numbers(f.Wrote)
		if f.Before == nil && f.Wrote == nil {
			return fmt.Errorf("the field %s says neither what was there nor what was written", f.Path)
		}
	}
	if r.Made < 0 || r.Made > 2 {
		return fmt.Errorf("the annotation cannot have %d parents", r.Made)
	}
	return nil
}

// numbers turns json.Number into int64 or float64.
func numbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = numbers(e)
		}
	case []any:
		for i, e := range v {
			v[i] = numbers(e)
		}
	case json.Number:
		if i, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return i
		}
		f, err := v.Float64()
		if err != nil {
			return v.String()
		}
		return f
	}
	return v
}

// Encode returns the record as compact JSON, the value of the annotation: equal
// records give equal bytes. It fails on values that are no plain JSON.
func (r *Record) Encode() (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return "", fmt.Errorf("encode the annotation %s: %w", Annotation, err)
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}
