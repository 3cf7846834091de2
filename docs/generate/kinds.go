package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// kinds documents the table of kinds that have pod templates.
func kinds() (string, error) {
	var b strings.Builder
	b.WriteString("# The kinds that have pod templates\n\n" +
		"Where each kind has its pod templates, and which placement fields it can carry. `[*name]` stands for each element of a list, `*` for each value of a map; " +
		"both name the template, for `workloads: templates`. Where a pod spec is given, it carries every placement field. " +
		"A document teaches further kinds under `kinds`, and more about these.\n\n" +
		"| kind | template | carried at | labels that its controller adds |\n|---|---|---|---|\n")
	for _, k := range workload.DescribeKinds() {
		names := make([]string, len(k.Kinds))
		for i, n := range k.Kinds {
			names[i] = "`" + n.String() + "`"
		}
		labels := make([]string, 0, len(k.PodLabels))
		for _, key := range slices.Sorted(maps.Keys(k.PodLabels)) {
			labels = append(labels, fmt.Sprintf("`%s=%s`", key, k.PodLabels[key]))
		}
		for i, t := range k.Templates {
			if i > 0 {
				names, labels = []string{""}, nil
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", strings.Join(names, "<br>"), t.Name, carried(t), strings.Join(labels, "<br>"))
		}
	}
	b.WriteString("\nThe templates of Pods and Jobs, and of the custom kinds that say so, cannot be changed once the object exists: what a policy asks of them applies to the next run.\n")
	return b.String(), nil
}

func carried(t workload.TemplateDescription) string {
	var lines []string
	if t.Path != "" {
		lines = append(lines, "pod spec at `"+t.Path+"`")
	}
	for _, f := range slices.Sorted(maps.Keys(t.Fields)) {
		lines = append(lines, fmt.Sprintf("%s at `%s`", f, t.Fields[f]))
	}
	return strings.Join(lines, "<br>")
}
