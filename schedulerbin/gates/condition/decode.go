package condition

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// Error says what is wrong with the condition of a gate.
type Error struct {
	// Gate is the full name of the gate.
	Gate string
	// Problems have the paths of the fields that are wrong.
	Problems field.ErrorList
}

// Error returns the problems in one line.
func (e *Error) Error() string {
	said := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		said[i] = strings.TrimPrefix(p.Error(), "<nil>: ")
	}
	return fmt.Sprintf("annotation %q: %s", e.Gate, strings.Join(said, "; "))
}

// Of returns the condition of the gate, by the annotations of its pod. If there is
// none, or Decode refuses it, the error is an *Error.
func Of(annotations map[string]string, gate string) (*Condition, error) {
	text, ok := annotations[gate]
	if !ok {
		return nil, &Error{Gate: gate, Problems: field.ErrorList{field.Required(nil, "the pod has no such annotation, which says when the gate opens")}}
	}
	c, found := Decode(text)
	if len(found) > 0 {
		return nil, &Error{Gate: gate, Problems: found}
	}
	return c, nil
}

// Decode reads and checks a condition. Decoding is strict: a field that does not
// exist or is written in another case, and a key that is there twice, are
// problems, as is a value of the wrong type or out of bounds. Each has the path
// of the field.
func Decode(text string) (*Condition, field.ErrorList) {
	c := &Condition{}
	strict, err := kjson.UnmarshalStrict([]byte(text), c)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(nil, text, fmt.Sprintf("is no condition: %v", err))}
	}
	var found field.ErrorList
	for _, err := range strict {
		var at *field.Path
		var wrong kjson.FieldError
		if errors.As(err, &wrong) {
			at = field.NewPath(wrong.FieldPath())
		}
		found = append(found, field.Forbidden(at, err.Error()))
	}
	if len(found) == 0 {
		found = c.Validate()
	}
	if len(found) > 0 {
		return nil, found
	}
	return c, nil
}
