package lint

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// replace is a fix that writes the text over the range. Without a range it only says
// what to do; so it does in JSON, where the text would be none.
func replace(at diag.Range, message, text string) *diag.Fix {
	fix := &diag.Fix{Message: message}
	if at.End.Line != 0 && !isJSON(at) {
		fix.Edits = []diag.Edit{{Range: at, NewText: text}}
	}
	return fix
}

func isJSON(at diag.Range) bool { return path.Ext(at.Start.File) == ".json" }

// insert is a fix that adds an entry to a map of the template's: in front of its
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
	if len(entries) == 0 || !whole.Start.IsValid() || isJSON(whole) {
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
	fix.Edits = []diag.Edit{{Range: diag.At(first), NewText: text}}
	return fix
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
