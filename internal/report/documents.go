package report

import (
	"encoding/json"
	"fmt"
	"io"

	wholenumbers "k8s.io/apimachinery/pkg/util/json"
)

// documents writes a document for tools, with the owner's names where there are any.
func (o Options) documents(w io.Writer, format Format, kind string, fields map[string]any) error {
	if o.Names == nil {
		return documents(w, format, kind, fields)
	}
	data, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("encode %s: %w", kind, err)
	}
	var plain map[string]any
	if err := wholenumbers.Unmarshal(data, &plain); err != nil {
		return fmt.Errorf("encode %s: %w", kind, err)
	}
	for key, value := range plain {
		plain[key] = o.namedValue(value)
	}
	return documents(w, format, kind, plain)
}

// namedValue returns a plain JSON value with the owner's names in every string, and in
// the keys of maps.
func (o Options) namedValue(value any) any {
	switch v := value.(type) {
	case string:
		return o.named(v)
	case []any:
		for i := range v {
			v[i] = o.namedValue(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[o.named(key)] = o.namedValue(value)
		}
		return out
	}
	return value
}
