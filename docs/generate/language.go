package main

import (
	"fmt"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

// maxDepth ends the description of what contains itself (a selector's `not`).
const maxDepth = 6

// language documents every field of a document, from the schema's own comments.
func language() (string, error) {
	var b strings.Builder
	b.WriteString("# The language\n\nEvery field of a document. A name in capitals stands for one of your own choice; " +
		"`kubectl sched explain policies.spread` prints the same in the terminal.\n\n| field | what it says |\n|---|---|\n")
	if err := describe(&b, nil); err != nil {
		return "", err
	}
	return b.String(), nil
}

func describe(b *strings.Builder, path []string) error {
	field, err := load.Describe(path...)
	if err != nil {
		return err
	}
	if len(path) > 0 {
		notes := []string{field.Type}
		if field.Required {
			notes = append(notes, "required")
		}
		if field.Default != "" {
			notes = append(notes, "default "+field.Default)
		}
		fmt.Fprintf(b, "| `%s` | %s *%s* |\n", field.Path, cell(field.Doc), cell(strings.Join(notes, ", ")))
	}
	if len(path) == maxDepth {
		return nil
	}
	for _, below := range field.Fields {
		name := below.Path[strings.LastIndexByte(below.Path, '.')+1:]
		if len(path) > 0 && name == "not" {
			continue // the same selector once more
		}
		if err := describe(b, append(path[:len(path):len(path)], name)); err != nil {
			return err
		}
	}
	return nil
}

// cell makes a text fit into a cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ").Replace(text)
}
