package load_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
	"github.com/kubectl-sched/kubectl-sched/test/cueregistry"
)

// companyCatalog is the catalog of a company, in two versions and a candidate, as modules
// in a registry. It either depends on the module of the schema, or has nothing but the
// copy of it that "init" puts below cue.mod/pkg, which is not published.
func companyCatalog(depends bool) fstest.MapFS {
	modules := fstest.MapFS{}
	for _, version := range []string{"v0.1.0", "v0.2.0", "v0.3.0-rc.1"} {
		module := "module: \"company.example/placement@v0\"\nlanguage: version: \"" + policy.SchemaLanguage + "\"\nsource: kind: \"self\"\n"
		if depends {
			module += "deps: \"" + policy.ModulePath + "@" + policy.ModuleMajor + "\": v: \"" + policy.SchemaVersion + "\"\n"
		}
		dir := "company.example_placement_" + version + "/"
		modules[dir+"cue.mod/module.cue"] = &fstest.MapFile{Data: []byte(module)}
		modules[dir+"standard.cue"] = &fstest.MapFile{Data: []byte(strings.Replace(company, "the company gets", "the company gets in "+version, 1))}
		modules[dir+"standard/placement.cue"] = &fstest.MapFile{Data: []byte(`package example

import "company.example/placement"

_pay: placement.#Standard & {workloads: namespaces: ["pay"], tier: 1}
policies: pay: _pay.#policy
`)}
		modules[dir+"batch/nightly.cue"] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(strings.Replace(company, "package placement", "package batch", 1), "#Standard", "#Nightly"))}
	}
	return modules
}

// use takes the entry of the company's catalog.
const use = `package placement

import "company.example/placement"

_pay: placement.#Standard & {
	workloads: namespaces: ["pay"]
	tier: 1
}
policies: pay: _pay.#policy
`

// depending makes the folder placement with the document, in a module that depends on a
// version of the company's catalog, if one is said.
func depending(t *testing.T, dir, document, version string, vendor bool) {
	t.Helper()
	if _, err := load.Init(filepath.Join(dir, "placement"), load.InitOptions{Vendor: vendor, Document: []byte(document)}); err != nil {
		t.Fatal(err)
	}
	module := filepath.Join(dir, "placement", "cue.mod", "module.cue")
	text, err := os.ReadFile(module)
	if err != nil {
		t.Fatal(err)
	}
	if version != "" {
		text = append(text, "deps: \"company.example/placement@v0\": v: \""+version+"\"\n"...)
	}
	write(t, module, text)
}

// withRegistry makes a registry with the modules the one that the environment names.
func withRegistry(t *testing.T, modules fstest.MapFS) {
	t.Helper()
	for name, value := range cueregistry.Serve(t, modules) {
		t.Setenv(name, value)
	}
}

// TestRegistry holds that a module of a registry is imported where that is allowed, and
// that nothing is fetched where it is not, whether the folder has copies of the schema
// or not. What is wrong, and what comes of it, is at the user's own lines.
func TestRegistry(t *testing.T) {
	for _, depends := range []bool{true, false} {
		withRegistry(t, companyCatalog(depends))
		for _, vendor := range []bool{true, false} {
			dir := t.TempDir()
			depending(t, dir, use, "v0.2.0", vendor)
			o := load.Options{Dir: dir, Paths: []string{"placement"}}
			_, findings := load.Evaluate(t.Context(), o)
			if len(findings) != 1 || findings[0].Rule != "input/import" || !strings.Contains(findings[0].Message, "--allow-registry") {
				t.Errorf("depends %t, vendor %t: got %v", depends, vendor, findings)
			}
			o.AllowRegistry = true
			p, findings := load.Evaluate(t.Context(), o)
			if len(findings) > 0 || len(p.Policies) != 1 || p.Policies[0].Spread["zone"].Strength != "require" {
				t.Fatalf("depends %t, vendor %t, with the registry allowed: got %v, %v", depends, vendor, p, findings)
			}
			for path, at := range p.Policies[0].Positions {
				if at.Start.File != "placement/placement.cue" {
					t.Errorf("%s is at %v", path, at)
				}
			}
			write(t, filepath.Join(dir, "placement/placement.cue"), []byte(strings.Replace(use, "tier: 1", "tier: 4", 1)))
			_, findings = load.Evaluate(t.Context(), o)
			if len(findings) != 1 || findings[0].Range.Start != (diag.Pos{File: "placement/placement.cue", Line: 7, Column: 8}) || !strings.Contains(findings[0].Message, "tier must be 1, 2 or 3") {
				t.Errorf("depends %t, vendor %t, with a wrong parameter: got %v", depends, vendor, findings)
			}
		}
	}
}

// TestFetchCatalog holds which version of a catalog in a registry is meant, and what of
// it there is.
func TestFetchCatalog(t *testing.T) {
	withRegistry(t, companyCatalog(true))
	for _, tt := range []struct {
		path, pinned, want, entry, importPath string
	}{
		{path: "company.example/placement", want: "v0.2.0", entry: "standard"},
		{path: "company.example/placement", pinned: "v0.1.0", want: "v0.1.0", entry: "standard"},
		{path: "company.example/placement@v0", want: "v0.2.0", entry: "standard"},
		{path: "company.example/placement@v0.3.0-rc.1", want: "v0.3.0-rc.1", entry: "standard"},
		{path: "company.example/placement@v0.2.0", pinned: "v0.1.0", want: "v0.2.0", entry: "standard"},
		{path: "company.example/placement/batch", want: "v0.2.0", entry: "nightly", importPath: "company.example/placement/batch"},
		{path: "company.example/placement/batch@v0.1.0", want: "v0.1.0", entry: "nightly", importPath: "company.example/placement/batch"},
	} {
		dir := t.TempDir()
		depending(t, dir, "package placement\n", tt.pinned, false)
		c, err := load.FetchCatalog(t.Context(), tt.path, filepath.Join(dir, "placement"))
		if err != nil {
			t.Errorf("%s: %v", tt.path, err)
			continue
		}
		if tt.importPath == "" {
			tt.importPath = "company.example/placement"
		}
		if c.Module != "company.example/placement@v0" || c.Version != tt.want || c.ImportPath != tt.importPath || len(c.Entries) != 1 || c.Entries[0].Name != tt.entry {
			t.Errorf("%s, pinned %q: got %s %s of %s with %v", tt.path, tt.pinned, c.ImportPath, c.Version, c.Module, c.Entries)
		}
		_, before, after, err := c.Required(filepath.Join(dir, "placement"))
		switch clash := tt.pinned != "" && tt.pinned != tt.want; {
		case clash && (err == nil || !strings.Contains(err.Error(), "depends on v0.1.0 of company.example/placement@v0, not on v0.2.0")):
			t.Errorf("%s, pinned %q: got %v", tt.path, tt.pinned, err)
		case !clash && (err != nil || tt.pinned == "" == (string(before) == string(after))):
			t.Errorf("%s, pinned %q: %v, from\n%s\nto\n%s", tt.path, tt.pinned, err, before, after)
		}
	}
	for path, want := range map[string]string{
		"company.example/placements":        "the registry has no such module",
		"company.example/placement@v1":      "the registry has no such module",
		"company.example/placement@v0.9.0":  "the registry has no such module",
		"company.example/placement/nightly": "v0.2.0 of company.example/placement@v0 has no folder nightly",
	} {
		if _, err := load.FetchCatalog(t.Context(), path, t.TempDir()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", path, err)
		}
	}
}
