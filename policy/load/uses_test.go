package load_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

// useOf is a document that uses an entry; {{ }} in it stands for the parameters.
const useOf = `package shop

import "github.com/kubectl-sched/kubectl-sched/catalog"

_web: catalog.#WebService & {
	workloads: namespaces: ["shop"]
	{{ }}
}
policies: web: _web.#policy
`

// TestParametersAreJudgedWhereTheyAreWritten holds that a mistake in a parameter is one
// finding, at the user's line, with the catalog's own words.
func TestParametersAreJudgedWhereTheyAreWritten(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		parameters string
		// replace is a text of the document and what stands in its place.
		replace [2]string
		want    []string
	}{
		"right":         {parameters: `zones: 3`},
		"out of bounds": {parameters: `zones: 30`, want: []string{`7:9 policy/bad-value zones must be a whole number from 1 to 10, not 30`}},
		"wrong kind":    {parameters: `zones: "3"`, want: []string{`7:9 policy/bad-value zones must be a whole number from 1 to 10, not "3"`}},
		"wrong word":    {parameters: `ownNode: "never"`, want: []string{`7:11 policy/bad-value ownNode must be "prefer" or "require", not "never"`}},
		"misspelt":      {parameters: `zonez: 3`, want: []string{`7:2 policy/unknown-field unknown field "zonez"; did you mean "zones"?`}},
		"two mistakes": {parameters: `zones: 0, maxSkew: -1`, want: []string{
			`7:9 policy/bad-value zones must be a whole number from 1 to 10, not 0`,
			`7:21 policy/bad-value maxSkew must be a whole number from 1 to 100, not -1`,
		}},
		"inside of a parameter": {replace: [2]string{"namespaces:", "namespacs:"}, want: []string{
			`6:13 policy/unknown-field unknown field "namespacs" in "workloads"; did you mean "namespaces"?`,
		}},
		"missing": {replace: [2]string{`	workloads: namespaces: ["shop"]`, ""}, want: []string{
			`5:1 policy/missing-field field "workloads" is missing; workloads selects what it is for, as in a policy`,
		}},
		"left to fill in": {replace: [2]string{`workloads: namespaces: ["shop"]`, `workloads: error("which ones")`}, want: []string{
			`6:13 policy/incomplete "workloads" is still to be filled in: which ones`,
		}},
		"no such result": {replace: [2]string{"_web.#policy", "_web.#polcy"}, want: []string{
			`9:16 policy/reference _web.#polcy is nothing that comes of catalog.#WebService; did you mean "_web.#policy"?`,
		}},
		"no such entry": {replace: [2]string{"#WebService", "#WebServices"}, want: []string{
			`5:7 policy/reference the catalog has no catalog.#WebServices; did you mean "catalog.#WebService"?`,
		}},
		"in a let": {parameters: "}\nlet other = catalog.#WebService & {\n\tworkloads: namespaces: [\"x\"]", replace: [2]string{"_web.#policy", "other.#policy"}, want: []string{
			`8:5 policy/reference the parameters of catalog.#WebService are not checked here; give it a hidden field of its own, such as _web: catalog.#WebService & {…}, and refer to that`,
		}},
		"in an expression": {replace: [2]string{"policies: web: _web.#policy", `policies: web: (catalog.#WebService & {workloads: namespaces: ["shop"], zonez: 3}).#policy`}, want: []string{
			`9:16 policy/reference the parameters of catalog.#WebService are not checked here; give it a hidden field of its own, such as _web: catalog.#WebService & {…}, and refer to that`,
		}},
		"no import": {replace: [2]string{`import "github.com/kubectl-sched/kubectl-sched/catalog"`, ""}, want: []string{
			`5:7 policy/reference nothing is called "catalog" here; add: import "github.com/kubectl-sched/kubectl-sched/catalog"`,
		}},
		"in what is added to the policy": {replace: [2]string{"_web.#policy", `_web.#policy & {priorty: class: "x"}`}, want: []string{
			`9:32 policy/unknown-field unknown field "priorty"; did you mean "priority"?`,
		}},
		"what the language says of the policy": {replace: [2]string{`["shop"]`, `["Shop"]`}, want: []string{
			`6:26 policy/bad-name "Shop" cannot be a namespace: its name must be lower-case letters, digits and "-", at most 63, beginning and ending with a letter or digit`,
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			text := strings.Replace(useOf, "{{ }}", test.parameters, 1)
			if test.replace[0] != "" {
				text = strings.Replace(text, test.replace[0], test.replace[1], 1)
			}
			write(t, filepath.Join(dir, "shop.cue"), []byte(text))
			p, findings := load.Evaluate(t.Context(), load.Options{Dir: dir, Paths: []string{"."}})
			var got []string
			for _, f := range findings {
				got = append(got, fmt.Sprintf("%d:%d %s %s", f.Range.Start.Line, f.Range.Start.Column, f.Rule, f.Message))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if len(test.want) == 0 && len(p.Policies) != 1 {
				t.Errorf("policies %v", p.Policies)
			}
		})
	}
}

// TestPositionsOfEntries holds that what comes of an entry is positioned where the
// parameter behind it was written, or else where the document takes it over.
func TestPositionsOfEntries(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "shop.cue"), []byte(strings.Replace(useOf, "{{ }}", "zones: 3", 1)))
	p, findings := load.Evaluate(t.Context(), load.Options{Dir: dir, Paths: []string{"."}})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	for path, want := range map[string]int{"": 9, "workloads": 6, "workloads namespaces 0": 6, "spread zone minDomains": 7, "spread node": 9} {
		if got := p.Policies[0].Positions.At(strings.Fields(path)...).Start; got.Line != want || got.File != "shop.cue" {
			t.Errorf("%q is at %v, want line %d", path, got, want)
		}
	}
}

// TestUsesInSeveralFolders holds that a use in a folder above is judged once, and that its
// policy belongs to that folder.
func TestUsesInSeveralFolders(t *testing.T) {
	t.Parallel()
	for _, zones := range []string{"3", "30"} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "cue.mod/module.cue"), []byte("module: \"example.com/shop@v0\"\nlanguage: version: \"v0.15.0\"\n"))
		write(t, filepath.Join(dir, "placement/shop.cue"), []byte(strings.Replace(useOf, "{{ }}", "zones: "+zones, 1)))
		write(t, filepath.Join(dir, "placement/team/team.cue"), []byte("package shop\n\npolicies: team: {workloads: namespaces: [\"team\"], spread: node: strength: \"prefer\"}\n"))
		p, findings := load.Evaluate(t.Context(), load.Options{Dir: dir, Paths: []string{"placement"}})
		switch {
		case zones == "3" && (len(findings) > 0 || len(p.Policies) != 2):
			t.Errorf("%v, %v", p, findings)
		case zones == "30" && len(findings) != 1:
			t.Errorf("%v", findings)
		}
	}
}

// company is a catalog of a company, for which the tests are: one that its users have
// vendored.
const company = `package placement

import "github.com/kubectl-sched/kubectl-sched/policy"

// #Standard is what every service of the company gets.
#Standard: {
	workloads!: policy.#Workloads
	// tier is the service's tier.
	tier: *2 | 1 | 3 | error("tier must be 1, 2 or 3")

	#policy: policy.#Policy & {
		"workloads": workloads
		if tier == 1 {
			spread: zone: strength: "require"
		}
		spread: node: strength: "prefer"
	}
}
`

// TestVendoredCatalog holds that a catalog of a company works like the one that is
// shipped, beside a vendored schema and without one.
func TestVendoredCatalog(t *testing.T) {
	t.Parallel()
	for _, vendored := range []bool{false, true} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "cue.mod/module.cue"), []byte("module: \"example.com/shop@v0\"\nlanguage: version: \"v0.15.0\"\n"))
		write(t, filepath.Join(dir, "cue.mod/pkg/company.example/placement/standard.cue"), []byte(company))
		document := "package shop\n\nimport (\n\t\"company.example/placement\"\n\t\"github.com/kubectl-sched/kubectl-sched/catalog\"\n)\n\n" +
			"_pay: placement.#Standard & {\n\tworkloads: namespaces: [\"pay\"]\n\ttier: 1\n}\npolicies: pay: _pay.#policy\n" +
			"_web: catalog.#WebService & {workloads: namespaces: [\"web\"]}\npolicies: web: _web.#policy\n"
		write(t, filepath.Join(dir, "shop.cue"), []byte(document))
		if vendored {
			if _, err := load.Vendor(dir); err != nil {
				t.Fatal(err)
			}
			if err := vet(t, dir); err != nil {
				t.Errorf("cue vet: %v", err)
			}
		}
		evaluate := func() string {
			p, findings := load.Evaluate(t.Context(), load.Options{Dir: dir, Paths: []string{"."}})
			if len(findings) == 0 && len(p.Policies) != 2 {
				t.Errorf("policies %v", p.Policies)
			}
			return findings.Error()
		}
		if got := evaluate(); got != "" {
			t.Errorf("vendored %v: %s", vendored, got)
		}
		write(t, filepath.Join(dir, "shop.cue"), []byte(strings.Replace(document, "tier: 1", "tier: 4", 1)))
		if got := evaluate(); !strings.Contains(got, "tier must be 1, 2 or 3, not 4") {
			t.Errorf("vendored %v: %s", vendored, got)
		}
	}
}
