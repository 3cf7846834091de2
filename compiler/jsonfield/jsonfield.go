// Package jsonfield names the JSON fields of Go types, to say what was most likely
// meant by one that does not exist. It must not know any type in particular.
package jsonfield

import (
	"reflect"
	"strings"
)

// Names returns the JSON names of the fields of the struct below the path, those of
// embedded structs included; nil if the path leads elsewhere. A step into a list
// or a map is any string.
func Names(t reflect.Type, path []string) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice && len(path) == 0 {
		t = t.Elem()
	}
	if len(path) > 0 && (t.Kind() == reflect.Slice || t.Kind() == reflect.Map) {
		return Names(t.Elem(), path[1:])
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if len(path) > 0 && name == path[0] {
			return Names(f.Type, path[1:])
		}
		if name != "" && name != "-" {
			names = append(names, name)
		}
	}
	if len(path) > 0 {
		return nil
	}
	return names
}
