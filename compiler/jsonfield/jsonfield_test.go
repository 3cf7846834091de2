package jsonfield_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-sched/kubectl-sched/compiler/jsonfield"
)

type inner struct {
	Name string `json:"name,omitempty"`
	Skip string `json:"-"`
}

type base struct {
	Kind string `json:"kind"`
}

type outer struct {
	base
	List []inner          `json:"list"`
	Map  map[string]inner `json:"map"`
	Ptr  *inner           `json:"ptr"`
	Text string           `json:"text"`
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		path []string
		want []string
	}{
		{nil, []string{"kind", "list", "map", "ptr", "text"}},
		{[]string{"list", "0"}, []string{"name"}},
		{[]string{"map", "any"}, []string{"name"}},
		{[]string{"ptr"}, []string{"name"}},
		{[]string{"text"}, nil},
		{[]string{"none"}, nil},
		{[]string{"ptr", "none"}, nil},
	} {
		if diff := cmp.Diff(test.want, jsonfield.Names(reflect.TypeFor[outer](), test.path)); diff != "" {
			t.Errorf("%v (-want +got)\n%s", test.path, diff)
		}
	}
}
