package recording_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/recording"
)

func TestRead(t *testing.T) {
	t.Parallel()
	stop := errors.New("stop")
	for name, test := range map[string]struct {
		text    string
		numbers []int64
		problem string
	}{
		"nothing":       {"", nil, ""},
		"two lines":     {`{"cycle":1}` + "\n" + `{"cycle":3}` + "\n", []int64{1, 3}, ""},
		"a torn end":    {`{"cycle":1}` + "\n" + `{"cycle":3,"ha`, []int64{1}, ""},
		"a wrong line":  {`{"cycle":1}` + "\n" + `{"cycle":"x"}` + "\n", []int64{1}, "line 2"},
		"unknown field": {`{"cykle":1}` + "\n", nil, "line 1"},
		"a reader ends": {`{"cycle":9}` + "\n" + `{"cycle":10}` + "\n", []int64{9}, "stop"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var numbers []int64
			err := recording.Read(strings.NewReader(test.text), func(c recording.Cycle) error {
				numbers = append(numbers, c.Number)
				if c.Number == 9 {
					return stop
				}
				return nil
			})
			if test.problem == "" && err != nil || test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem)) {
				t.Errorf("got error %v, want one with %q", err, test.problem)
			}
			if diff := cmp.Diff(test.numbers, numbers); diff != "" {
				t.Error(diff)
			}
		})
	}
}
