// Package objectyaml writes objects of the API as YAML, whatever characters are in them.
//
// It must not know what is written, nor where to.
package objectyaml

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"go.yaml.in/yaml/v2"
)

// Marshal returns a value that has a form in JSON as YAML. It is what sigs.k8s.io/yaml
// writes, but that one reads the JSON as YAML, in which a key of over 1024 characters, DEL,
// the C1 controls and code points that are no characters cannot stand as they are (YAML
// 1.2, 5.1 and 7.4.2): annotations and variables of pods may hold them.
func Marshal(v any) ([]byte, error) {
	if !plain(v) {
		data, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		if v, err = decode(data); err != nil {
			return nil, err
		}
	}
	return yaml.Marshal(v)
}

// FromJSON returns JSON as YAML, as Marshal does.
func FromJSON(data []byte) ([]byte, error) {
	v, err := decode(data)
	if err != nil {
		return nil, err
	}
	return yaml.Marshal(v)
}

// plain reports whether the value is what decode returns, as nearly all objects are:
// that saves a way by JSON.
func plain(v any) bool {
	switch v := v.(type) {
	case nil, bool, string, int64:
		return true
	case map[string]any:
		for _, e := range v {
			if !plain(e) {
				return false
			}
		}
		return v != nil
	case []any:
		for _, e := range v {
			if !plain(e) {
				return false
			}
		}
		return v != nil
	}
	return false
}

// decode reads JSON into plain values; numbers are whole where they can be. Those of
// k8s.io/apimachinery/pkg/util/json are not above the greatest int64, as an object may
// have them and YAML can write them.
func decode(data []byte) (v any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON value")
	}
	return numbered(v)
}

// numbered puts numbers in place of their texts.
func numbered(v any) (_ any, err error) {
	switch v := v.(type) {
	case json.Number:
		return number(string(v))
	case map[string]any:
		for k, e := range v {
			if v[k], err = numbered(e); err != nil {
				return nil, err
			}
		}
	case []any:
		for i, e := range v {
			if v[i], err = numbered(e); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

func number(text string) (any, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return n, nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("the number %s: %w", text, err)
	}
	return n, nil
}
