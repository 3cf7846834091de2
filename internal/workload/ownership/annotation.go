package ownership

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	wholenumbers "k8s.io/apimachinery/pkg/util/json"
)

// The versions of the annotation's format. The first repeated in full what we
// wrote; it is still read.
const (
	fullVersion = 1
	version     = 2
)

// note is the annotation of version 2.
type note struct {
	Version  int    `json:"v"`
	UID      string `json:"uid,omitempty"`
	Revision int    `json:"rev,omitempty"`
	Made     int    `json:"made,omitempty"`
	Null     bool   `json:"null,omitempty"`
	// In is what the paths of all fields begin with, where that saves anything.
	In     string      `json:"in,omitempty"`
	Fields []noteField `json:"fields"`
}

// noteField is a Field in a note.
type noteField struct {
	At       string `json:"at"`
	Template string `json:"tpl,omitempty"`
	// Container is left out for a field of the pod.
	Container string  `json:"ctr,omitempty"`
	Was       any     `json:"was,omitempty"`
	Is        *Digest `json:"is,omitempty"`
	Made      int     `json:"made,omitempty"`
	Null      bool    `json:"null,omitempty"`
}

// Parse reads the value of the annotation, of whichever version. It is strict:
// unknown fields, a version that is not ours, fields without a path or twice
// the same are errors. What we wrote is known by its Sum alone; Recall finds the
// values again.
func Parse(annotation string) (*Record, error) {
	r, err := parse(annotation)
	if err != nil {
		return nil, fmt.Errorf("the annotation %s %w", Annotation, err)
	}
	return r, nil
}

func parse(annotation string) (*Record, error) {
	const remedy = "restore it, or remove it and the fields that it names"
	var head struct {
		Version int `json:"v"`
	}
	if err := json.Unmarshal([]byte(annotation), &head); err != nil {
		return nil, fmt.Errorf("is damaged: %w; %s", err, remedy)
	}
	var r *Record
	var err error
	switch head.Version {
	case fullVersion:
		full := struct {
			Version int `json:"v"`
			Record
		}{}
		err, r = strict(annotation, &full), &full.Record
	case version:
		var n note
		err = strict(annotation, &n)
		r = n.record()
	default:
		return nil, fmt.Errorf("has version %d, and this kubectl-sched knows versions up to %d; use the newer one", head.Version, version)
	}
	if err == nil {
		err = r.complete()
	}
	if err != nil {
		return nil, fmt.Errorf("is damaged: %w; %s", err, remedy)
	}
	return r, nil
}

// strict decodes one JSON value with nothing unknown in it and nothing behind.
func strict(text string, into any) error {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	dec.UseNumber()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, end := dec.Token(); end != io.EOF {
		return fmt.Errorf("something follows the record")
	}
	return nil
}

// record is the record that the note stands for.
func (n *note) record() *Record {
	r := &Record{UID: n.UID, Revision: n.Revision, Made: n.Made, Null: n.Null}
	for _, f := range n.Fields {
		r.Fields = append(r.Fields, Field{Path: n.In + f.At, Template: f.Template, Container: f.Container, Before: f.Was, Sum: f.Is, Made: f.Made, Null: f.Null})
	}
	return r
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
		for _, v := range []*any{&f.Before, &f.Wrote} {
			if err := wholenumbers.ConvertInterfaceNumbers(v, 0); err != nil {
				return fmt.Errorf("the field %s: %w", f.Path, err)
			}
		}
		if f.Before == nil && f.left() == nil {
			return fmt.Errorf("the field %s says neither what was there nor what was written", f.Path)
		}
	}
	if r.Made < 0 || r.Made > 2 {
		return fmt.Errorf("the annotation cannot have %d parents", r.Made)
	}
	return nil
}

// Encode returns the record as compact JSON, the value of the annotation: equal
// records give equal bytes. What we wrote is in it as a Digest; only what was
// there before us is kept whole. It fails on values that are no plain JSON.
func (r *Record) Encode() (string, error) {
	n := note{Version: version, UID: r.UID, Revision: r.Revision, Made: r.Made, Null: r.Null, In: r.common(), Fields: []noteField{}}
	for i := range r.Fields {
		f := &r.Fields[i]
		n.Fields = append(n.Fields, noteField{strings.TrimPrefix(f.Path, n.In), f.Template, f.Container, f.Before, f.left(), f.Made, f.Null})
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(n); err != nil {
		return "", fmt.Errorf("encode the annotation %s: %w", Annotation, err)
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// common is the pointer that all fields are below; empty for a single field,
// where it would only make the text longer.
func (r *Record) common() string {
	if len(r.Fields) < 2 {
		return ""
	}
	tokens := Tokens(r.Fields[0].Path)
	tokens = tokens[:len(tokens)-1]
	for _, f := range r.Fields[1:] {
		other := Tokens(f.Path)
		n := 0
		for n < len(tokens) && n < len(other)-1 && tokens[n] == other[n] {
			n++
		}
		tokens = tokens[:n]
	}
	steps := make([]any, len(tokens))
	for i, t := range tokens {
		steps[i] = t
	}
	return Pointer(steps...)
}
