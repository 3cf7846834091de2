package docs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/internal/lint"
	"github.com/kubectl-sched/kubectl-sched/internal/lint/settings"
)

// YAML on a page is what its kind may be, and has no field that the kind has not: objects
// of Kubernetes and of ours, kustomizations, jobs of GitHub and of GitLab.
func TestYAML(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, p := range pages(t) {
		if _, ok := elsewhere[p.path]; ok {
			continue
		}
		for _, b := range p.Blocks {
			remarks, err := said(b)
			_, not := get(remarks, "not run:")
			_, other := get(remarks, "run by")
			if b.Language != "yaml" || not || other || err != nil {
				continue // TestEveryBlockIsHeld reports the error
			}
			checked++
			text := b.Text
			if part, ok := get(remarks, "part of"); ok {
				version, kind, _ := strings.Cut(part, " ")
				text = fmt.Sprintf("apiVersion: %s\nkind: %s\n%s", version, kind, text)
			}
			if err := judgeYAML(text); err != nil {
				t.Errorf("%s:%d: %v", p.path, b.Line, err)
			}
		}
	}
	if checked < 5 {
		t.Errorf("%d blocks only", checked)
	}
}

// TestYAMLIsJudged holds that the test above can fail.
func TestYAMLIsJudged(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"apiVersion: v1\nkind: Pod\nspec: {nodeNam: a}\n",
		"apiVersion: v1\nkind: Pod\n---\napiVersion: v1\nkind: Nod\n",
		"apiVersion: kubectl-sched.github.io/v1alpha1\nkind: Snapshot\n---\napiVersion: v1\nkind: Node\nmetadata: {nam: a}\n",
		"apiVersion: kubectl-sched.github.io/v1alpha1\nkind: LintSettings\nseverity: {policy/overlap: of}\n",
		"apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n- patch: |\n    apiVersion: apps/v1\n    kind: Deployment\n    spec: {tmplate: {}}\n",
		"apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatchs: []\n",
		"- run: a\n  uses: b\n", "- rum: a\n", "- {}\n", "lint: {scrip: a}\n", "lint: {}\n", "a: 1\n", "a: [\n", "3\n",
	} {
		if judgeYAML(text) == nil {
			t.Errorf("nothing is wrong with\n%s", text)
		}
	}
}

// judgeYAML returns what is wrong with a block.
func judgeYAML(text string) error {
	var list []any
	if yaml.Unmarshal([]byte(text), &list) == nil {
		_, err := steps(text)
		return err
	}
	var head struct{ APIVersion, Kind string }
	first, _, _ := strings.Cut(text, "\n---\n")
	if err := yaml.Unmarshal([]byte(first), &head); err != nil {
		return err
	}
	switch group, _, _ := strings.Cut(head.APIVersion, "/"); {
	case head.Kind == "":
		_, err := gitlabJobs(text)
		return err
	case head.Kind == "Snapshot":
		_, err := snapshot.Read(strings.NewReader(text), snapshot.ReadOptions{})
		return err
	case head.Kind == "LintSettings":
		_, findings := settings.Parse("settings.yaml", []byte(text), ruleNames())
		if findings.HasErrors() {
			return findings
		}
		return nil
	case group == "kustomize.config.k8s.io":
		return judgeKustomization(text)
	}
	for _, document := range strings.Split(text, "\n---\n") {
		if err := judgeObject(document); err != nil {
			return err
		}
	}
	return nil
}

// judgeObject returns what is wrong with an object of Kubernetes.
func judgeObject(text string) error {
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{Yaml: true, Strict: true})
	_, _, err := strict.Decode([]byte(text), nil, nil)
	return err
}

// judgeKustomization returns what is wrong with a kustomization, patches in it included.
func judgeKustomization(text string) error {
	var k types.Kustomization
	if err := k.Unmarshal([]byte(text)); err != nil {
		return err
	}
	var errs []error
	for _, patch := range k.Patches {
		if patch.Patch != "" && !strings.HasPrefix(patch.Patch, "-") {
			errs = append(errs, judgeObject(patch.Patch))
		}
	}
	return errors.Join(errs...)
}

// step is a step of a job of GitHub, with all that steps of the pages may have.
type step struct {
	Name string            `json:"name"`
	ID   string            `json:"id"`
	If   string            `json:"if"`
	Uses string            `json:"uses"`
	Run  string            `json:"run"`
	With map[string]any    `json:"with"`
	Env  map[string]string `json:"env"`
}

// steps reads steps of a job.
func steps(text string) (list []step, err error) {
	if err := yaml.UnmarshalStrict([]byte(text), &list); err != nil {
		return nil, err
	}
	for i, s := range list {
		if (s.Run == "") == (s.Uses == "") {
			return nil, fmt.Errorf("step %d must either run or use something", i+1)
		}
	}
	return list, nil
}

// job is a job of GitLab, with all that jobs of the pages may have.
type job struct {
	Stage     string `json:"stage"`
	Image     string `json:"image"`
	Script    any    `json:"script"` // a command, or several
	Artifacts struct {
		When    string            `json:"when"`
		Paths   []string          `json:"paths"`
		Reports map[string]string `json:"reports"`
	} `json:"artifacts"`
}

// gitlabJobs reads jobs by their names.
func gitlabJobs(text string) (jobs map[string]job, err error) {
	if err := yaml.UnmarshalStrict([]byte(text), &jobs); err != nil {
		return nil, err
	}
	for name, j := range jobs {
		if len(lines(j.Script)) == 0 {
			return nil, fmt.Errorf("job %s runs nothing", name)
		}
	}
	return jobs, nil
}

// jobScripts are the commands of the steps or jobs that a block has.
func jobScripts(text string) (all []string) {
	if list, err := steps(text); err == nil {
		for _, s := range list {
			if s.Run != "" {
				all = append(all, s.Run)
			}
		}
		return all
	}
	jobs, err := gitlabJobs(text)
	if err != nil {
		return nil // an object; what is wrong with it, TestYAML says
	}
	for _, j := range jobs {
		all = append(all, lines(j.Script)...)
	}
	slices.Sort(all)
	return all
}

func lines(script any) (all []string) {
	switch s := script.(type) {
	case string:
		return []string{s}
	case []any:
		for _, line := range s {
			all = append(all, fmt.Sprint(line))
		}
	}
	return all
}

func ruleNames() (names []string) {
	for _, r := range lint.Documented() {
		names = append(names, r.ID)
	}
	return names
}
