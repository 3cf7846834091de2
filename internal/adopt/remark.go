package adopt

import (
	"cmp"
	"slices"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// remarks joins what is said of several workloads in the same words.
type remarks map[[3]string]*Remark

func (r remarks) add(t *template, field, value, why string, at diag.Range) {
	key := [3]string{field, value, why}
	if r[key] == nil {
		r[key] = &Remark{Field: field, Value: value, Why: why, At: at}
	}
	r[key].Workloads = append(r[key].Workloads, t.ref())
}

func (r remarks) sorted() []Remark {
	var out []Remark
	for _, m := range r {
		out = append(out, *m)
	}
	slices.SortFunc(out, func(a, b Remark) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Why, b.Why), cmp.Compare(a.Value, b.Value))
	})
	return out
}
