package anonymize

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Of plain values, the keys say what is below them. What no key is known for is
// replaced.
var (
	keptFields = []string{
		"apiVersion", "kind", "group", "operator", "effect", "phase", "type", "status", "reason", "whenUnsatisfiable",
		"nodeAffinityPolicy", "nodeTaintsPolicy", "preemptionPolicy", "restartPolicy", "strategy", "completionMode",
		"timestamp", "window", "creationTimestamp", "deletionTimestamp", "lastTransitionTime", "scheduleStartTime",
		// of a scheduler's configuration
		"defaultingType", "prefer", "unit", "mode", "onPartial", "resourceLock", "timeZone", "schedule", "start", "duration", "days",
		"path", "value", "notBefore", "notAfter",
	}
	labelFields    = []string{"labels", "matchLabels", "nodeSelector"}
	resourceFields = []string{"requests", "limits", "min", "max", "used", "usage", "minResources", "resources", "capacity", "allocatable", "overhead"}
	keyFields      = []string{"key", "topologyKey", "matchLabelKeys", "mismatchLabelKeys", "datasetKeys", "warmKeys", "drainedKeys"}
	quotaFields    = []string{"wholeDeviceResources", "ignoredResources", "ignoredResourceGroups"}
)

// plainValue returns what stands for a plain value that is below the key.
func (n *Names) plainValue(key string, value any) any {
	switch value := value.(type) {
	case map[string]any:
		return n.plainMap(key, value)
	case []any:
		out := make([]any, len(value))
		for i, e := range value {
			out[i] = n.plainValue(key, e)
		}
		return out
	case string:
		return n.plainString(key, value)
	}
	return value
}

func (n *Names) plainString(key, value string) string {
	switch {
	case slices.Contains(keptFields, key) || amount(value):
		return value
	case slices.Contains(keyFields, key):
		return n.labelKey(value)
	case slices.Contains(quotaFields, key):
		return n.resource(value)
	case key == "image":
		return n.image(value, true)
	case key == "uid":
		return string(n.uid(types.UID(value)))
	}
	return n.name(value)
}

func (n *Names) plainMap(key string, m map[string]any) map[string]any {
	switch {
	case slices.Contains(labelFields, key) || key == "selector" && m["matchLabels"] == nil && m["matchExpressions"] == nil:
		out := map[string]any{}
		for k, v := range m {
			if s, ok := v.(string); ok {
				v = n.value(k, s)
			}
			out[n.labelKey(k)] = v
		}
		return out
	case key == "annotations":
		text := map[string]string{}
		for k, v := range m {
			if s, ok := v.(string); ok {
				text[k] = s
			}
		}
		out := map[string]any{}
		for k, v := range n.annotations(text) {
			out[k] = v
		}
		return out
	case slices.Contains(resourceFields, key) && scalars(m):
		out := map[string]any{}
		for k, v := range m {
			out[n.resource(k)] = v
		}
		return out
	case m["containers"] != nil:
		if out, ok := n.plainTyped(m, &corev1.PodSpec{}); ok {
			return out
		}
	case key == "metadata":
		if out, ok := n.plainTyped(m, &metav1.ObjectMeta{}); ok {
			return out
		}
	}
	if out, ok := n.plainRequirement(m); ok {
		return out
	}
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = n.plainValue(k, v)
	}
	return out
}

func scalars(m map[string]any) bool {
	for _, v := range m {
		switch v.(type) {
		case map[string]any, []any:
			return false
		}
	}
	return true
}

// plainTyped replaces a value by way of the API's type for it; false where it has
// none of that form.
func (n *Names) plainTyped(m map[string]any, into any) (map[string]any, bool) {
	data, err := json.Marshal(m)
	if err != nil || json.Unmarshal(data, into) != nil {
		return nil, false
	}
	n.typed(reflect.ValueOf(into).Elem())
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(into)
	return out, err == nil
}

// plainRequirement replaces what has a key with one value or several: a requirement,
// a taint, a toleration.
func (n *Names) plainRequirement(m map[string]any) (map[string]any, bool) {
	key, ok := m["key"].(string)
	if !ok {
		return nil, false
	}
	out := make(map[string]any, len(m))
	for k, v := range m {
		switch v := v.(type) {
		case string:
			switch k {
			case "key":
				out[k] = n.labelKey(v)
			case "value":
				out[k] = n.value(key, v)
			default:
				out[k] = n.plainString(k, v)
			}
			continue
		case []any:
			if k == "values" {
				values := make([]any, len(v))
				for i, e := range v {
					values[i] = e
					if s, ok := e.(string); ok {
						values[i] = n.value(key, s)
					}
				}
				out[k] = values
				continue
			}
		}
		out[k] = n.plainValue(k, v)
	}
	return out, true
}

// json replaces what is in a JSON object; what is none is replaced as a whole.
func (n *Names) json(text string) string {
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return n.word(text)
	}
	data, err := json.Marshal(n.plainMap("", m))
	if err != nil {
		return n.word(text)
	}
	return string(data)
}

// configuration replaces what is in a scheduler's configuration, in which plugins
// are named.
func (n *Names) configuration(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for k, v := range value {
			s, isString := v.(string)
			switch {
			case k == "name" && isString && !strings.Contains(s, "/"):
				out[k] = s
			case k == "name" && isString:
				out[k] = n.resource(s)
			case k == "addedAffinity", k == "labelSelector", k == "freeLabels", isString, scalarList(v):
				out[k] = n.plainValue(k, v)
			default:
				out[k] = n.configuration(v)
			}
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, e := range value {
			out[i] = n.configuration(e)
		}
		return out
	}
	return value
}

// scalarList reports whether a value is a list of no maps.
func scalarList(v any) bool {
	list, ok := v.([]any)
	return ok && !slices.ContainsFunc(list, func(e any) bool { _, isMap := e.(map[string]any); return isMap })
}
