// Command generate writes the reference pages in docs/reference from the code:
// the schema, the tables of intents, kinds and rules, and the command tree.
// With -check it writes nothing and fails if a page is not current.
//
// It must not know anything of what it writes about that the tables themselves do not
// say: what a page lacks is missing in the code.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/kubectl-sched/kubectl-sched/compiler"
)

// page is one generated file.
type page struct {
	name   string
	render func() (string, error)
}

func pages() []page {
	return []page{
		{"intents.md", func() (string, error) { return compiler.Reference(), nil }},
		{"language.md", language},
		{"kinds.md", kinds},
		{"commands.md", commands},
		{"findings.md", findings},
		{"catalog.md", catalogPage},
	}
}

func main() {
	check := flag.Bool("check", false, "fail if a page is not current, and write nothing")
	dir := flag.String("dir", "docs/reference", "the folder of the pages")
	flag.Parse()
	if err := run(*dir, *check); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(dir string, check bool) error {
	if !check {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	var errs []error
	for _, p := range pages() {
		text, err := p.render()
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		content := []byte("<!-- Written by `make generate` from the code. -->\n\n" + text)
		file := filepath.Join(dir, p.name)
		if check {
			errs = append(errs, current(file, content))
			continue
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return err
		}
	}
	return errors.Join(append(errs, strangers(dir))...)
}

func current(file string, want []byte) error {
	got, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("%s is not current: run make generate", file)
	}
	return nil
}

// strangers complains of files that no page writes: left over, or edited by
// hand in the belief that they stay.
func strangers(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !slices.ContainsFunc(pages(), func(p page) bool { return p.name == e.Name() }) {
			return fmt.Errorf("%s is not written by any page: remove it", filepath.Join(dir, e.Name()))
		}
	}
	return nil
}
