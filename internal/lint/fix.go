package lint

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// replace is a safe fix that writes the text over the range. Without a range it only
// says what to do; so it does in JSON, where the text would be none.
func replace(at diag.Range, message, text string) *diag.Fix {
	fix := &diag.Fix{Message: message}
	if at.End.Line != 0 && !isJSON(at) {
		fix.Edits, fix.Safe = []diag.Edit{{Range: at, NewText: text}}, true
	}
	return fix
}

func isJSON(at diag.Range) bool { return path.Ext(at.Start.File) == ".json" }

// insert is a safe fix that adds an entry to a map of the template's: in front of its
// first key, with the indentation of that, or after the bracket in flow style.
func (t *template) insert(message, entry string, f workload.Field, below ...any) *diag.Fix {
	fix := &diag.Fix{Message: message}
	at, ok := t.t.PathOf(f, below...)
	if !ok {
		return fix
	}
	object, _ := workload.Lookup(t.w.Object, at...)
	entries, _ := object.(map[string]any)
	whole := t.w.Source.At(at...)
	if len(entries) == 0 || whole.Start.Line == 0 || isJSON(whole) {
		return fix
	}
	keys := make([]diag.Pos, 0, len(entries))
	for key := range entries {
		keys = append(keys, t.w.Source.At(append(slices.Clone(at), key)...).Start)
	}
	first := slices.MinFunc(keys, diag.Pos.Compare)
	text := entry + ", "
	if first == whole.Start {
		text = entry + "\n" + strings.Repeat(" ", first.Column-1)
	}
	fix.Edits, fix.Safe = []diag.Edit{{Range: diag.At(first), NewText: text}}, true
	return fix
}

// rename is a safe fix that writes another name where a policy has one in quotes.
// Where the range is not that name alone, as for one that is put together, it only
// says what to do.
func rename(at diag.Range, from, to string) *diag.Fix {
	fix := &diag.Fix{Message: "write " + to}
	if at.End.Line == at.Start.Line && at.End.Column-at.Start.Column == len(strconv.Quote(from)) {
		fix.Edits, fix.Safe = []diag.Edit{{Range: at, NewText: strconv.Quote(to)}}, true
	}
	return fix
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
