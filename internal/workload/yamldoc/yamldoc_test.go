package yamldoc

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sigsyaml "sigs.k8s.io/yaml"
)

// seeds are texts with one odd thing each.
var seeds = []string{
	"a: &x\n  b: 1\nc: !!str &y foo\nd: *x\n? k\n: v\ne:\nf: [1, {a: b}, &z q, c: d]\n",
	"g:\n- &w\n  z: 1\n- - 1\n  - 2\n- é: 日本 # c\n  k: |\n    foo\n\n\nh: {a, 'b': , c: }\n",
	"a: yes\nb: off\nc: 0777\nd: 0o17\ne: 1_000\nf: 1.0\ng: 1e3\nh: 2001-01-01\ni: 12:30\nj: 0x1F\nk: ~\nl: .5\nm: +1\nn: y\no: 0b11\np: -0\nq: 18446744073709551615\n",
	"yes: 1\n1: 2\ntrue: 3\n1.5: 4\n",
	"base: &b {x: 1, y: 2}\nder: {<<: *b, y: 3}\nder2:\n  <<: [*b, {z: 1}]\n",
	"a: 'it''s'\nb: \"q\\\"\\n\"\nc: >-\n  folded\n  text\n\n  more\nd: |2\n    two\n  x\ne: |+\n  keep\n\nf: plain\n  on two\n\n  lines # c\n",
	"{\n\t\"a\": [1, 2.5, \"x\\ud83d\\ude00\"],\n\t\"b\": {}\n}\n",
	"{\"a\":1}{\"b\":2}\n{\"c\":3}",
	"# only a comment\n---\n# another\n---\na: 1\n...\n# tail\n---\nb: 2",
	"\ufeffa: 1\r\nb:\r\n- x\r\n- |\r\n  t\r\n",
	"a: !!binary aGk=\nb: !!int \"3\"\nc: !foo bar\n",
	"a: \"x\\\n  y\"\nb: \"one\n\n  two\"\n",
	"- a\n-\n- ''\n- {}\n- []\n- [\n  a, # c\n  b,\n  ]\n",
	"k: &a\nl: !!null\nm: &b !!str\nn: *a\n",
	"a: b: c\n", "a: [\n", "a: 1\na: 2\n", "x: &x [*x]\n", "{a: 1", "\t- x\n", "--- |\n foo\n--- {a: 1}\n",
}

func TestDecodeAsKubectlDoes(t *testing.T) {
	t.Parallel()
	for _, src := range seeds {
		checkDecode(t, []byte(src))
	}
}

// oddTag matches the tag "!" and verbatim tags.
var oddTag = regexp.MustCompile(`(^|[^!])!([^!a-z]|$)`)

// checkDecode holds Decode against the library that kubectl reads YAML with.
func checkDecode(t *testing.T, src []byte) {
	t.Helper()
	for _, d := range Split(src) {
		got, problems := d.Decode()
		if len(problems) > 0 || d.JSON || oddTag.Match(src) {
			continue // our parser does not tell the tag "!" from none
		}
		var want any
		text, err := sigsyaml.YAMLToJSONStrict(d.Text())
		if err != nil {
			continue // that parser is another one, and refuses some odd texts
		}
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		gotText, err := json.Marshal(got)
		if err != nil {
			t.Fatalf("%q: %v", d.Text(), err)
		}
		var again any
		if err := json.Unmarshal(gotText, &again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, again); diff != "" {
			t.Errorf("%q: (-kubectl +ours)\n%s", d.Text(), diff)
		}
	}
}

// checkTree holds the ranges of a tree against the text.
func checkTree(t *testing.T, src []byte) {
	t.Helper()
	for _, d := range Split(src) {
		root, err := d.Tree()
		if err != nil || root == nil {
			continue
		}
		checkNode(t, src, root, d.Start, d.End)
		if value, problems := d.Decode(); len(problems) == 0 {
			_ = value
		}
	}
}

func checkNode(t *testing.T, src []byte, n *Node, from, to int) {
	t.Helper()
	if n.Start < from || n.End > to || n.Body < n.Start || n.End < n.Body {
		t.Fatalf("%q: node %d..%d..%d is outside of %d..%d", src, n.Start, n.Body, n.End, from, to)
	}
	if n.Kind == Scalar && n.Style == Plain && n.Value != nil && !n.Tagged {
		if s, ok := n.Value.(string); ok && !strings.ContainsAny(s, " \n") && string(src[n.Body:n.End]) != s {
			t.Errorf("%q: %q is not %q", src, src[n.Body:n.End], s)
		}
	}
	at := n.Body
	for i, v := range n.Values {
		if n.Kind == Mapping {
			checkNode(t, src, n.Keys[i], at, n.End)
			at = n.Keys[i].End
		}
		checkNode(t, src, v, at, n.End)
		at = v.End
	}
}

func TestTree(t *testing.T) {
	t.Parallel()
	for _, src := range seeds {
		checkTree(t, []byte(src))
	}
}

func TestTreeEnds(t *testing.T) {
	t.Parallel()
	src := "a: 'x' # c\nb: |+\n  keep\n\nc: plain\n  two # d\nd: [1,\n 2, ] # e\ne:   # f\nf: &q !!str\ng: |2\n    z\n  y\n# end\n"
	root, err := Split([]byte(src))[0].Tree()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for i, k := range root.Keys {
		got[k.Value.(string)] = src[root.Values[i].Start:root.Values[i].End]
	}
	want := map[string]string{
		"a": "'x'", "b": "|+\n  keep\n", "c": "plain\n  two", "d": "[1,\n 2, ]", "e": "", "f": "&q !!str", "g": "|2\n    z\n  y",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()
	type doc struct {
		Line int
		JSON bool
		Text string
	}
	for src, want := range map[string][]doc{
		"":                                    {{1, false, ""}},
		"a: 1":                                {{1, false, "a: 1"}},
		"# c\n---\na: 1\n---\n---\nb: 2\n":    {{1, false, "# c\n---\na: 1\n"}, {4, false, "---\n"}, {5, false, "---\nb: 2\n"}},
		"%YAML 1.1\n---\na: 1\n...\nb: 2\n":   {{1, false, "%YAML 1.1\n---\na: 1\n...\n"}, {5, false, "b: 2\n"}},
		"{\"a\":1} {\"b\":\n2}\n{\"c\":3}\n":  {{1, true, `{"a":1}`}, {1, true, " {\"b\":\n2}"}, {2, true, "\n{\"c\":3}\n"}},
		"--- # x\r\na: |\r\n  ---\r\n---x: 1": {{1, false, "--- # x\r\na: |\r\n  ---\r\n---x: 1"}},
		"{\"a\": 1, }\n":                      {{1, false, "{\"a\": 1, }\n"}},
		"\ufeff---\na: 1\n":                   {{1, false, "---\na: 1\n"}},
	} {
		var got []doc
		for _, d := range Split([]byte(src)) {
			got = append(got, doc{d.Line, d.JSON, string(d.Text())})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", src, diff)
		}
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'j'; c++ {
		p := string(c - 1)
		bomb += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+p+",", 9) + "*" + p + "]\n"
	}
	for src, want := range map[string]string{
		"a: 1\nb: 2\na: 3\n":           `line 3, column 1: the key "a" is there twice; the second one would win`,
		"x: 1\n---\né: {b: 1, b: 2}\n": `line 3, column 12: the key "b" is there twice; the second one would win`,
		"x: 1\n---\na: [\n":            "line 3, column 1: this is not YAML: did not find expected node content",
		// The parser names the line where the map began.
		"a:\n  b:\n    c: 1\n    d: 2\n      e: foo\n    f: 3\n": "line 5, column 7: this is not YAML: mapping values are not allowed in this context",
		"a:\n  b:\n    c:\n      d: 1\n     e: foo\n  f: 3\n":    "line 5, column 6: this is not YAML: did not find expected key",
		"a:\n- x: 1\n  y: 2\n z: 3\n":                            "line 4, column 2: this is not YAML: did not find expected key",
		"a:\n  b: 1\n\tc: 2\n":                                   "line 3, column 1: this is not YAML: found a tab character that violates indentation",
		"a: &x [*x]\n":                                           `line 1, column 8: the anchor "x" contains itself`,
		"{\"a\": 1,\n \"a\": 2}":                                 `line 2, column 2: the key "a" is there twice; the second one would win`,
		"a: .nan\n":                                              `line 1, column 4: ".nan" is a number that JSON does not have`,
		"? [a]\n: 1\n":                                           `line 1, column 3: a key must be a string`,
		bomb:                                                     "line 5, column 4: the aliases of this document stand for more than 1000000 values; write them out",
		strings.Repeat("[", 20000):                               "line 1: this is not YAML: exceeded max depth of 10000",
		"<<: 3\n":                                                "line 1, column 5: a merge key takes a map or a list of maps",
		strings.Repeat("{\"a\":", 5000) + "1":                    "line 1, column 1: this is not YAML: did not find expected ',' or '}'",
	} {
		var got []string
		for _, d := range Split([]byte(src)) {
			_, problems := d.Decode()
			for _, p := range problems {
				got = append(got, p.Error())
			}
		}
		if len(got) == 0 || got[0] != want {
			t.Errorf("%.40q: got %q, want %q", src, got, want)
		}
	}
}

func TestCheckText(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"a: é\n":        "",
		"a: 1\nb: \x00": "line 2, column 4: the file has a zero byte and is no text; give YAML or JSON in UTF-8",
		"a: \xff\n":     "line 1, column 4: the byte 0xff is not UTF-8; save the file as UTF-8",
		"\xff\xfea\x00": "line 1, column 1: the text is in UTF-16; save it as UTF-8",
	} {
		got := ""
		if p := CheckText([]byte(src)); p != nil {
			got = p.Error()
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", src, got, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if CheckText(src) != nil {
			return
		}
		checkDecode(t, src)
		checkTree(t, src)
	})
}
