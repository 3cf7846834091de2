package lint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/internal/lint"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/yamldoc"
)

// mutation is a mistake that is put into a chart; see testdata/mutations.yaml.
type mutation struct {
	Rule, Chart, Object string
	Set                 map[string]any
	Also                map[string]map[string]any
	Add, Snapshot       []map[string]any
	Cluster, Policies   bool
	Placement, Text     struct{ From, To string }
}

// TestMutations holds that each rule finds its mistake in a whole chart, at the
// object that has it, and finds nothing of the kind without.
func TestMutations(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/mutations.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var mutations []mutation
	if err := yaml.UnmarshalStrict(data, &mutations); err != nil {
		t.Fatal(err)
	}
	for _, rule := range lint.Rules() {
		if !slices.ContainsFunc(mutations, func(m mutation) bool { return m.Rule == rule.ID }) {
			t.Errorf("no mutation is for %s", rule.ID)
		}
	}
	nodes := string(chartsCluster(t))
	for _, m := range mutations {
		t.Run(m.Rule, func(t *testing.T) {
			t.Parallel()
			chart := m.chart(t)
			before, after := manifestsIn(t, chart), manifestsIn(t, chart)
			changed, written := 0, 0
			for name, text := range after {
				if m.Text.From != "" {
					written += strings.Count(text, m.Text.From)
					after[name] = strings.ReplaceAll(text, m.Text.From, m.Text.To)
					continue
				}
				docs := documents(t, text)
				for _, object := range docs {
					changed += m.change(t, object)
				}
				after[name] = joined(t, docs)
			}
			if m.Text.From != "" && written != 1 {
				t.Fatalf("%q is there %d times", m.Text.From, written)
			}
			if want := len(m.Also); changed != want && changed != want+1 {
				t.Fatalf("%d objects were changed", changed)
			}
			after["added"] = joined(t, m.Add)

			was, is := m.input(t, chart, before, nodes, false), m.input(t, chart, after, nodes, true)
			for _, f := range of(m.Rule, lint.Check(was)) {
				if f.Subject == m.Object {
					t.Errorf("found without the mistake: %s", f)
				}
			}
			found := of(m.Rule, lint.Check(is))
			for _, f := range found {
				if f.Subject == m.Object {
					return
				}
			}
			t.Errorf("not found; the rule says\n%s", show(found))
		})
	}
}

// chart is the folder of the chart: that which is named, or which has the object.
func (m mutation) chart(t *testing.T) string {
	t.Helper()
	if m.Chart != "" {
		return filepath.Join(charts, m.Chart)
	}
	for _, namespace := range []struct{ prefix, chart string }{
		{"weft", "weft"},
		{"harbourgate/", "harbourgate"},
		{"kube-system/", "blockvol"},
		{"observability/", "promstack"},
		{"scheduling/", "../../internal/lint/testdata/second-scheduler"},
	} {
		if strings.Contains(m.Object, " "+namespace.prefix) {
			return filepath.Join(charts, namespace.chart)
		}
	}
	t.Fatalf("no chart has %q", m.Object)
	return ""
}

// input is what is judged, with the mistake in policies and cluster or without.
func (m mutation) input(t *testing.T, chart string, texts map[string]string, nodes string, mutated bool) lint.Input {
	t.Helper()
	policies := ""
	if m.Policies || m.Placement.From != "" {
		policies = filepath.Join(chart, "placement")
	}
	if mutated && m.Placement.From != "" {
		policies = t.TempDir()
		files, err := filepath.Glob(filepath.Join(chart, "placement", "*.cue"))
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		text, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(text), m.Placement.From) != 1 {
			t.Fatalf("%q is not there once", m.Placement.From)
		}
		text = []byte(strings.Replace(string(text), m.Placement.From, m.Placement.To, 1))
		if err := os.WriteFile(filepath.Join(policies, "p.cue"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var cluster *snapshot.Snapshot
	if m.Cluster {
		more := ""
		if mutated || m.Rule == "workload/hostname-is-not-name" {
			more = "\n---\n" + joined(t, m.Snapshot)
		}
		cluster = readCluster(t, []byte(nodes+more))
	}
	return inputOf(t, texts, policies, cluster)
}

// change applies the mutation to an object, and says how many it is meant for.
func (m mutation) change(t *testing.T, object map[string]any) int {
	t.Helper()
	metadata, _ := object["metadata"].(map[string]any)
	ref := fmt.Sprintf("%v %v/%v", object["kind"], metadata["namespace"], metadata["name"])
	set := m.Also[ref]
	if ref == m.Object {
		set = m.Set
	}
	if set == nil {
		return 0
	}
	for path, value := range set {
		at := object
		steps := strings.Split(strings.ReplaceAll(path, `\.`, "\x00"), ".")
		for i, step := range steps {
			step = strings.ReplaceAll(step, "\x00", ".")
			if i == len(steps)-1 {
				at[step] = value
				break
			}
			next, ok := at[step].(map[string]any)
			if !ok {
				t.Fatalf("%s has no %s", ref, path)
			}
			at = next
		}
	}
	return 1
}

// documents are the objects of a YAML file.
func documents(t *testing.T, text string) []map[string]any {
	t.Helper()
	var out []map[string]any
	for _, d := range yamldoc.Split([]byte(text)) {
		value, problems := d.Decode()
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		if object, ok := value.(map[string]any); ok {
			out = append(out, object)
		}
	}
	return out
}

func joined(t *testing.T, objects []map[string]any) string {
	t.Helper()
	var docs []string
	for _, o := range objects {
		data, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, string(data))
	}
	return strings.Join(docs, "---\n")
}
