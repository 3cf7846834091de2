package apply

import (
	"encoding/json"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"pgregory.net/rapid"
)

// value generates JSON values as the API has them: maps, lists, scalars, and
// keys that a JSON pointer must escape.
func value(depth int) *rapid.Generator[any] {
	keys := rapid.SampledFrom([]string{"a", "b", "c/d", "e~f", "x.y/z"})
	scalars := rapid.OneOf(rapid.Map(rapid.IntRange(0, 3), func(i int) any { return int64(i) }), rapid.Map(rapid.SampledFrom([]string{"", "v", "w"}), func(s string) any { return s }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }))
	if depth == 0 {
		return scalars
	}
	return rapid.OneOf(scalars,
		rapid.Map(rapid.MapOfN(keys, value(depth-1), 0, 4), func(m map[string]any) any { return m }),
		rapid.Map(rapid.SliceOfN(value(depth-1), 0, 3), func(l []any) any { return l }))
}

func object(depth int) *rapid.Generator[map[string]any] {
	return rapid.MapOfN(rapid.SampledFrom([]string{"spec", "a/b", "m~n"}), value(depth), 0, 3)
}

// TestDifferenceTurnsOneIntoTheOther holds difference against the very library
// that the API server patches with.
func TestDifferenceTurnsOneIntoTheOther(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		from, to := object(3).Draw(t, "from"), object(3).Draw(t, "to")
		ops := difference(from, to)
		text, err := json.Marshal(ops)
		if err != nil {
			t.Fatal(err)
		}
		if len(ops) == 0 {
			text = []byte("[]")
		}
		patch, err := jsonpatch.DecodePatch(text)
		if err != nil {
			t.Fatal(err)
		}
		document, err := json.Marshal(from)
		if err != nil {
			t.Fatal(err)
		}
		patched, err := patch.Apply(document)
		if err != nil {
			t.Fatalf("%s does not apply to %s: %v", text, document, err)
		}
		want, err := json.Marshal(to)
		if err != nil {
			t.Fatal(err)
		}
		if !jsonpatch.Equal(patched, want) {
			t.Fatalf("%s turned %s into %s, want %s", text, document, patched, want)
		}
		if same(from, to) != (len(ops) == 0) {
			t.Fatalf("%d operations between %s and %s", len(ops), document, want)
		}
	})
}

// TestWithValue holds withValue against reading the value back, and against
// leaving the original alone.
func TestWithValue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		from := object(2).Draw(t, "from")
		before, err := json.Marshal(from)
		if err != nil {
			t.Fatal(err)
		}
		at := rapid.SampledFrom([]string{"/spec/a", "/spec/c~1d/e~0f", "/new/deep/down"}).Draw(t, "at")
		set := value(1).Draw(t, "value")
		changed, err := withValue(from, at, set)
		if after, _ := json.Marshal(from); string(after) != string(before) {
			t.Fatalf("the original became %s, was %s", after, before)
		}
		if err != nil {
			return // something on the way is neither a map nor missing
		}
		if got, _ := valueAt(changed, at); !same(got, plain(set)) {
			t.Fatalf("%s is %v, want %v", at, got, set)
		}
	})
}
