package cel_test

import (
	"path"
	"slices"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/compiler/cel"
)

// environmentWith returns the API server's environment with s a string and m a
// map of labels.
func environmentWith(t testing.TB) *celgo.Env {
	t.Helper()
	env, err := environment.MustBaseEnvSet(version.MajorMinor(1, 37)).Env(environment.NewExpressions)
	if err == nil {
		env, err = env.Extend(
			celgo.Variable("s", celgo.StringType),
			celgo.Variable("m", celgo.MapType(celgo.StringType, celgo.StringType)),
			celgo.Variable("object", celgo.DynType),
		)
	}
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// evaluate returns what the expression comes to.
func evaluate(t rapid.TB, env *celgo.Env, expression string, input map[string]any) any {
	t.Helper()
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		t.Fatalf("%s: %v", expression, issues.Err())
	}
	program, err := env.Program(ast)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	value, _, err := program.Eval(input)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return value.Value()
}

func TestExpressions(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, got, want string }{
		{"a literal", cel.Quote("a\"b\\\n\x01é\xff"), `"a\"b\\\n\x01é` + "\uFFFD" + `"`},
		{"a list", cel.List([]string{"b", "a"}), `["b", "a"]`},
		{"and of none", cel.And(), "true"},
		{"and of one", cel.And("true", "a || b"), "a || b"},
		{"and", cel.And("a || b", "c", "d && e", "f ? g : h"), "(a || b) && c && d && e && (f ? g : h)"},
		{"and with false", cel.And("a", "false"), "false"},
		{"or of none", cel.Or(), "false"},
		{"or", cel.Or("a && b", "c"), "(a && b) || c"},
		{"or with true", cel.Or("a", "true"), "true"},
		{"operators in brackets and literals bind no less", cel.And(`f(a || b)`, `x["a || b"]`, `'?'`), `f(a || b) && x["a || b"] && '?'`},
		{"an optional field is no choice", cel.Or("a.?b.orValue(c)", `a[?"b"].hasValue()`), `a.?b.orValue(c) || a[?"b"].hasValue()`},
		{"not", cel.Not("a"), "!a"},
		{"not of a comparison", cel.Not(`a == "b"`), `!(a == "b")`},
		{"not of a constant", cel.Not("true"), "false"},
		{"if", cel.If("a || b", "c", "d ? e : f"), "a || b ? c : (d ? e : f)"},
		{"if of a constant", cel.If("false", "a", "b"), "b"},
		{"names", cel.Matches("s", []string{"b", "a", "b"}), `s in ["a", "b"]`},
		{"one name", cel.Matches("s", []string{"a"}), `s == "a"`},
		{"no name", cel.Matches("s", nil), "false"},
		{"globs", cel.Matches("s", []string{"*a", "b", "c*", "*d*"}), `s == "b" || s.endsWith("a") || s.contains("d") || s.startsWith("c")`},
		{"any", cel.Matches("s", []string{"a", "*"}), "true"},
		{"a regular expression", cel.Matches("s", []string{"a.?[b-d]*"}), `s.matches("(?s)^a\\..[\\x{62}-\\x{64}].*$")`},
		{"a broken glob", cel.Matches("s", []string{"[a"}), "false"},
		{"labels", cel.Labels("m", map[string][]string{"b": {"*"}, "a": {"x", "y*"}}), `"a" in m && (m["a"] == "x" || m["a"].startsWith("y")) && "b" in m`},
		{"no labels", cel.Labels("m", map[string][]string{}), "true"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, test.got); diff != "" {
				t.Errorf("expression differs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLabelsOf holds that an object without labels has none.
func TestLabelsOf(t *testing.T) {
	t.Parallel()
	env := environmentWith(t)
	expression := cel.Labels(cel.LabelsOf("object"), map[string][]string{"a": {"b"}})
	for _, metadata := range []map[string]any{{}, {"labels": map[string]any{}}, {"labels": map[string]any{"a": "b"}}} {
		got := evaluate(t, env, expression, map[string]any{"object": map[string]any{"metadata": metadata}})
		if want := len(metadata) > 0 && len(metadata["labels"].(map[string]any)) > 0; got != want {
			t.Errorf("%v: got %v, want %v", metadata, got, want)
		}
	}
}

var (
	names    = rapid.StringMatching(`[ab.\-é"]{0,6}`)
	patterns = rapid.OneOf(names, rapid.StringMatching(`([ab.\-é"*?]|\[\^?[ab\-é]{1,3}\]|\[[ab]-[ab]\]|\\[a*\[]|\[){0,5}`))
)

// TestMatches holds that a glob means in CEL what it means to path.Match.
func TestMatches(t *testing.T) {
	t.Parallel()
	env := environmentWith(t)
	rapid.Check(t, func(t *rapid.T) {
		ps := rapid.SliceOfN(patterns, 0, 3).Draw(t, "patterns")
		name := names.Draw(t, "name")
		want := slices.ContainsFunc(ps, func(p string) bool {
			ok, err := path.Match(p, name)
			return ok && err == nil
		})
		expression := cel.Matches("s", ps)
		if got := evaluate(t, env, expression, map[string]any{"s": name}); got != want {
			t.Fatalf("%s of %q is %v, want %v", expression, name, got, want)
		}
	})
}

// TestQuote holds that a literal stands for the string.
func TestQuote(t *testing.T) {
	t.Parallel()
	env := environmentWith(t)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		if got := evaluate(t, env, cel.Quote(text), nil); got != text {
			t.Fatalf("%s is %q, want %q", cel.Quote(text), got, text)
		}
	})
}

// TestConnectives holds that And, Or, Not and If keep what they connect together.
func TestConnectives(t *testing.T) {
	t.Parallel()
	env := environmentWith(t)
	type condition struct {
		text  string
		value bool
	}
	var draw func(t *rapid.T, depth int) condition
	draw = func(t *rapid.T, depth int) condition {
		kind := rapid.IntRange(0, 5).Draw(t, "kind")
		if depth == 0 || kind < 2 {
			return []condition{{"true", true}, {"false", false}, {`s == "x || y"`, true}, {`!(s in ["?"])`, true}, {`s.contains("z")`, false}}[rapid.IntRange(0, 4).Draw(t, "leaf")]
		}
		a, b := draw(t, depth-1), draw(t, depth-1)
		switch kind {
		case 2:
			return condition{cel.And(a.text, b.text), a.value && b.value}
		case 3:
			return condition{cel.Or(a.text, b.text), a.value || b.value}
		case 4:
			return condition{cel.Not(a.text), !a.value}
		}
		c := draw(t, depth-1)
		return condition{cel.If(a.text, b.text, c.text), a.value && b.value || !a.value && c.value}
	}
	rapid.Check(t, func(t *rapid.T) {
		c := draw(t, 4)
		if got := evaluate(t, env, c.text, map[string]any{"s": "x || y"}); got != c.value {
			t.Fatalf("%s is %v, want %v", c.text, got, c.value)
		}
	})
}
