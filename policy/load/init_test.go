package load_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	cueload "cuelang.org/go/cue/load"
	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-sched/kubectl-sched/catalog"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

// vet does what `cue vet -c` does in a folder without a registry.
func vet(t *testing.T, dir string) error {
	t.Helper()
	inst := cueload.Instances([]string{"."}, &cueload.Config{Dir: dir, Env: []string{"CUE_REGISTRY=none"}})[0]
	if inst.Err != nil {
		return inst.Err
	}
	return cuecontext.New().BuildInstance(inst).Validate(cue.Concrete(true))
}

func TestInit(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "My Placement")
	written, err := load.Init(dir, load.InitOptions{Vendor: true})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		filepath.Join(dir, "placement.cue"),
		filepath.Join(dir, "cue.mod/module.cue"),
		filepath.Join(dir, "cue.mod/pkg/github.com/kubectl-sched/kubectl-sched/policy/schema.cue"),
		filepath.Join(dir, "cue.mod/pkg/github.com/kubectl-sched/kubectl-sched/policy/schema_tests.cue"),
	}
	entries, err := fs.Glob(catalog.Source(), "*.cue")
	if err != nil || len(entries) == 0 {
		t.Fatal(entries, err)
	}
	for _, name := range entries {
		want = append(want, filepath.Join(dir, "cue.mod/pkg/github.com/kubectl-sched/kubectl-sched/catalog", name))
	}
	if diff := cmp.Diff(want, written); diff != "" {
		t.Error(diff)
	}
	if err := vet(t, dir); err != nil {
		t.Errorf("cue vet: %v", err)
	}
	evaluate := func() (*policy.Placement, diag.Findings) {
		return load.Evaluate(context.Background(), load.Options{Dir: dir, Paths: []string{"."}})
	}
	if p, findings := evaluate(); len(findings) > 0 || len(p.Policies) != 1 {
		t.Errorf("got %v, %v", p, findings)
	}
	for _, name := range written[:2] {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if formatted, err := load.Format(data, name); err != nil || string(formatted) != string(data) {
			t.Errorf("%s is not formatted: %v\n%s", name, err, formatted)
		}
	}

	// A mistyped field fails plain CUE too, at the top and below.
	for _, source := range []string{
		"policies: x: {workloads: names: [\"a\"], sperad: zone: strength: \"prefer\"}",
		"policies: x: {workloads: names: [\"a\"], nodes: require: zoens: [\"a\"]}",
		"policies: x: {workloads: names: [\"a\"], spread: zone: strength: \"required\"}",
		"pools: x: {nodes: labels: a: \"b\", manegedBy: \"live\"}",
		"clusters: x: {surfaces: \"live\"}",
		"policies: \"Not A Name\": {workloads: names: [\"a\"], apart: \"No Name\": strength: \"prefer\"}",
	} {
		file := filepath.Join(dir, "extra.cue")
		write(t, file, []byte("package my_placement\n"+source+"\n"))
		if err := vet(t, dir); err == nil {
			t.Errorf("cue vet accepts %s", source)
		}
		if _, findings := evaluate(); !findings.HasErrors() {
			t.Errorf("Evaluate accepts %s", source)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}

	if _, err := load.Init(dir, load.InitOptions{}); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("a second Init: %v", err)
	}
	if written, err := load.Vendor(dir); err != nil || len(written) > 0 {
		t.Errorf("Vendor of a current copy: %v, %v", written, err)
	}
}

func TestVendor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := load.Vendor(dir); err == nil {
		t.Error("Vendor outside of a module is no error")
	}
	write(t, filepath.Join(dir, "cue.mod/module.cue"), []byte("module: \"example.com/shop@v0\"\nlanguage: version: \"v0.15.0\"\n"))
	placement := filepath.Join(dir, "teams", "placement")
	written, err := load.Init(placement, load.InitOptions{Package: "shop"})
	if err != nil || len(written) != 1 {
		t.Fatalf("Init inside a module: %v, %v", written, err)
	}
	evaluate := func() diag.Findings {
		_, findings := load.Evaluate(context.Background(), load.Options{Dir: dir, Paths: []string{"teams"}})
		return findings
	}
	if findings := evaluate(); len(findings) > 0 {
		t.Errorf("not vendored: %v", findings)
	}
	if vet(t, placement) == nil {
		t.Error("cue vet finds the schema before it is vendored")
	}
	written, err = load.Vendor(placement)
	if err != nil || len(written) < 3 {
		t.Fatalf("Vendor: %v, %v", written, err)
	}
	if err := vet(t, placement); err != nil {
		t.Errorf("cue vet: %v", err)
	}
	if findings := evaluate(); len(findings) > 0 {
		t.Errorf("vendored: %v", findings)
	}

	schema := filepath.Join(dir, "cue.mod/pkg/github.com/kubectl-sched/kubectl-sched/policy/schema.cue")
	data, err := os.ReadFile(schema)
	if err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]struct{ old, new, want string }{
		"older":  {"schema v", "schema v0.0.", "the vendored schema is v0.0."},
		"edited": {"labels?", "lables?", "the vendored schema has been edited"},
		"own":    {"// Vendored", "// Once vendored", "of no known version"},
	} {
		write(t, schema, []byte(strings.Replace(string(data), edit.old, edit.new, 1)))
		findings := evaluate()
		if len(findings) != 1 || findings[0].Rule != "policy/schema-version" || !strings.Contains(findings[0].Message, edit.want) {
			t.Errorf("%s: got %v", name, findings)
		}
	}
	if written, err := load.Vendor(dir); err != nil || len(written) != 1 {
		t.Errorf("Vendor does not renew: %v, %v", written, err)
	}
	if findings := evaluate(); len(findings) > 0 {
		t.Errorf("renewed: %v", findings)
	}
	write(t, filepath.Join(filepath.Dir(schema), "more.cue"), []byte("package policy\n"))
	if _, err := load.Vendor(dir); err == nil {
		t.Error("Vendor beside a file that is not the schema's is no error")
	}
}

func TestInitRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "mine.cue"), []byte("package mine\n"))
	if written, err := load.Init(dir, load.InitOptions{}); err == nil || len(written) > 0 {
		t.Errorf("got %v, %v", written, err)
	}
	if _, err := load.Init(filepath.Join(dir, "new"), load.InitOptions{Package: "9 lives"}); err == nil {
		t.Error("a bad package name is accepted")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("something was written: %v, %v", entries, err)
	}
}

func TestFormat(t *testing.T) {
	t.Parallel()
	got, err := load.Format([]byte("package a\npolicies:  x:   {a:1,\nbcd:  2}\n// kept\n"), "a.cue")
	want := "package a\n\npolicies: x: {a: 1\n\tbcd: 2\n}\n// kept\n"
	if err != nil || string(got) != want {
		t.Errorf("got %v\n%s", err, got)
	}
	_, err = load.Format([]byte("package a\nx: [\n"), "dir/a.cue")
	var findings diag.Findings
	if !errors.As(err, &findings) || findings[0].Range.Start.File != "dir/a.cue" || findings[0].Rule != "input/syntax" {
		t.Errorf("got %v", err)
	}
}

// A document of somebody else's is written in the place of the starter: whole, not
// over what is there, and never outside of the folder.
func TestInitDocument(t *testing.T) {
	t.Parallel()
	dir, outside := filepath.Join(t.TempDir(), "placement"), t.TempDir()
	document := []byte("package placement\n\npolicies: p: {workloads: namespaces: [\"shop\"], priority: class: \"high\"}\n")
	options := load.InitOptions{Vendor: true, Document: document, File: "imported.cue"}
	if _, err := load.Init(dir, options); err != nil {
		t.Fatal(err)
	}
	p, findings := load.Evaluate(context.Background(), load.Options{Paths: []string{dir}})
	if len(findings) > 0 || len(p.Policies) != 1 {
		t.Fatalf("got %v, %v", p, findings)
	}
	if err := vet(t, dir); err != nil {
		t.Errorf("cue vet: %v", err)
	}
	var there *load.ThereError
	if _, err := load.Init(dir, options); !errors.As(err, &there) {
		t.Errorf("it overwrites: %v", err)
	}
	options.Replace = true
	if _, err := load.Init(dir, options); err != nil {
		t.Error(err)
	}

	// Below a module the copy of the schema belongs elsewhere, and is left out.
	below := filepath.Join(dir, "below")
	options.Package = "below"
	options.Document = []byte("package below\n")
	written, err := load.Init(below, options)
	if want := []string{filepath.Join(below, "imported.cue")}; err != nil || !cmp.Equal(want, written) {
		t.Errorf("wrote %v, %v", written, err)
	}

	// A link that leads out is not followed, and then nothing is written.
	linked := filepath.Join(t.TempDir(), "linked")
	if err := errors.Join(os.Mkdir(linked, 0o755), os.Symlink(outside, filepath.Join(linked, "cue.mod"))); err != nil {
		t.Fatal(err)
	}
	written, err = load.Init(linked, options)
	if entries, readErr := os.ReadDir(outside); err == nil || len(written) > 0 || readErr != nil || len(entries) > 0 {
		t.Errorf("wrote %v and %v outside: %v, %v", written, entries, err, readErr)
	}
}
