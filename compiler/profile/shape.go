package profile

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// shapes are the values that are not of the type that their field has. Upstream's
// decoder stops at the first one, and speaks of types of Go.
func (d document) shapes() []Problem {
	var s shapes
	s.look(d.root, reflect.TypeFor[configv1.KubeSchedulerConfiguration](), nil, nil)
	return s.found
}

type shapes struct{ found []Problem }

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// look compares a value with its type. path leads to it, and names are the fields on
// the way, as a message has them: those of arguments begin with the arguments.
func (s *shapes) look(n *yaml.Node, t reflect.Type, path, names []string) {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n == nil || n.Tag == "!!null" {
		return
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	is := func(want string, right bool) bool {
		if !right {
			s.bad(path, names, want)
		}
		return right
	}
	switch {
	case t == reflect.TypeFor[metav1.Duration]():
		is(`a time such as "5s"`, n.Tag == "!!str")
	case t == reflect.TypeFor[runtime.RawExtension]():
		is("a map", n.Kind == yaml.MappingNode)
	case reflect.PointerTo(t).Implements(unmarshaler): // it has forms of its own
	case t.Kind() == reflect.Struct:
		if is("a map", n.Kind == yaml.MappingNode) {
			s.fields(n, t, path, names)
		}
	case t.Kind() == reflect.Map:
		for i := 0; is("a map", n.Kind == yaml.MappingNode) && i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			s.look(n.Content[i+1], t.Elem(), below(path, key), below(names, key))
		}
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		if is("a list", n.Kind == yaml.SequenceNode) {
			for i, e := range n.Content {
				s.look(e, t.Elem(), below(path, strconv.Itoa(i)), names)
			}
		}
	case t.Kind() == reflect.String || t.Kind() == reflect.Slice:
		is("a string", n.Tag == "!!str")
	case t.Kind() == reflect.Bool:
		is("true or false", n.Tag == "!!bool")
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64:
		is("a whole number", n.Tag == "!!int")
	}
}

// fields looks at the fields of a struct. Those that it does not have the strict
// decoder finds.
func (s *shapes) fields(n *yaml.Node, t reflect.Type, path, names []string) {
	args := reflect.Type(nil)
	for i := 0; i+1 < len(n.Content); i += 2 {
		if t == reflect.TypeFor[configv1.PluginConfig]() && n.Content[i].Value == "name" {
			if o, err := scheme.Scheme.New(configv1.SchemeGroupVersion.WithKind(n.Content[i+1].Value + "Args")); err == nil {
				args = reflect.TypeOf(o)
			}
		}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i].Value
		for _, f := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case name != key || key == "":
			case key == "args" && args != nil && n.Content[i+1].Kind == yaml.MappingNode:
				s.look(n.Content[i+1], args, below(path, key), nil)
			default:
				s.look(n.Content[i+1], f.Type, below(path, key), below(names, key))
			}
		}
	}
}

func (s *shapes) bad(path, names []string, want string) {
	what := strconv.Quote(strings.Join(names, "."))
	switch {
	case len(path) == 0:
		what = "the document"
	case len(names) > 0 && path[len(path)-1] != names[len(names)-1]:
		what = "an entry of " + what
	}
	s.found = append(s.found, Problem{
		Rule: "scheduler/invalid", Severity: diag.Error, Path: path,
		Message: fmt.Sprintf("%s has a value of a wrong type; it must be %s", what, want),
	})
}
