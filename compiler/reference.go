package compiler

import (
	"fmt"
	"strings"
)

// Reference returns the documentation of all intents as Markdown: what each
// means, an example, what it compiles to, and what cannot be said.
func Reference() string {
	var b strings.Builder
	b.WriteString("# What a policy can say\n\n" +
		"Each intent is a field of a policy. It compiles to fields of the Kubernetes API itself, and only where these mean exactly the same; what they cannot say is an error.\n\n" +
		"| intent | compiles to |\n|---|---|\n")
	for _, i := range intents {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", i.Name, i.Name, strings.Join(codeFields(i.Fields), "<br>"))
	}
	for _, i := range intents {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n```cue\n%s\n```\n\nCompiles to:\n\n", i.Name, i.Doc, i.Example)
		for _, f := range codeFields(i.Fields) {
			fmt.Fprintf(&b, "- %s\n", f)
		}
		fmt.Fprintf(&b, "\n%s\n", i.Limits)
	}
	return b.String()
}

// codeFields sets the first word of each field as code.
func codeFields(fields []string) []string {
	out := make([]string, len(fields))
	for i, f := range fields {
		name, rest, found := strings.Cut(f, " ")
		name, comma := strings.CutSuffix(name, ",")
		out[i] = "`" + name + "`"
		if comma {
			out[i] += ","
		}
		if found {
			out[i] += " " + rest
		}
	}
	return out
}
