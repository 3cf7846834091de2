// Package workflows_test holds the ready-made CI workflows of examples/ to what
// docs/threat-model.md says of them: the job that sees a stranger's files has no rights,
// the one that has some runs nothing, and nothing is run that was not named beforehand.
package workflows_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const folder = "../../examples/review"

// workflow is as much of a GitHub workflow as is judged.
type workflow struct {
	On          map[string]any    `json:"true"` // "on" is a boolean in YAML 1.1
	Permissions map[string]string `json:"permissions"`
	Env         map[string]string `json:"env"`
	Jobs        map[string]struct {
		Permissions map[string]string `json:"permissions"`
		Timeout     int               `json:"timeout-minutes"`
		Steps       []step            `json:"steps"`
	} `json:"jobs"`
}

type step struct {
	Uses string            `json:"uses"`
	Run  string            `json:"run"`
	With map[string]any    `json:"with"`
	Env  map[string]string `json:"env"`
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func parse(t *testing.T, text string) workflow {
	t.Helper()
	var w workflow
	if err := yaml.Unmarshal([]byte(text), &w); err != nil {
		t.Fatal(err)
	}
	return w
}

var (
	pinned     = regexp.MustCompile(`^[\w-]+/[\w-]+@[0-9a-f]{40}$`)
	piped      = regexp.MustCompile(`\|\s*(ba)?sh\b`)
	expression = regexp.MustCompile(`\$\{\{`)
)

// problems returns what a workflow must not have; allowed are the permissions of its
// jobs, beyond which there are none.
func problems(w workflow, allowed map[string]string) []string {
	var out []string
	bad := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if _, ok := w.On["pull_request_target"]; ok {
		bad("pull_request_target runs with rights on what a stranger wrote")
	}
	if len(w.On) == 0 || len(w.Jobs) == 0 {
		bad("it does nothing")
	}
	if w.Permissions == nil {
		bad("permissions are not said, so that they are the repository's")
	}
	for name, job := range w.Jobs {
		permissions := w.Permissions
		if job.Permissions != nil {
			permissions = job.Permissions
		}
		for what, right := range permissions {
			if allowed[what] != right {
				bad("job %s may %s %s", name, right, what)
			}
		}
		if job.Timeout == 0 || job.Timeout > 30 {
			bad("job %s may run for %d minutes", name, job.Timeout)
		}
		for i, s := range job.Steps {
			if s.Uses != "" && !pinned.MatchString(s.Uses) {
				bad("step %d uses %q, which is not one commit", i, s.Uses)
			}
			if script, _ := s.With["script"].(string); expression.MatchString(s.Run + script) {
				bad("step %d puts an expression into a script, which runs it", i)
			}
			if strings.Contains(s.Run, "@latest") || piped.MatchString(s.Run) {
				bad("step %d runs what nobody has named", i)
			}
			if strings.HasPrefix(s.Uses, "actions/checkout@") {
				ref, _ := s.With["ref"].(string)
				if s.With["persist-credentials"] != false || !strings.Contains(ref, "base.sha") {
					bad("step %d checks out %q, credentials kept: %v", i, ref, s.With["persist-credentials"])
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestUntrustedJobHasNoRights(t *testing.T) {
	t.Parallel()
	text := read(t, "github/placement-review.yaml")
	w := parse(t, text)
	if found := problems(w, map[string]string{"contents": "read"}); len(found) > 0 {
		t.Error(strings.Join(found, "\n"))
	}
	if strings.Contains(text, "secrets.") {
		t.Error("it names a secret")
	}
	if !strings.Contains(text, "sha256sum --check --strict") || w.Env["SCHED_VERSION"] == "" || len(w.Env["SCHED_SHA256"]) != 64 {
		t.Error("the plugin is not pinned by version and checksum")
	}
}

func TestTrustedJobRunsNothing(t *testing.T) {
	t.Parallel()
	text := read(t, "github/placement-comment.yaml")
	w := parse(t, text)
	if found := problems(w, map[string]string{"actions": "read", "pull-requests": "write"}); len(found) > 0 {
		t.Error(strings.Join(found, "\n"))
	}
	if len(w.Permissions) > 0 || w.On["workflow_run"] == nil {
		t.Errorf("it has %v for all jobs, and runs on %v", w.Permissions, w.On)
	}
	for _, job := range w.Jobs {
		for _, s := range job.Steps {
			if s.Run != "" || strings.HasPrefix(s.Uses, "actions/checkout@") {
				t.Errorf("it runs %q, uses %q", s.Run, s.Uses)
			}
		}
	}
	for what, must := range map[string]string{
		"a limit of size":               "info.size > most",
		"that the report is a file":     "lstatSync",
		"the pull request of the event": "context.payload.workflow_run",
		"that the commit is still it":   "p.head.sha === run.head_sha",
	} {
		if !strings.Contains(text, must) {
			t.Errorf("it does without %s (%s)", what, must)
		}
	}
	if n := strings.Count(text, "report/"); n != strings.Count(text, "report/comment.md") {
		t.Error("it reads more of the report than the comment")
	}
}

// TestProblemsAreFound holds that the tests above can fail.
func TestProblemsAreFound(t *testing.T) {
	t.Parallel()
	good := read(t, "github/placement-review.yaml")
	for name, edit := range map[string][2]string{
		"another event":   {"  pull_request:\n", "  pull_request_target:\n"},
		"more rights":     {"contents: read", "contents: write"},
		"a tag":           {"actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683", "actions/checkout@v4"},
		"the head":        {"base.sha }}\n          fetch-depth", "head.sha }}\n          fetch-depth"},
		"an expression":   {"mkdir report", "mkdir ${{ github.event.pull_request.title }}"},
		"credentials":     {"persist-credentials: false", "persist-credentials: true"},
		"no limit":        {"timeout-minutes: 15", "timeout-minutes: 600"},
		"whatever is new": {"mkdir report", "go install example.com/x@latest"},
	} {
		bad := strings.Replace(good, edit[0], edit[1], 1)
		if bad == good {
			t.Errorf("%s: there is nothing to edit", name)
		} else if len(problems(parse(t, bad), map[string]string{"contents": "read"})) == 0 {
			t.Errorf("%s: nothing is found", name)
		}
	}
}

// TestGitLab holds the same of the jobs for GitLab.
func TestGitLab(t *testing.T) {
	t.Parallel()
	text := read(t, "gitlab/placement-review.gitlab-ci.yml")
	var jobs map[string]any
	if err := yaml.Unmarshal([]byte(text), &jobs); err != nil {
		t.Fatal(err)
	}
	for name, secret := range map[string]bool{"placement-review": false, "placement-comment": true} {
		job, ok := jobs[name].(map[string]any)
		if !ok {
			t.Fatalf("there is no job %s", name)
		}
		script := fmt.Sprint(job["script"])
		if strings.Contains(script, "PLACEMENT_BOT_TOKEN") != secret {
			t.Errorf("%s: with the token: %v", name, !secret)
		}
		if strings.Contains(script, "@latest") || strings.Contains(script, "latest/download") {
			t.Errorf("%s: runs whatever is new", name)
		}
		if image, _ := job["image"].(string); !strings.Contains(image, ":") || strings.HasSuffix(image, ":latest") {
			t.Errorf("%s: runs in %q", name, job["image"])
		}
		if secret && (!strings.Contains(script, "wc -c") || !strings.Contains(script, "! -L")) {
			t.Errorf("%s: takes a report of any size and sort", name)
		}
		if !secret && !strings.Contains(script, "sha256sum --check --strict") {
			t.Errorf("%s: does not check the plugin", name)
		}
	}
}

// TestFlagsExist holds that each flag of review that a workflow or script gives is one.
func TestFlagsExist(t *testing.T) {
	t.Parallel()
	reference, err := os.ReadFile("../../docs/reference/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(reference), "\n## kubectl sched review\n")
	if !ok {
		t.Fatal("the reference has no section of review")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	flag := regexp.MustCompile(`(?:^|\s)(--?[a-zA-Z][a-z-]*)`)
	call := regexp.MustCompile(`(?s)sched"? review (.*?)(?:\n\s*-\s|\n\s{0,6}\S+:|\n\n|\z)`)
	for _, name := range []string{"github/placement-review.yaml", "gitlab/placement-review.gitlab-ci.yml", "fleet/review.sh"} {
		calls := call.FindAllStringSubmatch(read(t, name), -1)
		if len(calls) == 0 {
			t.Errorf("%s does not call review", name)
		}
		for _, c := range calls {
			for _, f := range flag.FindAllStringSubmatch(c[1], -1) {
				if !regexp.MustCompile("[`\\s]" + f[1] + "[`,\\s=]").MatchString(section) {
					t.Errorf("%s: review has no flag %s", name, f[1])
				}
			}
		}
	}
}
