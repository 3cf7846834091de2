package load

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	cueerrors "cuelang.org/go/cue/errors"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// param is one value that a folder sets for those above it.
type param struct {
	path  []string
	value []byte // JSON
	at    diag.Range
}

// sharedParams returns what folders set in params for the folders above them,
// by the directory of the topmost: the text of a CUE file to add there. A
// parameter holds for every folder that sees it, so all of them are collected
// before any policy is evaluated.
func sharedParams(ctx context.Context, set *folderSet) (map[string][]byte, diag.Findings) {
	var findings diag.Findings
	byTop := map[string][]param{}
	for _, f := range set.folders {
		if ctx.Err() != nil || len(f.above) == 0 {
			continue
		}
		own := newIndex(f.files)
		if own.root.children["params"] == nil {
			continue
		}
		top := f.top().dir
		params, fs := set.paramsOf(f, own)
		findings = append(findings, fs...)
		for _, p := range params {
			same := func(q param) bool { return slices.Equal(p.path, q.path) }
			i := slices.IndexFunc(byTop[top], same)
			switch {
			case i < 0:
				byTop[top] = append(byTop[top], p)
			case !bytes.Equal(byTop[top][i].value, p.value):
				other := byTop[top][i]
				findings = append(findings, diag.Finding{
					Rule: "policy/params", Severity: diag.Error, Range: p.at,
					Message: fmt.Sprintf("%q is set to %s here and to %s in another folder; a parameter has one value for all folders that see it",
						dotted(p.path), p.value, other.value),
					Related: []diag.Related{{Range: other.at, Message: "the other value"}},
				})
			}
		}
	}
	files := map[string][]byte{}
	for _, f := range set.folders {
		ps := byTop[f.dir]
		if len(ps) == 0 {
			continue
		}
		var b bytes.Buffer
		fmt.Fprintf(&b, "package %s\n", f.pkg)
		for _, p := range ps {
			quoted := make([]string, len(p.path))
			for i, label := range p.path {
				quoted[i] = strconv.Quote(label)
			}
			fmt.Fprintf(&b, "%s: %s\n", strings.Join(quoted, ": "), p.value)
		}
		files[f.dir] = b.Bytes()
	}
	return files, findings
}

// top returns the topmost folder whose files the package absorbs, or f.
func (f *folder) top() *folder {
	if len(f.above) > 0 {
		return f.above[0]
	}
	return f
}

// paramsOf returns the params that a folder's own files give a value.
func (set *folderSet) paramsOf(f *folder, own *index) (params []param, findings diag.Findings) {
	inst, err := set.load(f, false)
	if err != nil || inst.Err != nil {
		return nil, nil // said when the folder is evaluated
	}
	var visit func(path []string, v cue.Value)
	visit = func(path []string, v cue.Value) {
		nodes := own.find(path...)
		if len(nodes) == 0 {
			return
		}
		if v.IncompleteKind() == cue.StructKind {
			fields, err := v.Fields()
			for err == nil && fields.Next() {
				visit(append(slices.Clip(path), label(fields.Selector())), fields.Value())
			}
			return
		}
		if slices.ContainsFunc(declared(nodes), func(p place) bool { return isStruct(p.value) }) {
			for _, name := range slices.Sorted(maps.Keys(nodes[0].children)) { // one of them is wrong
				visit(append(slices.Clip(path), name), v.LookupPath(cue.MakePath(cue.Str(name))))
			}
			return
		}
		p, ok := firstPlace(nodes)
		if !ok || p.pattern {
			return
		}
		data, err := v.MarshalJSON()
		if err == nil {
			params = append(params, param{path: path, value: data, at: set.rangeOf(p.label)})
			return
		}
		if reason := v.Validate(cue.Concrete(true)); reason != nil {
			err = reason
		}
		errs := cueerrors.Errors(err)
		findings = append(findings, diag.Finding{
			Rule: "policy/params", Severity: diag.Error, Range: set.rangeOf(p.label),
			Message: fmt.Sprintf("%q does not fit what the folder above allows: %s", dotted(path), cueText(errs[len(errs)-1])),
		})
	}
	v := cuecontext.New().BuildInstance(inst)
	visit([]string{"params"}, v.LookupPath(cue.MakePath(cue.Str("params"))))
	return params, findings
}
