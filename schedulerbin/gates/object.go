package gates

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/condition"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/fieldpath"
)

// mapperPeriod is how often the API server is asked anew for a kind that it did
// not serve.
const mapperPeriod = 30 * time.Second

// mapper finds the resources of kinds. Only the worker uses it.
type mapper struct {
	mapper meta.ResettableRESTMapper
	clock  clock.PassiveClock
	reset  time.Time
}

// find returns the resource of the kind, and whether its objects are in
// namespaces.
func (m *mapper) find(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	mapping, err := m.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) && m.clock.Since(m.reset) >= mapperPeriod {
		m.reset = m.clock.Now()
		m.mapper.Reset()
		mapping, err = m.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	if err != nil {
		return schema.GroupVersionResource{}, false, err
	}
	return mapping.Resource, mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

// object judges a condition about an object.
func (p *pass) object(ctx context.Context, want *condition.Object) verdict {
	v := verdict{reason: ReasonObject}
	resource, namespaced, err := p.mapper.find(want.GroupVersionKind())
	if err != nil {
		v.wake = p.now.Add(mapperPeriod)
		if meta.IsNoMatchError(err) {
			v.note = fmt.Sprintf("the API server does not serve %s %s", want.APIVersion, want.Kind)
			return v
		}
		v.reason, v.note = ReasonCannotRead, fmt.Sprintf("the API server does not say whether it serves %s %s: %v", want.APIVersion, want.Kind, err)
		return v
	}
	key := objectKey{resource: resource, name: want.Name}
	if namespaced {
		key.namespace = p.namespace
	}
	p.objects[key] = true
	object, known, err := p.watches.get(ctx, key, p.namespace)
	what := fmt.Sprintf("%s %q", want.Kind, want.Name)
	switch {
	case err != nil:
		v.reason, v.note = ReasonCannotRead, fmt.Sprintf("%s cannot be read: %v", what, err)
	case !known:
		v.note = fmt.Sprintf("%s is being read", what)
	case object == nil:
		v.note = fmt.Sprintf("%s does not exist", what)
	case want.Path == "":
		v.open, v.note = true, fmt.Sprintf("%s exists", what)
	default:
		v.open, v.note = hasValue(object, want)
		v.note = what + " " + v.note
	}
	return v
}

// hasValue reports whether the object has the value, and says what it has. A path
// that a stranger wrote must not end the scheduler, whatever it makes of reflection.
func hasValue(object *unstructured.Unstructured, want *condition.Object) (has bool, note string) {
	defer func() {
		if r := recover(); r != nil {
			has, note = false, fmt.Sprintf("has no value at %s: %v", want.Path, r)
		}
	}()
	path, err := fieldpath.Compile(want.Path)
	if err != nil {
		return false, fmt.Sprintf("has no value at %s: %v", want.Path, err)
	}
	results, err := path.FindResults(object.Object)
	if err != nil {
		return false, fmt.Sprintf("has no value at %s: %v", want.Path, err)
	}
	var found []reflect.Value
	for _, list := range results {
		for _, value := range list {
			if value.IsValid() && (value.Kind() != reflect.Interface || !value.IsNil()) {
				found = append(found, value)
			}
		}
	}
	if len(found) != 1 {
		return false, fmt.Sprintf("has %d values at %s, and must have one", len(found), want.Path)
	}
	var text bytes.Buffer
	if err := path.PrintResults(&text, found); err != nil {
		return false, fmt.Sprintf("has a value at %s that has no text: %v", want.Path, err)
	}
	if want.Value == nil {
		return true, fmt.Sprintf("has a value at %s", want.Path)
	}
	// What it has is not said: who may create pods may not be one who may read the
	// object.
	if text.String() != *want.Value {
		return false, fmt.Sprintf("has another value than %q at %s", *want.Value, want.Path)
	}
	return true, fmt.Sprintf("has %q at %s", *want.Value, want.Path)
}
