package ownership

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/internal/workload/plain"
)

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// A format is one way in which the annotation can be written.
type format struct {
	name   string
	encode func(*Record) (string, error)
}

// formats are those that Parse reads.
var formats = []format{{"full", encodeFull}, {"sums", (*Record).Encode}}

// encodeFull writes the first version of the annotation, as it was once written.
func encodeFull(r *Record) (string, error) {
	text, err := json.Marshal(struct {
		Version int `json:"v"`
		*Record
	}{fullVersion, r})
	return string(text), err
}

// written returns the object after us, annotation included, and the record that
// is read from it.
func written(t fataler, f format, base map[string]any, writes []Write) (map[string]any, *Record) {
	r := Build(base, writes)
	if r == nil {
		return base, nil
	}
	text, err := f.encode(r)
	if err != nil {
		t.Fatalf("%v", err)
	}
	again, err := Parse(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return Apply(base, writes, text), again
}

type fataler interface{ Fatalf(string, ...any) }

func TestWithdraw(t *testing.T) {
	t.Parallel()
	const tol, aff = "/spec/tolerations", "/spec/affinity/nodeAffinity/required"
	for _, c := range []struct {
		name, base, after string
		writes            []Write
		// now is what others made of after; want what is left without us.
		now, want string
		edited    []string
	}{
		{
			name: "untouched", base: `{"spec":{"a":1}}`,
			writes: []Write{{Path: tol, After: []any{"x"}}, {Path: aff, After: map[string]any{"terms": []any{}}}},
			want:   `{"spec":{"a":1}}`,
		},
		{
			name: "parents that were there stay", base: `{"metadata":{"annotations":{}},"spec":{"affinity":{"nodeAffinity":{}},"tolerations":[]}}`,
			writes: []Write{{Path: tol, Before: []any{}, After: []any{"x"}}, {Path: aff, After: map[string]any{"terms": []any{}}}},
			want:   `{"metadata":{"annotations":{}},"spec":{"affinity":{"nodeAffinity":{}},"tolerations":[]}}`,
		},
		{
			name: "null is put back", base: `{"metadata":null,"spec":{"affinity":null,"tolerations":null}}`,
			writes: []Write{{Path: tol, After: []any{"x"}}, {Path: aff, After: map[string]any{"terms": []any{}}}},
			want:   `{"metadata":null,"spec":{"affinity":null,"tolerations":null}}`,
		},
		{
			name: "others appended to our list", base: `{"spec":{"tolerations":["a"]}}`,
			writes: []Write{{Path: tol, Before: []any{"a"}, After: []any{"a", "x"}}},
			now:    `{"spec":{"tolerations":["new","a","x","b"]}}`,
			want:   `{"spec":{"tolerations":["new","a","b"]}}`,
		},
		{
			name: "others replaced the value of a scalar", base: `{"spec":{"p":"low"}}`,
			writes: []Write{{Path: "/spec/p", Before: "low", After: "high"}},
			now:    `{"spec":{"p":"highest"}}`,
			want:   `{"spec":{"p":"highest"}}`, edited: []string{"/spec/p"},
		},
		{
			name: "others took our field away", base: `{"spec":{"a":1}}`,
			writes: []Write{{Path: aff, After: "x"}},
			now:    `{"spec":{"a":1,"affinity":{"nodeAffinity":{}}}}`,
			want:   `{"spec":{"a":1}}`,
		},
		{
			name: "an element that ours replaced comes back in its place", base: `{"spec":{"tolerations":["a","b","c"]}}`,
			writes: []Write{{Path: tol, Before: []any{"a", "b", "c"}, After: []any{"a", "B", "c", "x"}}},
			now:    `{"spec":{"tolerations":["a","B","c","x","d"]}}`,
			want:   `{"spec":{"tolerations":["a","b","c","d"]}}`,
		},
		{
			name: "an edited element of ours is theirs", base: `{"spec":{"tolerations":["a","b","c"]}}`,
			writes: []Write{{Path: tol, Before: []any{"a", "b", "c"}, After: []any{"a", "B", "c"}}},
			now:    `{"spec":{"tolerations":["a","B2","c"]}}`,
			want:   `{"spec":{"tolerations":["a","B2","c"]}}`, edited: []string{tol},
		},
		{
			name: "the last of our list goes with its list", base: `{"spec":{}}`,
			writes: []Write{{Path: tol, After: []any{"x", "y"}}},
			now:    `{"spec":{"tolerations":["y"]}}`,
			want:   `{"spec":{}}`,
		},
		{
			name: "a field that we took away", base: `{"spec":{"p":"low","q":1}}`,
			writes: []Write{{Path: "/spec/p", Before: "low"}},
			want:   `{"spec":{"p":"low","q":1}}`,
		},
		{
			name: "ours and theirs are the same element", base: `{"spec":{"tolerations":["a"]}}`,
			writes: []Write{{Path: tol, Before: []any{"a"}, After: []any{"a", "x", "x"}}},
			now:    `{"spec":{"tolerations":["x","a","x","x"]}}`,
			want:   `{"spec":{"tolerations":["a","x"]}}`,
		},
		{
			name: "an empty list from before stays a list", base: `{"spec":{"tolerations":[]}}`,
			writes: []Write{{Path: tol, Before: []any{}, After: []any{"x", "y"}}},
			now:    `{"spec":{"tolerations":["y"]}}`,
			want:   `{"spec":{"tolerations":[]}}`,
		},
		{
			name: "numbers are the same as whole numbers and with a fraction", base: `{"spec":{}}`,
			writes: []Write{{Path: tol, After: []any{map[string]any{"s": int64(300)}}}},
			now:    `{"spec":{"tolerations":[{"s":300.0},"b"]}}`,
			want:   `{"spec":{"tolerations":["b"]}}`,
		},
		{
			name: "a list made a map is theirs", base: `{"spec":{}}`,
			writes: []Write{{Path: tol, After: []any{"x"}}},
			now:    `{"spec":{"tolerations":{"x":1}}}`,
			want:   `{"spec":{"tolerations":{"x":1}}}`, edited: []string{tol},
		},
		{
			name: "a sibling of others keeps our parents", base: `{"spec":{}}`,
			writes: []Write{{Path: aff, After: "x"}},
			now:    `{"spec":{"affinity":{"nodeAffinity":{"required":"x"},"podAffinity":{"y":1}}}}`,
			want:   `{"spec":{"affinity":{"podAffinity":{"y":1}}}}`,
		},
		{
			name: "keys with slashes, list indices", base: `{"spec":{"groups":[{"sel":{"a/b~c":"1"}},{}]}}`,
			writes: []Write{{Path: Pointer("spec", "groups", 0, "sel", "a/b~c"), Before: "1", After: "2"}, {Path: Pointer("spec", "groups", 1, "t"), After: []any{"x"}}},
			want:   `{"spec":{"groups":[{"sel":{"a/b~c":"1"}},{}]}}`,
		},
	} {
		for _, f := range formats {
			t.Run(c.name+" "+f.name, func(t *testing.T) {
				t.Parallel()
				now, record := written(t, f, object(t, c.base), c.writes)
				if c.now != "" {
					meta := now["metadata"]
					now = object(t, c.now)
					now["metadata"] = meta
				}
				got, edited := Withdraw(now, record)
				if diff := cmp.Diff(object(t, c.want), got); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				var paths []string
				for _, e := range edited {
					paths = append(paths, e.Path)
				}
				if diff := cmp.Diff(c.edited, paths); diff != "" {
					t.Errorf("edited: %s", diff)
				}
			})
		}
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                                 "damaged: unexpected end of JSON input",
		`{"v":3,"fields":[]}`:              "has version 3, and this kubectl-sched knows versions up to 2",
		`{"v":1,"fields":[],"x":1}`:        `unknown field "x"`,
		`{"v":1,"fields":[{"path":"a"}]}`:  `"a" is no path of a field`,
		`{"v":1,"fields":[{"path":"/a"}]}`: "says neither what was there nor what was written",
		`{"v":1,"fields":[]} {}`:           "invalid character",
		`{"v":1,"fields":[{"path":"/a","wrote":1,"made":3}]}`:                  "cannot have 3 parents",
		`{"v":1,"fields":[{"path":"/a","wrote":1},{"path":"/a","wrote":2}]}`:   "the field /a is there twice",
		`{"v":2,"fields":[{"path":"/a"}]}`:                                     `unknown field "path"`,
		`{"v":2,"fields":[{"at":"/a","wrote":1}]}`:                             `unknown field "wrote"`,
		`{"v":2,"fields":[{"at":"/a"}]}`:                                       "says neither what was there nor what was written",
		`{"v":2,"fields":[{"at":"/a","is":"short"}]}`:                          `"short" is not a sum of 8 characters`,
		`{"v":2,"fields":[{"at":"/a","is":["aaaaaaaa",1]}]}`:                   "cannot unmarshal number",
		`{"v":2,"in":"/x","fields":[{"at":"/a","is":[]},{"at":"/a","is":[]}]}`: "the field /x/a is there twice",
		`{"v":2,"in":"x","fields":[{"at":"/a","is":[]}]}`:                      `"x/a" is no path of a field`,
	} {
		_, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func randomElements(t *rapid.T, label string) []any {
	var out []any
	for range rapid.IntRange(0, 4).Draw(t, label+" length") {
		out = append(out, map[string]any{"key": rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, label), "n": int64(rapid.IntRange(0, 1).Draw(t, label))})
	}
	return out
}

// randomField draws the value of a field, nil for none.
func randomField(t *rapid.T, label string) any {
	switch rapid.IntRange(0, 3).Draw(t, label+" kind") {
	case 0:
		return nil
	case 1:
		return rapid.SampledFrom([]string{"x", "y"}).Draw(t, label)
	}
	if l := randomElements(t, label); l != nil {
		return l
	}
	return []any{}
}

func randomWrites(t *rapid.T) (map[string]any, []Write) {
	var base any = map[string]any{"spec": map[string]any{}}
	if rapid.Bool().Draw(t, "metadata") {
		base = with(base, []string{"metadata", "annotations"}, map[string]any{"other": "1"})
	}
	if rapid.Bool().Draw(t, "null") {
		base = with(base, []string{"spec", "d"}, nil)
	}
	var writes []Write
	for _, p := range []string{"/spec/a", "/spec/b/c", "/spec/d/e/f", "/spec/d/e/g", "/spec/b/h"} {
		w := Write{Path: p, Before: randomField(t, p+" before"), After: randomField(t, p+" after")}
		if w.Before != nil {
			base = with(base, Tokens(p), w.Before)
		}
		writes = append(writes, w)
	}
	return base.(map[string]any), writes
}

func TestWithdrawRestores(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		base, writes := randomWrites(t)
		now, record := written(t, rapid.SampledFrom(formats).Draw(t, "format"), base, writes)
		got, edited := Withdraw(now, record)
		if diff := cmp.Diff(base, got); diff != "" || len(edited) > 0 {
			t.Fatalf("%v (-want +got)\n%s", edited, diff)
		}
		if record == nil {
			return
		}
		a, _ := record.Encode()
		again, err := Parse(a)
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := again.Encode(); a != b {
			t.Fatalf("%s\n%s", a, b)
		}
	})
}

func TestWithdrawKeepsOthers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		base, writes := randomWrites(t)
		now, record := written(t, rapid.SampledFrom(formats).Draw(t, "format"), base, writes)
		if record == nil {
			return
		}
		v, theirs := addedByOthers(t, now, writes)
		got, _ := Withdraw(v, record)
		text, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range theirs {
			if !strings.Contains(string(text), `"`+name+`"`) {
				t.Fatalf("%s is lost: %s", name, text)
			}
		}
	})
}

// addedByOthers returns the object after others have inserted elements of their
// own, and set keys beside ours, and how they named what they added.
func addedByOthers(t *rapid.T, object map[string]any, writes []Write) (map[string]any, []string) {
	var v any = object
	var theirs []string
	for i, w := range writes {
		tokens := Tokens(w.Path)
		list, ok := lookup(v, tokens)
		if l, isList := list.([]any); ok && isList && rapid.Bool().Draw(t, "insert") {
			at := rapid.IntRange(0, len(l)).Draw(t, "at")
			name := fmt.Sprintf("theirs%d", i)
			v = with(v, tokens, slices.Insert(slices.Clone(l), at, any(name)))
			theirs = append(theirs, name)
		}
		if _, isMap := lookup(v, tokens[:len(tokens)-1]); isMap && rapid.Bool().Draw(t, "beside") {
			name := fmt.Sprintf("beside%d", i)
			v = with(v, append(slices.Clone(tokens[:len(tokens)-1]), name), name)
			theirs = append(theirs, name)
		}
	}
	return v.(map[string]any), theirs
}

// editedByOthers returns the object after others have changed, removed and
// doubled what is at our paths.
func editedByOthers(t *rapid.T, object map[string]any, writes []Write) map[string]any {
	object, _ = addedByOthers(t, object, writes)
	var v any = object
	for _, w := range writes {
		tokens := Tokens(w.Path)
		now, _ := lookup(v, tokens)
		list, _ := now.([]any)
		switch edit := rapid.IntRange(0, 4).Draw(t, "edit"); {
		case edit == 0:
			if other := randomField(t, "other"); other != nil {
				v = with(v, tokens, other)
			}
		case edit == 1:
			v = without(v, tokens)
		case edit == 2 && len(list) > 0:
			at := rapid.IntRange(0, len(list)-1).Draw(t, "gone")
			v = with(v, tokens, slices.Delete(slices.Clone(list), at, at+1))
		case edit == 3 && len(list) > 0:
			at := rapid.IntRange(0, len(list)-1).Draw(t, "doubled")
			v = with(v, tokens, slices.Insert(slices.Clone(list), at, list[at]))
		}
	}
	return v.(map[string]any)
}

// Whatever others have made of an object, sums take out of it exactly what whole
// values would.
func TestFormatsWithdrawAlike(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		base, writes := randomWrites(t)
		now, full := written(t, formats[0], base, writes)
		_, sums := written(t, formats[1], base, writes)
		now = editedByOthers(t, now, writes)
		want, edited := Withdraw(now, full)
		got, editedToo := Withdraw(now, sums)
		if diff := cmp.Diff(want, got) + cmp.Diff(edited, editedToo); diff != "" {
			t.Fatalf("(-by values +by sums)\n%s", diff)
		}
		if sums == nil {
			return
		}
		// What is recalled is what was written, and changes nothing.
		text, err := sums.Encode()
		if err != nil {
			t.Fatal(err)
		}
		sums.Recall(now)
		for i, f := range sums.Fields {
			if f.Wrote != nil && !plain.Equal(f.Wrote, full.Fields[i].Wrote) {
				t.Fatalf("%s: %v is recalled, %v was written", f.Path, f.Wrote, full.Fields[i].Wrote)
			}
		}
		if again, err := sums.Encode(); err != nil || again != text {
			t.Fatalf("%v\n%s\n%s", err, text, again)
		}
		if got, _ := Withdraw(now, sums); cmp.Diff(want, got) != "" {
			t.Fatal(cmp.Diff(want, got))
		}
	})
}

func TestEncode(t *testing.T) {
	t.Parallel()
	writes := []Write{
		{Path: "/spec/template/spec/priorityClassName", Before: "low", After: "high"},
		{Path: "/spec/template/spec/tolerations", After: []any{map[string]any{"key": "a"}, map[string]any{"key": "b"}}},
	}
	for want, n := range map[string]int{
		`{"v":2,"made":2,"fields":[{"at":"/spec/template/spec/priorityClassName","was":"low","is":"tXxCma_j"}]}`:                                                                     1,
		`{"v":2,"made":2,"in":"/spec/template/spec","fields":[{"at":"/priorityClassName","was":"low","is":"tXxCma_j"},{"at":"/tolerations","is":["Favvy2hc","gXGSs3vU"],"made":3}]}`: 2,
	} {
		got, err := Build(map[string]any{}, writes[:n]).Encode()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"v":2,"in":"/spec","fields":[{"at":"/a","was":[1,2.5],"is":["aaaaaaaa","bbbbbbbb"]},{"at":"/b","is":"cccccccc","made":1}]}`, `{"spec":{"a":[1,"x"]}}`)
	f.Add(`{"v":1,"uid":"u","rev":3,"made":1,"fields":[{"path":"/spec/a","before":[1,2.5],"wrote":{"x":null},"made":0}]}`, `{"spec":{"a":{"x":null}}}`)
	f.Fuzz(func(t *testing.T, text, target string) {
		r, err := Parse(text)
		if err != nil {
			return
		}
		var m map[string]any
		if json.Unmarshal([]byte(target), &m) == nil {
			Withdraw(m, r)
		}
		encoded, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(encoded); err != nil {
			t.Fatalf("%s: %v", encoded, err)
		}
	})
}
