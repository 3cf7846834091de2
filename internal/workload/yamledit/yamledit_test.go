package yamledit

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func list(v ...any) []any { return v }

var toleration = map[string]any{"key": "gpu", "operator": "Exists"}

func setAt(v any, path ...any) Edit { return Edit{Path: path, Value: v} }
func deleteAt(path ...any) Edit     { return Edit{Path: path, Delete: true} }

// cases pair a text and edits with the exact result.
var cases = []struct {
	name      string
	src, want string
	edits     []Edit
	// oneWay says that the edits cannot be taken back by deleting.
	oneWay bool
}{
	{
		name:  "append to a map, comments around",
		src:   "spec: # s\n  # containers\n  containers:\n  - name: a # x\n    image: b\n  # foot\nstatus: {}\n",
		want:  "spec: # s\n  # containers\n  containers:\n  - name: a # x\n    image: b\n  priorityClassName: high\n  # foot\nstatus: {}\n",
		edits: []Edit{setAt("high", "spec", "priorityClassName")},
	},
	{
		name:  "nested parents are made, lists not indented as in the text",
		src:   "spec:\n  containers:\n  - name: a\n",
		want:  "spec:\n  containers:\n  - name: a\n  affinity:\n    podAntiAffinity:\n      required:\n      - topologyKey: zone\n  tolerations:\n  - key: gpu\n    operator: Exists\n",
		edits: []Edit{setAt(list(map[string]any{"topologyKey": "zone"}), "spec", "affinity", "podAntiAffinity", "required"), setAt(list(toleration), "spec", "tolerations")},
	},
	{
		name:  "lists indented, four wide, no last newline, CRLF",
		src:   "spec:\r\n    containers:\r\n      - name: a\r\n        image: b",
		want:  "spec:\r\n    containers:\r\n      - name: a\r\n        image: b\r\n    tolerations:\r\n      - key: gpu\r\n        operator: Exists",
		edits: []Edit{setAt(list(toleration), "spec", "tolerations")},
	},
	{
		name:  "append to a list keeps what others wrote",
		src:   "t:\n  # first\n  - key: a   # why\n    operator: 'Equal'\n\n  # next\nx: 1\n",
		want:  "t:\n  # first\n  - key: a   # why\n    operator: 'Equal'\n  - key: gpu\n    operator: Exists\n\n  # next\nx: 1\n",
		edits: []Edit{setAt(list(map[string]any{"key": "a", "operator": "Equal"}, toleration), "t")},
	},
	{
		name:   "an empty flow list in block style gives way to lines",
		src:    "s:\n  tolerations: [] # none\n  affinity: {}\n",
		want:   "s:\n  tolerations: # none\n  - key: gpu\n    operator: Exists\n  affinity:\n    a: 1\n",
		edits:  []Edit{setAt(list(toleration), "s", "tolerations"), setAt(map[string]any{"a": int64(1)}, "s", "affinity")},
		oneWay: true,
	},
	{
		name:   "and comes back",
		src:    "s:\n  tolerations: # none\n  - key: gpu\n    operator: Exists\n  affinity:\n    a: 1\n",
		want:   "s:\n  tolerations: [] # none\n  affinity: {}\n",
		edits:  []Edit{setAt(list(), "s", "tolerations"), deleteAt("s", "affinity", "a")},
		oneWay: true,
	},
	{
		name:   "a null value gets lines and loses them",
		src:    "s:\n  t: # c\n  u:\n",
		want:   "s:\n  t: # c\n  - 1\n  u: 5\n",
		edits:  []Edit{setAt(list(int64(1)), "s", "t"), setAt(int64(5), "s", "u")},
		oneWay: true,
	},
	{
		name:   "an anchored null gets a value behind the anchor",
		src:    "s:\n- &a # c\nt: [&b]\nu: &c # d\n",
		want:   "s:\n- &a {} # c\nt: [&b 1]\nu: &c x # d\n",
		edits:  []Edit{setAt(map[string]any{}, "s", 0), setAt(int64(1), "t", 0), setAt("x", "u")},
		oneWay: true,
	},
	{
		name:  "flow style is kept",
		src:   "t: [{key: a}, {key: b}] # c\nm: {a: 1}\n",
		want:  "t: [{key: a}, {key: b}, {key: gpu, operator: Exists}] # c\nm: {a: 1, b: \"2\"}\n",
		edits: []Edit{setAt(toleration, "t", 2), setAt("2", "m", "b")},
	},
	{
		name:  "flow over several lines",
		src:   "t: [\n  {key: a}, # one\n  {key: b}  # two\n]\n",
		want:  "t: [\n  {key: a}, # one\n  {key: b},  # two\n  {key: c}\n]\n",
		edits: []Edit{setAt(map[string]any{"key": "c"}, "t", 2)},
	},
	{
		name:   "JSON, pretty",
		src:    "{\n    \"a\": [\n        1\n    ],\n    \"m\": {}\n}\n",
		want:   "{\n    \"a\": [\n        1,\n        {\n            \"key\": \"gpu\",\n            \"operator\": \"Exists\"\n        }\n    ],\n    \"m\": {\n        \"x\": {\n            \"y\": \"z\"\n        }\n    }\n}\n",
		edits:  []Edit{setAt(toleration, "a", 1), setAt("z", "m", "x", "y")},
		oneWay: true,
	},
	{
		name:  "JSON, compact",
		src:   `{"a":[1,2],"b":{"c":"d"}}`,
		want:  `{"a":[1,2,{"key":"gpu","operator":"Exists"}],"b":{"c":"d","e":[1]},"f":{}}`,
		edits: []Edit{setAt(toleration, "a", 2), setAt(list(int64(1)), "b", "e"), setAt(map[string]any{}, "f")},
	},
	{
		name:   "scalars keep their quotes and comments",
		src:    "a: 'x' # 1\nb: \"y\" # 2\nc: z # 3\nd: |\n  text\n# 4\ne: 1\n",
		want:   "a: 'it''s' # 1\nb: \"it's\" # 2\nc: its # 3\nd: new\n# 4\ne: 1\n",
		edits:  []Edit{setAt("it's", "a"), setAt("it's", "b"), setAt("its", "c"), setAt("new", "d")},
		oneWay: true,
	},
	{
		name:  "ambiguous strings are quoted",
		src:   "a: 1\n",
		want:  "a: 1\nb: \"yes\"\nc: \"1e3\"\nd: \"\"\ne: '{\"v\":1}'\nf: \"a\\nb\"\ng: \"0x1\"\nh: \"2001-01-01\"\ni: \"a: b\"\nj: nvidia.com/gpu\nk: \"*\"\n",
		edits: []Edit{setAt("yes", "b"), setAt("1e3", "c"), setAt("", "d"), setAt(`{"v":1}`, "e"), setAt("a\nb", "f"), setAt("0x1", "g"), setAt("2001-01-01", "h"), setAt("a: b", "i"), setAt("nvidia.com/gpu", "j"), setAt("*", "k")},
	},
	{
		name:   "a list element changes in place",
		src:    "t:\n- maxSkew: 2 # two\n  topologyKey: zone\n  labelSelector: {matchLabels: {app: a}}\n- maxSkew: 1\n  topologyKey: host\n",
		want:   "t:\n- maxSkew: 1 # two\n  topologyKey: zone\n  labelSelector: {matchLabels: {app: a}}\n  minDomains: 3\n- maxSkew: 1\n  topologyKey: host\n",
		edits:  []Edit{setAt(int64(1), "t", 0, "maxSkew"), setAt(int64(3), "t", 0, "minDomains")},
		oneWay: true,
	},
	{
		name:   "the first key of a list element goes",
		src:    "t:\n- a: 1\n  # keep\n  b: 2\n- a: 1 # c\n  b: 2\n- a: 1\n  b: 2\n  c: 3\n",
		want:   "t:\n-\n  # keep\n  b: 2\n- # c\n  b: 2\n- c: 3\n",
		edits:  []Edit{deleteAt("t", 0, "a"), deleteAt("t", 1, "a"), deleteAt("t", 2, "a"), deleteAt("t", 2, "b")},
		oneWay: true,
	},
	{
		name:   "list elements go and come",
		src:    "t:\n- a\n# b\n- b\n- c\n- - x\n  - v\n",
		want:   "t:\n- z\n- a\n# b\n- b\n- d\n- - v\n",
		edits:  []Edit{setAt(list("z", "a", "b", "d", list("v")), "t")},
		oneWay: true,
	},
	{
		name:   "another user of an anchor keeps its value",
		src:    "head:\n  t: &t\n  - key: a\nworker:\n  t: *t\nother:\n  t: *t\n",
		want:   "head:\n  t: &t\n  - key: a\n  - key: b\nworker:\n  t:\n  - key: a\nother:\n  t: *t\n",
		edits:  []Edit{setAt(map[string]any{"key": "b"}, "head", "t", 1), setAt(map[string]any{"key": "b"}, "other", "t", 1)},
		oneWay: true,
	},
	{
		name:   "an edit below an alias writes it out",
		src:    "head: &h\n  a: 1\n  b: {c: 2}\nworker: *h # c\n",
		want:   "head: &h\n  a: 1\n  b: {c: 2}\nworker: # c\n  a: 1\n  b:\n    c: 3\n",
		edits:  []Edit{setAt(int64(3), "worker", "b", "c")},
		oneWay: true,
	},
	{
		name:   "a merge is overridden, and expanded where a key goes",
		src:    "base: &b {x: 1, w: {z: 2}}\none:\n  <<: *b\n  q: 1\ntwo:\n  <<: *b\n  q: 1\n",
		want:   "base: &b {x: 1, w: {z: 2}}\none:\n  <<: *b\n  q: 1\n  w:\n    z: 3\ntwo:\n  q: 1\n  w:\n    z: 2\n",
		edits:  []Edit{setAt(int64(3), "one", "w", "z"), deleteAt("two", "x")},
		oneWay: true,
	},
	{
		name:   "what overrode a merge goes again",
		src:    "base: &b {x: 1}\none:\n  <<: *b\n  q: 1\n  x: 3 # ours\n",
		want:   "base: &b {x: 1}\none:\n  <<: *b\n  q: 1\n",
		edits:  []Edit{setAt(int64(1), "one", "x")},
		oneWay: true,
	},
	{
		name:  "a block scalar before what is appended",
		src:   "a: |+\n  keep\n\n\nb: >-\n  x\n  y\n\n# end\n",
		want:  "a: |+\n  keep\n\n\nb: >-\n  x\n  y\nc: 1\n\n# end\n",
		edits: []Edit{setAt(int64(1), "c")},
	},
	{
		name:  "the first document starts with a mark and a marker",
		src:   "\ufeff---\na: 1 # é\n...\n",
		want:  "\ufeff---\na: 1 # é\nb: 2\n...\n",
		edits: []Edit{setAt(int64(2), "b")},
	},
	{
		name:  "nothing to do",
		src:   "a:   1\n",
		want:  "a:   1\n",
		edits: []Edit{setAt(int64(1), "a"), deleteAt("b", "c")},
	},
}

func TestApply(t *testing.T) {
	t.Parallel()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := Apply([]byte(c.src), 0, c.edits)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Fatalf("(-want +got)\n%s\n%q", diff, got)
			}
			again, err := Apply(got, 0, c.edits)
			if c.name != "list elements go and come" && !strings.Contains(c.name, "first key") && (err != nil || string(again) != string(got)) {
				t.Errorf("the second time: %v\n%s", err, again)
			}
			if c.oneWay {
				return
			}
			var back []Edit
			for i := len(c.edits) - 1; i >= 0; i-- {
				back = append(back, deleteAt(c.edits[i].Path...))
			}
			if c.name == "append to a list keeps what others wrote" {
				back = []Edit{deleteAt("t", 1)}
			}
			if strings.HasPrefix(c.name, "nested") {
				back = []Edit{deleteAt("spec", "affinity"), deleteAt("spec", "tolerations")}
			}
			if c.name == "nothing to do" {
				return
			}
			reverted, err := Apply(got, 0, back)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.src, string(reverted)); diff != "" {
				t.Errorf("taken back (-want +got)\n%s", diff)
			}
		})
	}
}

func TestApplyOtherDocuments(t *testing.T) {
	t.Parallel()
	src := "# one\na: 1\n---\na: 2 # two\n---\n{\"a\": 3}\n---\na: 4"
	got, err := ApplyAll([]byte(src), map[int][]Edit{1: {setAt(int64(5), "b")}, 3: {setAt(int64(6), "b")}, 2: {setAt(int64(7), "b")}}, nil)
	want := "# one\na: 1\n---\na: 2 # two\nb: 5\n---\n{\"a\": 3, \"b\": 7}\n---\na: 4\nb: 6"
	if err != nil || string(got) != want {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestApplyErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		src, want string
		doc       int
		edit      Edit
	}{
		{"a: 1\n", `line 1: a.b: "b" leads into a number, not a map`, 0, setAt("x", "a", "b")},
		{"a: []\n", "line 1: a[1]: the index 1 is out of range: the list has 0 elements", 0, setAt("x", "a", 1)},
		{"a: [\n", "line 1, column 1: this is not YAML: did not find expected node content", 0, setAt("x", "a")},
		{"a: 1\na: 2\n", `line 2, column 1: the key "a" is there twice; the second one would win`, 0, setAt("x", "a")},
		{"a: 1\n", "there is no document 3 among 1", 3, setAt("x", "a")},
		{"# nothing\n", "line 1: the document is empty", 0, setAt("x", "a")},
	} {
		_, err := Apply([]byte(c.src), c.doc, []Edit{c.edit})
		if err == nil || err.Error() != c.want {
			t.Errorf("%q: got %v, want %s", c.src, err, c.want)
		}
	}
}
