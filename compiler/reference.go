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
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", i.Name, strings.ToLower(i.Name), strings.Join(codeFields(i.Fields), "<br>"))
	}
	for _, i := range intents {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n```cue\n%s\n```\n\nCompiles to:\n\n", i.Name, i.Doc, i.Example)
		for _, f := range codeFields(i.Fields) {
			fmt.Fprintf(&b, "- %s\n", f)
		}
		fmt.Fprintf(&b, "\n%s\n", i.Limits)
	}
	b.WriteString(dedicatedReference)
	return b.String()
}

// dedicatedReference is what a pool, not a policy, says.
const dedicatedReference = "\n## dedicated\n\n" +
	"A field of a pool. Its nodes carry a taint, and only workloads that the pool grants get the toleration: when a policy requires the pool or tolerates it, by whatever words. " +
	"grants are namespaces, labels of namespaces, and service accounts (\"name\" or \"namespace/name\"); all that are said must hold, and without grants every policy may send its workloads there.\n\n" +
	"```cue\npools: gpu: {\n\tnodes: labels: \"node-restriction.kubernetes.io/class\": \"gpu\"\n\tdedicated: grants: namespaces: [\"ml-*\"]\n}\n```\n\n" +
	"Compiles to:\n\n- `taints` of the nodes, by whoever makes the nodes (managedBy)\n- `tolerations` of the pods\n\n" +
	"A pod made past the policies can carry the toleration all the same: a taint is a fence, not a lock.\n"

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
