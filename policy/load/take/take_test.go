package take_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-sched/kubectl-sched/policy/load"
	"github.com/kubectl-sched/kubectl-sched/policy/load/take"
)

// request is one for an entry of the catalog that is shipped.
func request(t *testing.T, entry, name string, text string, set ...string) take.Request {
	t.Helper()
	c, err := load.ReadCatalog()
	if err != nil {
		t.Fatal(err)
	}
	e, err := c.Entry(entry)
	if err != nil {
		t.Fatal(err)
	}
	return take.Request{Catalog: c, Entry: e, Name: name, Set: set, Text: []byte(text), Package: "shop"}
}

// TestNewFile holds what is written where there is no file.
func TestNewFile(t *testing.T) {
	t.Parallel()
	got, err := take.Into(request(t, "web-service", "shop-web", "", "zones=3", "workloads.namespaces=shop,cart", `workloads.pods.labels."app.kubernetes.io/part-of"=shop`))
	if err != nil {
		t.Fatal(err)
	}
	want := `package shop

import "github.com/kubectl-sched/kubectl-sched/catalog"

// "kubectl sched catalog show web-service" says what this is for.
_shop_web: catalog.#WebService & {
	workloads: namespaces: ["shop", "cart"]
	workloads: pods: labels: "app.kubernetes.io/part-of": "shop"
	zones: 3
}
policies: "shop-web": _shop_web.#policy
`
	if diff := cmp.Diff(want, string(got.Text)); diff != "" {
		t.Error(diff)
	}
	if got.First != 5 || got.Last != 11 || len(got.Missing) > 0 {
		t.Errorf("%+v", got)
	}
}

// TestFileStaysAsItIs holds that nothing is changed in a file but what is added to it,
// wherever its imports are.
func TestFileStaysAsItIs(t *testing.T) {
	t.Parallel()
	const spec = `"github.com/kubectl-sched/kubectl-sched/catalog"`
	for name, test := range map[string]struct{ before, with string }{
		"no import":   {"// Ours.\npackage shop // for all\n\npolicies: {}\n", "// Ours.\npackage shop // for all\n\nimport " + spec + "\n\npolicies: {}\n"},
		"one import":  {"package shop\n\nimport \"strings\" // why\n\n_x: strings.Join([], \"\")\n", "package shop\n\nimport \"strings\" // why\n\nimport " + spec + "\n\n_x: strings.Join([], \"\")\n"},
		"a block":     {"package shop\n\nimport (\n\t\"strings\"\n)\n\n_x: strings\n", "package shop\n\nimport (\n\t\"strings\"\n\t" + spec + "\n)\n\n_x: strings\n"},
		"there":       {"package shop\n\nimport " + spec + "\n\n_x: catalog\n", "package shop\n\nimport " + spec + "\n\n_x: catalog\n"},
		"unformatted": {"package   shop\npolicies:   {}   // so\n\n\n", "package   shop\n\nimport " + spec + "\npolicies:   {}   // so\n"},
		"no newline":  {"package shop", "package shop\n\nimport " + spec + "\n"},
	} {
		got, err := take.Into(request(t, "web-service", "web", test.before, "workloads.namespaces=shop"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		before, _, _ := strings.Cut(string(got.Text), "\n// \"kubectl sched")
		if diff := cmp.Diff(test.with, before); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// TestOtherNames holds that a file's own names are respected.
func TestOtherNames(t *testing.T) {
	t.Parallel()
	got, err := take.Into(request(t, "web-service", "web", "package shop\n\nimport shipped \"github.com/kubectl-sched/kubectl-sched/catalog\"\n\n_x: shipped\n"))
	if err != nil || !strings.Contains(string(got.Text), "_web: shipped.#WebService & {") {
		t.Errorf("%s, %v", got.Text, err)
	}
	got, err = take.Into(request(t, "web-service", "web", "package shop\n\nimport \"company.example/catalog\"\n\n_x: catalog\n"))
	if err != nil || !strings.Contains(string(got.Text), "import catalog2 \"github.com") || !strings.Contains(string(got.Text), "_web: catalog2.#WebService") {
		t.Errorf("%s, %v", got.Text, err)
	}
}

// TestPlaceholders holds that a required parameter without a value gets one that says
// what belongs there.
func TestPlaceholders(t *testing.T) {
	t.Parallel()
	got, err := take.Into(request(t, "shared-gpu", "serve", "", "devices=2"))
	if err != nil {
		t.Fatal(err)
	}
	var missing []string
	for _, p := range got.Missing {
		missing = append(missing, p.Path)
	}
	if diff := cmp.Diff([]string{"workloads", "perDevice"}, missing); diff != "" {
		t.Error(diff)
	}
	for _, want := range []string{
		"\tworkloads: error(\"workloads selects what it is for, as in a policy\")\n",
		"\tperDevice: error(\"perDevice is the memory that a pod needs on each of its devices, such as \\\"12Gi\\\"\")\n",
	} {
		if !strings.Contains(string(got.Text), want) {
			t.Errorf("no %q in\n%s", want, got.Text)
		}
	}
}

// TestResults holds by which names pools and further policies are taken over, and that a
// pool which is there by the same entry is not made twice.
func TestResults(t *testing.T) {
	t.Parallel()
	lines := func(text []byte) (found []string) {
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "pools:") || strings.HasPrefix(line, "policies:") {
				found = append(found, strings.Join(strings.Fields(line), " "))
			}
		}
		return found
	}
	got, err := take.Into(request(t, "tenant-pool", "speech", "", "namespaces=speech"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"pools: speech: _speech.#pool", "policies: speech: _speech.#policy"}, lines(got.Text)); diff != "" {
		t.Error(diff)
	}
	got, err = take.Into(request(t, "latency-critical", "search", ""))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"policies: search: _search.#policy", `policies: "search-batch": _search.#batch`}, lines(got.Text)); diff != "" {
		t.Error(diff)
	}
	got, err = take.Into(request(t, "spot-fallback", "a", ""))
	if err != nil {
		t.Fatal(err)
	}
	again, err := take.Into(request(t, "spot-fallback", "b", string(got.Text)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"pools: spot: _a.#spot", "policies: a: _a.#policy", "policies: b: _b.#policy"}, lines(again.Text)); diff != "" || len(again.Kept) != 1 {
		t.Error(diff, again.Kept)
	}
}

// TestRefused holds what is refused, and why.
func TestRefused(t *testing.T) {
	t.Parallel()
	const document = "package shop\n\n_web: 1\npolicies: \"shop-web\": {}\npools: spot: {}\n"
	for name, test := range map[string]struct {
		entry, name, text string
		set               []string
		want              string
	}{
		"policy there":      {"web-service", "shop-web", document, nil, `policies has "shop-web" already; choose another name with --name`},
		"field there":       {"web-service", "web", document, nil, "have a field _web already"},
		"pool there":        {"spot-fallback", "b", document, nil, `pools has "spot" already; choose another name with --set spot=NAME`},
		"bad name":          {"web-service", "Web", "", nil, `the name "Web" must be lower-case`},
		"no such parameter": {"web-service", "web", "", []string{"zonez=3"}, `web-service has no parameter "zonez"; did you mean "zones"?`},
		"no value":          {"web-service", "web", "", []string{"zones"}, "must be key=value"},
		"no path":           {"web-service", "web", "", []string{"workloads..x=3"}, "the key is no path"},
		"no CUE":            {"web-service", "web", "", []string{"workloads={names"}, "the value is no CUE"},
		"twice":             {"web-service", "web", "", []string{"zones=3", "zones=4"}, "zones is set twice"},
		"no syntax":         {"web-service", "web", "package shop\n}", nil, "cannot be parsed"},
	} {
		_, err := take.Into(request(t, test.entry, test.name, test.text, test.set...))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A name that is in another file of the package is taken as well.
	r := request(t, "web-service", "shop-web", "")
	r.Others = [][]byte{[]byte(document)}
	if _, err := take.Into(r); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("in another file: %v", err)
	}
}

// TestValues holds how a value on a command line becomes CUE.
func TestValues(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"min=8":                             "min: 8",
		"min=all":                           `min: "all"`,
		"timeout=90s":                       `timeout: "90s"`,
		"pool=true":                         `pool: "true"`,
		`pool="x"`:                          `pool: "x"`,
		"workloads.names=a":                 `workloads: names: ["a"]`,
		"workloads.names=[\"a\"]":           `workloads: names: ["a"]`,
		"workloads={names: [\"a\"]}":        `workloads: {names: ["a"]}`,
		"workloads.labels.tier=1.20":        `workloads: labels: tier: "1.20"`,
		"workloads.pods.labels.\"a.b/c\"=x": `workloads: pods: labels: "a.b/c": "x"`,
		"workloads.labels.image=nginx:1 \\(evil)": `workloads: labels: image: "nginx:1 \\(evil)"`,
	} {
		got, err := take.Into(request(t, "gpu-gang", "run", "", said))
		if err != nil {
			t.Errorf("%s: %v", said, err)
			continue
		}
		plain := strings.Join(strings.Fields(string(got.Text)), " ")
		if !strings.Contains(plain, want) {
			t.Errorf("%s: no %s in\n%s", said, want, got.Text)
		}
	}
}
