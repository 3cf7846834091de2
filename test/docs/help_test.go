package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kubectl-sched/kubectl-sched/test/cueregistry"
	"github.com/kubectl-sched/kubectl-sched/test/page"
)

// helpPage has the examples of the help texts, each under the name of its command.
const helpPage = "docs/reference/commands.md"

// story is commands whose examples are run one after the other. Without a control plane
// each setting is by itself.
type story struct {
	name     string
	cluster  bool
	settings []setting
}

// setting is what the examples of a command are run in, in their order: a folder with a
// copy of the house, and the story's control plane.
type setting struct {
	command string
	// before is done first: what the examples take to be there.
	before string
	// registry says that CUE_REGISTRY names a registry, with the house's modules.
	registry bool
	// helm says that helm is there.
	helm     bool
	examples []example
}

// example is an example of a help text.
type example struct {
	// run is the command as the help text has it, but for its blanks.
	run string
	// before is done right before it.
	before string
	// scheduler says that the scheduler which is installed runs from here on: the nodes of
	// a sandbox run nothing.
	scheduler bool
	// code is the exit code that it must have.
	code int
	// says are parts of what it must say.
	says []string
	// then is run after it in the same shell, and must succeed: what is true by then.
	then string
	// instead says what stands in for something that is not here.
	instead string
}

// stories are all examples of all help texts.
func stories() []story {
	return []story{
		{name: "policies", settings: policySettings()},
		{name: "manifests", settings: manifestSettings()},
		{name: "sets", cluster: true, settings: setSettings()},
		{name: "cluster", cluster: true, settings: lookSettings()},
		{name: "scheduler", cluster: true, settings: schedulerSettings()},
	}
}

// Every example of a help text is run as it stands there, and does what it is there for.
// One that the table does not know is an error, and so is an entry without an example.
func TestHelp(t *testing.T) {
	t.Parallel()
	examples := helpExamples(t)
	total := 0
	for _, s := range stories() {
		for _, set := range s.settings {
			texts, ok := examples[set.command]
			if !ok {
				t.Errorf("%s has no examples, or is there twice", set.command)
			}
			delete(examples, set.command)
			total += len(texts)
			if err := set.unlike(texts); err != nil {
				t.Error(err)
			}
			for _, e := range set.examples {
				if e.instead != "" {
					t.Logf("%s: %s", e.run, e.instead)
				}
			}
		}
	}
	for command, texts := range examples {
		t.Errorf("%s: nothing runs the examples %q; write down in stories what they do", command, texts)
	}
	if total < 80 {
		t.Errorf("%d examples only", total)
	}
	for _, s := range stories() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.tell(t)
		})
	}
}

// unlike returns what is wrong where the setting has other examples than its command.
func (set setting) unlike(texts []string) error {
	var known, said []string
	for _, e := range set.examples {
		known = append(known, e.run)
	}
	for _, text := range texts {
		said = append(said, oneLine(text))
	}
	if !slices.Equal(known, said) {
		return fmt.Errorf("%s: the help text has the examples\n\t%s\nand these are run\n\t%s", set.command, strings.Join(said, "\n\t"), strings.Join(known, "\n\t"))
	}
	return nil
}

// TestHelpIsCompared holds that an example that nothing runs is noticed, and so is a run
// of what is no example.
func TestHelpIsCompared(t *testing.T) {
	t.Parallel()
	set := setting{command: "kubectl sched a", examples: []example{{run: "kubectl sched a --b c"}}}
	if err := set.unlike([]string{"kubectl sched a \\\n  --b c"}); err != nil {
		t.Error(err)
	}
	for _, texts := range [][]string{nil, {"kubectl sched a"}, {"kubectl sched a --b c", "kubectl sched a"}} {
		if set.unlike(texts) == nil {
			t.Errorf("%q are taken for what is run", texts)
		}
	}
}

// oneLine is a command without its line breaks.
func oneLine(command string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(command, "\\\n", " ")), " ")
}

// helpExamples are the examples of the page, by command. All generated pages are looked
// through, so that no other one has commands.
func helpExamples(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, p := range pages(t) {
		if !strings.HasPrefix(string(p.Source), generated) {
			continue
		}
		for _, b := range p.Blocks {
			if b.Language != page.Console {
				continue
			}
			command := strings.ReplaceAll(b.Under, "kubectl-sched-", "kubectl sched ")
			command = strings.ReplaceAll(command, "-", " ")
			if p.path != helpPage {
				t.Errorf("%s:%d: nothing runs this block", p.path, b.Line)
			}
			for _, c := range commands(b) {
				if !strings.HasPrefix(c, "#") {
					all[command] = append(all[command], c)
				}
			}
		}
	}
	return all
}

// tell runs the settings of a story.
func (s story) tell(t *testing.T) {
	if !s.cluster {
		for _, set := range s.settings {
			t.Run(set.command, func(t *testing.T) {
				t.Parallel()
				newStage(t, set, noCluster).play(set)
			})
		}
		return
	}
	kubeconfig := startCluster(t)
	for _, set := range s.settings {
		t.Run(set.command, func(st *testing.T) {
			stage := newStage(st, set, kubeconfig)
			stage.story = t
			stage.play(set)
		})
		if t.Failed() {
			return // what comes after it has another beginning
		}
	}
}

// stage is the folder of a setting.
type stage struct {
	*testing.T
	// story is the test that outlives the setting, where there is one.
	story           *testing.T
	dir, kubeconfig string
	env             []string
}

// newStage makes the folder. The kubeconfig is a copy: an example may be for one that
// has something in it.
func newStage(t *testing.T, set setting, kubeconfig string) *stage {
	t.Helper()
	s := &stage{T: t, dir: t.TempDir(), kubeconfig: kubeconfig}
	if err := os.CopyFS(s.dir, os.DirFS(house)); err != nil {
		t.Fatal(err)
	}
	if kubeconfig != noCluster {
		data, err := os.ReadFile(kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		s.kubeconfig = filepath.Join(s.dir, ".kubeconfig")
		if err := os.WriteFile(s.kubeconfig, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if set.registry {
		for name, value := range cueregistry.Serve(t, os.DirFS(filepath.Join(s.dir, "registry"))) {
			s.env = append(s.env, name+"="+value)
		}
	}
	if set.helm {
		s.env = append(s.env, besides(t, "helm", "helm4"))
	}
	return s
}

// prepare runs a script that must succeed.
func (s *stage) prepare(script string) {
	s.Helper()
	if script == "" {
		return
	}
	if out, code := shell(s.T, s.dir, s.kubeconfig, "set -euo pipefail\n"+script, s.env...); code != 0 {
		s.Fatalf("before the examples: exit code %d:\n%s\n%s", code, script, out)
	}
}

// ended is what is printed between the example and what is run after it.
var ended = regexp.MustCompile(`(?m)^<the example ended with (\d+)>\n`)

// play runs the examples of a setting.
func (s *stage) play(set setting) {
	s.Helper()
	s.prepare(set.before)
	for _, e := range set.examples {
		s.prepare(e.before)
		if e.scheduler {
			s.runScheduler()
		}
		script := "set -uo pipefail\n" + e.run + "\necho \"<the example ended with $?>\"\nset -ex\n" + e.then
		out, code := shell(s.T, s.dir, s.kubeconfig, script, s.env...)
		at := ended.FindStringSubmatchIndex(out)
		if at == nil {
			s.Fatalf("%s: it ended the shell with %d:\n%s", e.run, code, out)
		}
		said, after := out[:at[0]], out[at[1]:]
		if got, err := strconv.Atoi(out[at[2]:at[3]]); err != nil || got != e.code {
			s.Fatalf("%s: exit code %d (%v), not %d:\n%s", e.run, got, err, e.code, said)
		}
		for _, part := range e.says {
			if !strings.Contains(said, part) {
				s.Errorf("%s: it does not say %q:\n%s", e.run, part, said)
			}
		}
		if code != 0 {
			s.Fatalf("%s: after it this is not so:\n%s\nIt said:\n%s", e.run, after, said)
		}
		if testing.Verbose() {
			s.Logf("$ %s\n%s", e.run, said)
		}
	}
}
