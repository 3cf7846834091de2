package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/report"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

// exampleDay is when examples are compiled: no page changes with the day.
var exampleDay = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

// catalogPage documents every entry of the catalog, from its comments and its example.
func catalogPage() (string, error) {
	c, err := load.ReadCatalog()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("# The catalog\n\nReady-made policies with parameters. `kubectl sched catalog use NAME` writes the lines of an example, " +
		"and [catalog.md](../catalog.md) says how they are used, and how a company publishes its own.\n\n| entry | what it does |\n|---|---|\n")
	for _, e := range c.Entries {
		fmt.Fprintf(&b, "| [`%s`](#%[1]s) | %s |\n", e.Name, cell(e.Summary))
	}
	for i := range c.Entries {
		if err := entryPage(&b, c, &c.Entries[i]); err != nil {
			return "", fmt.Errorf("%s: %w", c.Entries[i].Name, err)
		}
	}
	return b.String(), nil
}

func entryPage(b *strings.Builder, c *load.Catalog, e *load.Entry) error {
	fmt.Fprintf(b, "\n## %s\n\n", e.Name)
	for _, p := range e.Doc {
		for _, lead := range []string{"When:", "When not:", "Compiles to"} {
			if rest, ok := strings.CutPrefix(p, lead); ok {
				p = "**" + lead + "**" + rest
				break
			}
		}
		fmt.Fprintf(b, "%s\n\n", strings.Replace(p, e.Definition, "`"+e.Definition+"`", 1))
	}
	b.WriteString("| parameter | what it says |\n|---|---|\n")
	for _, p := range e.Parameters {
		notes := []string{p.Type}
		if p.Required {
			notes = append(notes, "required")
		}
		if p.Default != "" {
			notes = append(notes, "default "+p.Default)
		}
		fmt.Fprintf(b, "| `%s` | %s *%s* |\n", p.Path, cell(p.Doc), cell(strings.Join(notes, ", ")))
	}
	for _, r := range e.Results {
		fmt.Fprintf(b, "| `%s` | what comes of it, for `%s` |\n", r.Name, r.Section)
	}
	text, err := fs.ReadFile(c.Examples, e.Name+"/"+load.ExampleFile)
	if err != nil {
		return err
	}
	compiled, err := compiledExample(c, e)
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "\n```cue\n%s```\n\nFor [a workload](../../catalog/%s/manifests), `kubectl sched compile` adds:\n\n```\n%s```\n", text, e.Name, compiled)
	return nil
}

// compiledExample is what an entry's example adds to the workloads beside it, as text.
func compiledExample(c *load.Catalog, e *load.Entry) (string, error) {
	dir, err := os.MkdirTemp("", "catalog-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	folder, err := c.CopyExample(dir, e)
	if err != nil {
		return "", err
	}
	placement, findings := load.Evaluate(context.Background(), load.Options{Paths: []string{folder}})
	if len(findings) > 0 {
		return "", findings
	}
	set, findings := workload.Read(context.Background(), workload.Input{Files: []string{filepath.Join(folder, load.ExampleManifests)}, Recursive: true}, workload.Options{})
	if len(findings) > 0 {
		return "", findings
	}
	caps := capability.Capabilities{Namespaces: map[string]map[string]string{}}
	for _, o := range set.Others {
		if o.Kind == "Namespace" {
			caps.Namespaces[o.Name] = (&unstructured.Unstructured{Object: o.Object}).GetLabels()
		}
	}
	if len(placement.Clusters) > 0 {
		caps.Cluster = placement.Clusters[0].Name
	}
	plan, findings := compiler.Compile(compiler.Request{Placement: placement, Workloads: set.Workloads, Capabilities: caps, Now: exampleDay})
	if findings.HasErrors() {
		return "", findings
	}
	var b strings.Builder
	err = report.Plans(&b, report.Text, []report.Plan{{Plan: plan}}, report.Options{Dir: dir})
	return b.String(), err
}
