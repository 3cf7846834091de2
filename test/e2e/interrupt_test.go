package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-sched/kubectl-sched/internal/sandbox"
)

// interruptedApps are the workloads that an interrupted run writes.
var interruptedApps = []string{"deploy/a", "deploy/b", "sts/c"}

// job is a namespace with workloads, and policies for them.
type job struct {
	*client
	dir string
	set string
}

// newJob makes the namespace and the policy folder, and creates the workloads.
func newJob(t *testing.T, w *world, name string) *job {
	t.Helper()
	c, err := newClient(w.RESTConfig(), name)
	if err != nil {
		t.Fatal(err)
	}
	j := &job{client: c, dir: t.TempDir(), set: name}
	if err := os.MkdirAll(filepath.Join(j.dir, "placement"), 0o755); err != nil {
		t.Fatal(err)
	}
	j.policy(t, "interrupt.cue")
	manifests, err := os.ReadFile(filepath.Join("testdata", "interrupt.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := readManifests(manifests)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if err := c.create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeKubeconfig(j.path("direct"), w.RESTConfig(), name); err != nil {
		t.Fatal(err)
	}
	return j
}

func (j *job) path(name string) string { return filepath.Join(j.dir, name) }

// policy makes the file of testdata, for this namespace, the policy.
func (j *job) policy(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(data), "NAMESPACE", j.set)
	if err := os.WriteFile(j.path("placement/p.cue"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// command is a run of the plugin with the kubeconfig of the name.
func (j *job) command(ctx context.Context, kubeconfig string, args ...string) *exec.Cmd {
	return pluginCommand(ctx, j.dir, j.path(kubeconfig), args...)
}

// run runs the plugin past all gates, and fails the test if it fails.
func (j *job) run(t *testing.T, args ...string) {
	t.Helper()
	out, err := j.command(t.Context(), "direct", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl-sched %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// objects returns the workloads by name.
func (j *job) objects(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	objects := map[string]*unstructured.Unstructured{}
	for _, name := range interruptedApps {
		object, err := j.get(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		objects[name] = object
	}
	return objects
}

// specs returns the specs of the workloads as JSON.
func (j *job) specs(t *testing.T) map[string]string {
	t.Helper()
	specs := map[string]string{}
	for name, object := range j.objects(t) {
		data, err := json.MarshalIndent(object.Object["spec"], "", " ")
		if err != nil {
			t.Fatal(err)
		}
		specs[name] = string(data)
	}
	return specs
}

// TestKilled kills the plugin after each write, which the API server has done and
// the plugin has not heard of: an apply, an apply that prunes, and a delete. The
// same command again must come to the same end as one that nobody killed.
func TestKilled(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	j := newJob(t, w, "killed")
	before := j.objects(t)
	want := j.uninterrupted(t)

	// The run that is to be killed after its last write ends by itself.
	writes := 0
	for number := 1; j.killedAt(t, w, number, "apply", "--set", j.set); number++ {
		writes++
		j.run(t, "apply", "--set", j.set)
		j.holds(t, fmt.Sprintf("apply killed after write %d", number), want.applied)
		j.run(t, "delete", "--set", j.set)
		j.holds(t, fmt.Sprintf("delete after an apply killed after write %d", number), want.withdrawn)
	}
	if writes <= len(interruptedApps) {
		t.Errorf("an apply of %d workloads was interrupted after %d writes only", len(interruptedApps), writes)
	}
	for number := 1; ; number++ {
		j.policy(t, "interrupt.cue")
		j.run(t, "apply", "--set", j.set)
		j.holds(t, "apply after a prune", want.applied)
		j.policy(t, "interrupt_narrow.cue")
		if !j.killedAt(t, w, number, "apply", "--set", j.set) {
			break
		}
		j.run(t, "apply", "--set", j.set)
		j.holds(t, fmt.Sprintf("prune killed after write %d", number), want.pruned)
	}
	j.policy(t, "interrupt.cue")
	for number := 1; ; number++ {
		j.run(t, "apply", "--set", j.set)
		if !j.killedAt(t, w, number, "delete", "--set", j.set) {
			break
		}
		j.deleteAgain(t)
		j.holds(t, fmt.Sprintf("delete killed after write %d", number), want.withdrawn)
	}
	for name, object := range j.objects(t) {
		if different := differs(before[name], object); different != "" {
			t.Errorf("%s is not as it was:\n%s", name, different)
		}
	}
}

// ends are what the workloads come to when nobody interrupts.
type ends struct{ applied, pruned, withdrawn map[string]string }

func (j *job) uninterrupted(t *testing.T) ends {
	t.Helper()
	var want ends
	j.run(t, "apply", "--set", j.set)
	want.applied = j.specs(t)
	j.policy(t, "interrupt_narrow.cue")
	j.run(t, "apply", "--set", j.set)
	want.pruned = j.specs(t)
	j.run(t, "delete", "--set", j.set)
	want.withdrawn = j.specs(t)
	j.policy(t, "interrupt.cue")
	return want
}

// deleteAgain deletes what a killed delete left. There may be nothing: then the
// plugin says that there is no such set.
func (j *job) deleteAgain(t *testing.T) {
	t.Helper()
	out, err := j.command(t.Context(), "direct", "delete", "--set", j.set).CombinedOutput()
	if err != nil && !strings.Contains(string(out), "there is no set") {
		t.Fatalf("delete again: %v\n%s", err, out)
	}
}

func (j *job) holds(t *testing.T, what string, want map[string]string) {
	t.Helper()
	if d := cmp.Diff(want, j.specs(t)); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// killedAt runs the plugin and kills it after the write of the number. It returns
// false if the plugin ended by itself before.
func (j *job) killedAt(t *testing.T, w *world, number int, args ...string) bool {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	g := newGate(t, w.RESTConfig(), func(n int, at moment, r *http.Request) {
		if n < number || (n == number && at == arriving) {
			return
		}
		// The plugin does not live to see what comes of this write.
		kill()
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	})
	if err := writeKubeconfig(j.path("gate"), g.config(), j.set); err != nil {
		t.Fatal(err)
	}
	out, err := j.command(ctx, "gate", args...).CombinedOutput()
	g.server.CloseClientConnections()
	if ctx.Err() != nil {
		return true
	}
	if err != nil {
		t.Fatalf("kubectl-sched %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return false
}

// TestServerGoesAway kills the API server in the middle of an apply, and starts
// it again. The plugin says so and fails; run again, it finishes.
func TestServerGoesAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, filepath.Join("testdata", "nodes.yaml"))
	j := newJob(t, w, "goes-away")
	before := j.objects(t)
	want := j.uninterrupted(t)

	for _, number := range []int{1, 5} {
		var once sync.Once
		g := newGate(t, w.RESTConfig(), func(n int, at moment, _ *http.Request) {
			if n == number && at == arriving {
				once.Do(func() {
					if err := w.Kill(sandbox.APIServer); err != nil {
						t.Error(err)
					}
				})
			}
		})
		if err := writeKubeconfig(j.path("gate"), g.config(), j.set); err != nil {
			t.Fatal(err)
		}
		out, err := j.command(t.Context(), "gate", "apply", "--set", j.set).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() < 2 {
			t.Errorf("without API server at write %d: %v, want an exit code above 1\n%s", number, err, out)
		}
		if !strings.Contains(string(out), g.server.URL) && !strings.Contains(string(out), "connect") && !strings.Contains(string(out), "EOF") {
			t.Errorf("without API server at write %d the plugin does not say that it is gone:\n%s", number, out)
		}
		if err := w.StartPart(t.Context(), sandbox.APIServer); err != nil {
			t.Fatal(err)
		}
		j.run(t, "apply", "--set", j.set)
		j.holds(t, fmt.Sprintf("apply after an outage at write %d", number), want.applied)
		j.run(t, "delete", "--set", j.set)
		j.holds(t, fmt.Sprintf("delete after an outage at write %d", number), want.withdrawn)
	}
	for name, object := range j.objects(t) {
		if different := differs(before[name], object); different != "" {
			t.Errorf("%s is not as it was:\n%s", name, different)
		}
	}
}
