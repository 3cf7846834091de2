package args

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateType refuses arguments that say they are another plugin's.
func validateType(t metav1.TypeMeta, plugin string) problems {
	var found problems
	if t.APIVersion != "" && t.APIVersion != APIVersion {
		found = append(found, invalid(field.NewPath("apiVersion"), t.APIVersion, fmt.Sprintf("is not known; write %q or leave it out", APIVersion)))
	}
	if want := plugin + "Args"; t.Kind != "" && t.Kind != want {
		found = append(found, invalid(field.NewPath("kind"), t.Kind, fmt.Sprintf("is another kind of arguments; write %q or leave it out", want)))
	}
	return found
}

// oneOf refuses a value that is none of the allowed.
func oneOf[T ~string](path *field.Path, value T, allowed ...T) problems {
	if slices.Contains(allowed, value) {
		return nil
	}
	words := make([]string, len(allowed))
	for i, a := range allowed {
		words[i] = string(a)
	}
	detail := "is not allowed; use one of " + quoted(words)
	if near, ok := nearest(string(value), words); ok {
		detail = fmt.Sprintf("is not allowed; did you mean %q? (one of %s)", near, quoted(words))
	}
	return problems{invalid(path, string(value), detail)}
}

// within refuses a number that is out of bounds.
func within(path *field.Path, value, low, high int64) problems {
	if low <= value && value <= high {
		return nil
	}
	return problems{invalid(path, value, fmt.Sprintf("is out of bounds; use %d to %d", low, high))}
}

// keyList refuses keys that no label or annotation can have, and repeated ones.
func keyList(path *field.Path, keys []string) problems {
	var found problems
	for i, key := range keys {
		found = append(found, labelKey(path.Index(i), key)...)
		if slices.Index(keys, key) < i {
			found = append(found, invalid(path.Index(i), key, "is there twice; keep one"))
		}
	}
	return found
}

// labelKey refuses what is not a qualified name, which the keys of labels and
// annotations are.
func labelKey(path *field.Path, key string) problems {
	if said := validation.IsQualifiedName(key); len(said) > 0 {
		return problems{invalid(path, key, "cannot be the key of a label or annotation: "+strings.Join(said, "; "))}
	}
	return nil
}
