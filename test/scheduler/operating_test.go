package scheduler_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/deploy"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/condition"
)

const (
	operatingPage = "../../docs/operating.md"
	operatingDir  = "../../docs/operating"
)

// TestOperating holds that each alert, each panel of the dashboard and the page about
// operating ask for what a scheduler at work serves, by name, label and value, and
// that Prometheus can read it.
func TestOperating(t *testing.T) {
	t.Parallel()
	withoutAPI.start(t)
	l := newLab(t, withoutAPI, 4)
	l.work()
	rules, names := readRules(t)
	asked := promcheck(t, rules, readDashboard(t))
	ours := metricsInSource(t)
	page := readPage(t)
	wanted := map[string]bool{}
	for _, name := range append(slices.Collect(maps.Keys(ours)), metricsIn(page)...) {
		wanted[name] = true
	}
	for _, s := range asked {
		wanted[family(s.Metric)] = true
	}
	delete(wanted, "up") // Prometheus' own
	served := l.untilServed(slices.Sorted(maps.Keys(wanted)))

	for _, s := range asked {
		if s.Metric != "up" {
			s.check(t, served[family(s.Metric)])
		}
		if got, ok := s.Equal["job"]; ok && got != deploy.Name {
			t.Errorf("%s: job is %q, and the ServiceMonitor makes it %q", s.Of, got, deploy.Name)
		}
	}
	documented := map[string]bool{}
	for _, name := range metricsIn(page) {
		if strings.HasPrefix(name, "kubectl_sched_") {
			documented[name] = true
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(ours)), slices.Sorted(maps.Keys(documented))); diff != "" {
		t.Errorf("metrics in %s (-source +page):\n%s", operatingPage, diff)
	}
	for _, name := range names {
		if !strings.Contains(page, "### "+name+"\n") {
			t.Errorf("%s does not say what to do at alert %s", operatingPage, name)
		}
	}
	for heading := range strings.Lines(page) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(heading), "### Placement"); ok && !slices.Contains(names, "Placement"+name) {
			t.Errorf("%s has alert Placement%s, which there is not", operatingPage, name)
		}
	}
}

// work has the scheduler do something of each kind that is counted.
func (l *lab) work() {
	l.Helper()
	l.create(l.pod("single", nil))
	nowhere := l.pod("nowhere", nil)
	nowhere.Spec.NodeSelector = map[string]string{poolLabel: "nobody"}
	l.create(nowhere)
	l.podGroup("gang", 2)
	for i := range 2 {
		l.create(l.member("gang", i))
	}
	cached := l.pod("cached", nil)
	cached.Spec.SchedulerName = cacheName
	const gate = condition.Prefix + "gang"
	text, err := condition.Encode(&condition.Condition{Peers: &condition.Peers{Selector: gangkey.Label + "=gang", Min: 2}})
	if err != nil {
		l.Fatal(err)
	}
	cached.Annotations = map[string]string{gate: text}
	cached.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: gate}}
	l.create(cached)
	l.untilBound("single", 1)
	l.untilBound("gang", 2)
	l.untilBound("cached", 1)
	l.untilUnschedulable("nowhere", 1)
}

// untilServed waits until the scheduler serves all of the metrics, and returns all
// that it serves.
func (l *lab) untilServed(names []string) (served map[string]*dto.MetricFamily) {
	l.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}} // as the ServiceMonitor has it
	l.until("all metrics", func(ctx context.Context) (bool, string) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/metrics", l.port), nil)
		if err != nil {
			return false, err.Error()
		}
		response, err := client.Do(request)
		if err != nil {
			return false, err.Error()
		}
		defer response.Body.Close()
		text := expfmt.NewTextParser(model.UTF8Validation)
		if served, err = text.TextToMetricFamilies(response.Body); err != nil || response.StatusCode != http.StatusOK {
			return false, fmt.Sprint(response.Status, err)
		}
		missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return served[name] != nil })
		return len(missing) == 0, "missing " + strings.Join(missing, ", ")
	})
	return served
}

// series is a selector in an expression, as tools/promcheck tells it.
type series struct {
	Of, Metric string
	Labels     []string
	Equal      map[string]string
}

// ofTarget are the labels that Prometheus gives to what it scrapes.
var ofTarget = []string{"job", "instance", "namespace", "pod", "service", "endpoint", "container"}

// check holds that the metric has the labels that are asked for, and some series of
// ours the values.
func (s series) check(t *testing.T, served *dto.MetricFamily) {
	t.Helper()
	values := map[string]map[string]bool{}
	for _, m := range served.GetMetric() {
		for _, label := range m.GetLabel() {
			if values[label.GetName()] == nil {
				values[label.GetName()] = map[string]bool{}
			}
			values[label.GetName()][label.GetValue()] = true
		}
	}
	for _, label := range s.Labels {
		if slices.Contains(ofTarget, label) || label == "le" && served.GetType() == dto.MetricType_HISTOGRAM {
			continue
		}
		if values[label] == nil {
			t.Errorf("%s: %s has no label %s; it has %v", s.Of, s.Metric, label, slices.Sorted(maps.Keys(values)))
		}
		value, ok := s.Equal[label]
		// A result that is an error cannot be had at will; all else was at work.
		if ok && !values[label][value] && value != "error" {
			t.Errorf("%s: %s never has %s=%q; it has %v", s.Of, s.Metric, label, value, slices.Sorted(maps.Keys(values[label])))
		}
	}
}

// family returns the metric of which a name that Prometheus stores is a part.
func family(name string) string {
	for _, part := range []string{"_bucket", "_sum", "_count"} {
		name = strings.TrimSuffix(name, part)
	}
	return name
}

// promcheck reads rules and expressions with Prometheus' parser.
func promcheck(t *testing.T, rules string, expressions map[string]string) []series {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "promcheck")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".")
	build.Dir = "../../tools/promcheck"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build promcheck: %v\n%s", err, out)
	}
	input, err := json.Marshal(map[string]any{"rules": rules, "expressions": expressions})
	if err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), binary)
	run.Stdin = bytes.NewReader(input)
	out, err := run.Output()
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Errors []string
		Series []series
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatal(err)
	}
	for _, e := range answer.Errors {
		t.Error(e)
	}
	if len(answer.Series) < len(expressions) {
		t.Fatalf("of %d expressions, %d selectors were read", len(expressions), len(answer.Series))
	}
	return answer.Series
}

// readRules renders what an operator applies, and returns the rules in it, as a rule
// file, and the names of the alerts.
func readRules(t *testing.T) (rules string, names []string) {
	t.Helper()
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), operatingDir)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, r := range rendered.Resources() {
		kinds[r.GetKind()] = true
		if r.GetNamespace() != deploy.DefaultNamespace {
			t.Errorf("%s goes to namespace %q", r.CurId(), r.GetNamespace())
		}
		if r.GetKind() != "PrometheusRule" {
			continue
		}
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		var object struct {
			Spec struct {
				Groups []struct {
					Name  string           `json:"name"`
					Rules []map[string]any `json:"rules"`
				} `json:"groups"`
			} `json:"spec"`
		}
		if err := yaml.Unmarshal(text, &object); err != nil {
			t.Fatal(err)
		}
		for _, g := range object.Spec.Groups {
			for _, rule := range g.Rules {
				names = append(names, fmt.Sprint(rule["alert"]))
			}
		}
		file, err := yaml.Marshal(object.Spec)
		if err != nil {
			t.Fatal(err)
		}
		rules = string(file)
	}
	if want := map[string]bool{"PrometheusRule": true, "ServiceMonitor": true, "ConfigMap": true}; !maps.Equal(kinds, want) {
		t.Errorf("%s has %v", operatingDir, kinds)
	}
	return rules, names
}

// variables are what Grafana puts in place of its variables.
var variables = strings.NewReplacer("$__rate_interval", "5m", "$job", deploy.Name)

// readDashboard returns the expressions of the dashboard, by panel.
func readDashboard(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(operatingDir, "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		UID    string
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ Expr, RefID string }
		}
	}
	if err := json.Unmarshal(data, &dashboard); err != nil {
		t.Fatal(err)
	}
	expressions, ids := map[string]string{}, map[int]bool{}
	for _, p := range dashboard.Panels {
		if p.Title == "" || ids[p.ID] || len(p.Targets) == 0 {
			t.Errorf("panel %d (%s) has no title, no target, or another's number", p.ID, p.Title)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			expressions["panel "+p.Title+" "+target.RefID] = variables.Replace(target.Expr)
		}
	}
	if dashboard.UID == "" || len(expressions) == 0 {
		t.Error("the dashboard has no uid or no expression")
	}
	return expressions
}

func readPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(operatingPage)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// metricName matches a metric in a page, as `kubectl_sched_x_total`.
var metricName = regexp.MustCompile("`((?:kubectl_sched|scheduler|leader_election|rest_client|process)_[a-z_]+)`")

func metricsIn(page string) (names []string) {
	for _, m := range metricName.FindAllStringSubmatch(page, -1) {
		names = append(names, m[1])
	}
	return names
}

// metricsInSource returns the names of all metrics of ours.
func metricsInSource(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	whole := regexp.MustCompile(`^kubectl_sched_[a-z_]+$`)
	err := filepath.WalkDir("../../schedulerbin", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil && whole.MatchString(text) {
					names[text] = true
				}
			}
			return true
		})
		return nil
	})
	if err != nil || len(names) == 0 {
		t.Fatalf("%d metrics, %v", len(names), err)
	}
	return names
}
