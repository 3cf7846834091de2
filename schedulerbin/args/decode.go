package args

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// APIVersion is the one apiVersion that arguments may state; their kind, if
// stated, is the plugin's name with "Args". Both may be left out.
const APIVersion = "kubescheduler.config.k8s.io/v1"

// Decode reads the arguments of the plugin from JSON or YAML, gives what is left
// out, or null, its default, and checks the values. No text at all, and null, mean the
// defaults.
//
// Decoding is strict: a field that does not exist or is written in another case,
// a key that is there twice, a second document, and a value of the wrong type or
// out of bounds are errors. They are an *Error, with the path of each field that
// is wrong and what it may be; other errors are for a plugin that is not ours and
// for text that is neither JSON nor YAML.
func Decode(plugin string, raw []byte) (Args, error) {
	a, err := empty(plugin)
	if err != nil {
		return nil, err
	}
	document, err := toJSON(raw)
	if err != nil {
		return nil, fmt.Errorf("arguments of plugin %q: %w", plugin, err)
	}
	a.setDefaults()
	found := decode(nil, document, reflect.ValueOf(a).Elem())
	if len(found) == 0 {
		found = a.validate()
	}
	if len(found) > 0 {
		return nil, &Error{Plugin: plugin, Problems: found}
	}
	return a, nil
}

// FromObject decodes what the scheduler hands to a plugin's factory: nil where
// the configuration has no arguments for it, and *runtime.Unknown where it has.
// Encode makes such an object of typed arguments.
func FromObject[T Args](plugin string, object runtime.Object) (T, error) {
	var zero T
	var raw []byte
	switch o := object.(type) {
	case nil:
	case *runtime.Unknown:
		raw = o.Raw
	default:
		return zero, fmt.Errorf("arguments of plugin %q are a %T; they must come from a KubeSchedulerConfiguration (*runtime.Unknown)", plugin, object)
	}
	a, err := Decode(plugin, raw)
	if err != nil {
		return zero, err
	}
	typed, ok := a.(T)
	if !ok {
		return zero, fmt.Errorf("plugin %q has arguments of type %T, not %T", plugin, a, zero)
	}
	return typed, nil
}

// Encode returns the arguments as JSON, for a configuration or for FromObject.
func Encode(a Args) (*runtime.Unknown, error) {
	raw, err := json.Marshal(a)
	if err != nil {
		return nil, fmt.Errorf("arguments of plugin %q: %w", a.PluginName(), err)
	}
	return &runtime.Unknown{Raw: raw, ContentType: runtime.ContentTypeJSON}, nil
}

// toJSON returns the one document of raw as JSON. Keys that are there twice are
// found here for YAML, and by decode for JSON.
func toJSON(raw []byte) ([]byte, error) {
	if json.Valid(raw) {
		return raw, nil
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
	var only []byte
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("neither JSON nor YAML: %w", err)
		}
		converted, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return nil, fmt.Errorf("neither JSON nor YAML: %w", err)
		}
		if string(converted) == "null" {
			continue
		}
		if only != nil {
			return nil, errors.New("there are two YAML documents; give one")
		}
		only = converted
	}
	if only == nil {
		return []byte("null"), nil
	}
	return only, nil
}

// unmarshaler is what has its own text form, and is a leaf for decode.
var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// decode reads raw into the settable value, and returns every mistake with its
// path. It walks structs and lists itself, so that the error of a leaf, which
// knows no path, gets one.
func decode(path *field.Path, raw []byte, into reflect.Value) problems {
	if string(bytes.TrimSpace(raw)) == "null" {
		return nil
	}
	if !reflect.PointerTo(into.Type()).Implements(unmarshaler) {
		switch into.Kind() {
		case reflect.Struct:
			return decodeStruct(path, raw, into)
		case reflect.Slice:
			return decodeList(path, raw, into)
		default: // a leaf
		}
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, into.Addr().Interface()); err != nil {
		return problems{invalid(path, text(raw), "is wrong here; it must be "+form(into))}
	}
	return nil
}

// decodeStruct reads an object, every key of which must be a field.
func decodeStruct(path *field.Path, raw []byte, into reflect.Value) problems {
	var members map[string]json.RawMessage
	twice, err := kjson.UnmarshalStrict(raw, &members, kjson.DisallowDuplicateFields)
	if err != nil {
		return problems{invalid(path, text(raw), "is wrong here; it must be an object")}
	}
	var found problems
	for _, err := range twice {
		var at kjson.FieldError
		if errors.As(err, &at) {
			found = append(found, field.Forbidden(path.Child(at.FieldPath()), "the key is there twice; keep one"))
		}
	}
	known := map[string]reflect.Value{}
	fields(into, known)
	names := without(slices.Sorted(maps.Keys(known)), "apiVersion", "kind")
	for _, key := range slices.Sorted(maps.Keys(members)) {
		if _, ok := known[key]; !ok {
			found = append(found, unknownField(path, key, names))
			continue
		}
		found = append(found, decode(path.Child(key), members[key], known[key])...)
	}
	return found
}

// decodeList reads a list, element by element.
func decodeList(path *field.Path, raw []byte, into reflect.Value) problems {
	var elements []json.RawMessage
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &elements); err != nil {
		return problems{invalid(path, text(raw), "is wrong here; it must be a list")}
	}
	var found problems
	into.Set(reflect.MakeSlice(into.Type(), len(elements), len(elements)))
	for i, element := range elements {
		found = append(found, decode(path.Index(i), element, into.Index(i))...)
	}
	return found
}

// fields collects the fields of the struct by their JSON names, with those of
// embedded structs.
func fields(of reflect.Value, into map[string]reflect.Value) {
	for i := range of.NumField() {
		f := of.Type().Field(i)
		if f.Anonymous {
			fields(of.Field(i), into)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		into[name] = of.Field(i)
	}
}

// without returns the words that are none of the others.
func without(words []string, others ...string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(w string) bool { return slices.Contains(others, w) })
}

// text is raw as the user wrote it, without the quotes of a string.
func text(raw []byte) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(bytes.TrimSpace(raw))
}

// form says how a value of the type is written.
func form(v reflect.Value) string {
	switch v.Type().String() {
	case "v1.Duration":
		return `a duration such as "90s" or "5m"`
	case "resource.Quantity":
		return `a quantity such as "12Gi"`
	}
	switch v.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.String:
		return "a string"
	default:
		return "a " + v.Kind().String()
	}
}
