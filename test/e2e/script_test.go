package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/jsonpath"
)

// TestScripts plays the stories of testdata/script. UPDATE=1 rewrites the files
// that "cmp" compares with.
//
// A script has these commands besides testscript's own; WORKLOAD and OBJECT are
// RESOURCE/NAME, or NAMESPACE/RESOURCE/NAME:
//
//	namespace NAME              the script's namespace, made and set as the kubeconfig's
//	nodes FILE                  add pools of nodes, which must be tainted
//	create FILE...              create objects as "kubectl create" does
//	sync MANAGER FILE TIMES     apply as one who puts back what is in git; nothing may change after the first time
//	refused FILE TEXT           wait until admission refuses the objects, for a reason with TEXT in it
//	rollout WORKLOAD...         wait until all pods are of the newest version and run
//	unschedulable WORKLOAD N    wait until N pods fit nowhere; prints the scheduler's reasons
//	where WORKLOAD KEY          print how many pods are in each zone, region, node, pool or node label
//	skew WORKLOAD KEY MOST      hold that pods differ by at most MOST between the domains
//	get OBJECT JSONPATH         print a part of an object
//	patch OBJECT MANAGER PATCH  merge as somebody else
//	remove OBJECT               delete an object
//	remember OBJECT...          note how objects are now, and what they are
//	same OBJECT...              hold that objects are as they were noted, and not others of the same name
//	user NAME FILE              a kubeconfig NAME.kubeconfig for a service account with the rights of FILE
//	exits CODE ARGUMENT...      run the plugin and hold that it ends with the code
func TestScripts(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		UpdateScripts:       os.Getenv("UPDATE") != "",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			s := &script{world: w, memory: map[string]*unstructured.Unstructured{}}
			env.Values[scriptKey{}] = s
			env.Setenv("PATH", filepath.Dir(plugin)+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("NO_COLOR", "1")
			env.Setenv("KUBECONFIG", filepath.Join(env.WorkDir, ".kubeconfig"))
			return writeKubeconfig(filepath.Join(env.WorkDir, ".kubeconfig"), w.RESTConfig(), "default")
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"namespace":     command(1, "NAME", (*script).useNamespace),
			"nodes":         command(1, "FILE", (*script).addNodes),
			"create":        command(-1, "FILE...", (*script).create),
			"sync":          command(3, "MANAGER FILE TIMES", (*script).sync),
			"refused":       command(2, "FILE TEXT", (*script).refused),
			"rollout":       command(-1, "WORKLOAD...", (*script).rollout),
			"unschedulable": command(2, "WORKLOAD N", (*script).unschedulable),
			"where":         command(2, "WORKLOAD KEY", (*script).where),
			"skew":          command(3, "WORKLOAD KEY MOST", (*script).skew),
			"get":           command(2, "OBJECT JSONPATH", (*script).get),
			"patch":         command(3, "OBJECT MANAGER PATCH", (*script).patch),
			"remove":        command(1, "OBJECT", (*script).remove),
			"remember":      command(-1, "OBJECT...", (*script).remember),
			"same":          command(-1, "OBJECT...", (*script).same),
			"user":          command(2, "NAME FILE", (*script).user),
			"exits":         exits,
		},
	})
}

type scriptKey struct{}

// script is what the commands of one script share.
type script struct {
	world  *world
	client *client
	memory map[string]*unstructured.Unstructured
}

// command makes a testscript command of a method. count is the number of its
// arguments; below zero, one or more.
func command(count int, usage string, do func(*script, context.Context, *testscript.TestScript, []string) error) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || (count >= 0 && len(args) != count) || len(args) == 0 {
			ts.Fatalf("usage: %s", usage)
		}
		s := ts.Value(scriptKey{}).(*script)
		ts.Check(do(s, context.Background(), ts, args))
	}
}

func (s *script) useNamespace(ctx context.Context, ts *testscript.TestScript, args []string) error {
	c, err := newClient(s.world.RESTConfig(), args[0])
	if err != nil {
		return err
	}
	s.client = c
	if err := c.ensureNamespace(ctx, args[0]); err != nil {
		return err
	}
	return writeKubeconfig(ts.Getenv("KUBECONFIG"), s.world.RESTConfig(), args[0])
}

func (s *script) addNodes(ctx context.Context, ts *testscript.TestScript, args []string) error {
	return s.world.addNodes(ctx, args[0], []byte(ts.ReadFile(args[0])))
}

func (s *script) create(ctx context.Context, ts *testscript.TestScript, args []string) error {
	for _, file := range args {
		objects, err := readManifests([]byte(ts.ReadFile(file)))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, object := range objects {
			if err := s.client.create(ctx, object); err != nil {
				return fmt.Errorf("%s: %s %s: %w", file, object.GetKind(), object.GetName(), err)
			}
		}
	}
	return nil
}

// sync applies the manifests as often as it is said, as one does who puts back what is
// in git: by server-side apply, taking over what is his. After the first time nothing
// may change.
func (s *script) sync(ctx context.Context, ts *testscript.TestScript, args []string) error {
	times, err := strconv.Atoi(args[2])
	if err != nil || times < 2 {
		return fmt.Errorf("sync %s times", args[2])
	}
	first := map[string]*unstructured.Unstructured{}
	for i := range times {
		objects, err := readManifests([]byte(ts.ReadFile(args[1])))
		if err != nil {
			return fmt.Errorf("%s: %w", args[1], err)
		}
		for _, object := range objects {
			name := object.GetKind() + "/" + object.GetName()
			now, err := s.client.takeOver(ctx, object, args[0])
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if first[name] == nil {
				first[name] = now
			} else if different := changes(first[name], now); len(different) > 0 || now.GetGeneration() != first[name].GetGeneration() {
				return fmt.Errorf("sync %d changes %s, from generation %d to %d:\n%s", i+1, name, first[name].GetGeneration(), now.GetGeneration(), strings.Join(different, "\n"))
			}
		}
	}
	return nil
}

func (s *script) refused(ctx context.Context, ts *testscript.TestScript, args []string) error {
	objects, err := readManifests([]byte(ts.ReadFile(args[0])))
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	for _, object := range objects {
		if err := s.client.refused(ctx, object, args[1]); err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
	}
	return nil
}

func (s *script) rollout(ctx context.Context, _ *testscript.TestScript, args []string) error {
	for _, object := range args {
		if err := s.client.rolledOut(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

func (s *script) unschedulable(ctx context.Context, ts *testscript.TestScript, args []string) error {
	count, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	messages, err := s.client.unschedulable(ctx, args[0], count)
	fmt.Fprintln(ts.Stdout(), strings.Join(messages, "\n"))
	return err
}

func (s *script) where(ctx context.Context, ts *testscript.TestScript, args []string) error {
	counts, err := s.client.where(ctx, args[0], args[1])
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(ts.Stdout(), countText(counts))
	return err
}

func (s *script) skew(ctx context.Context, _ *testscript.TestScript, args []string) error {
	counts, err := s.client.where(ctx, args[0], args[1])
	if err != nil {
		return err
	}
	most, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	if n := skew(counts); n > most || counts[pending] > 0 {
		return fmt.Errorf("skew of %s is %d, want at most %d:\n%s", args[0], n, most, countText(counts))
	}
	return nil
}

func (s *script) get(ctx context.Context, ts *testscript.TestScript, args []string) error {
	object, err := s.client.get(ctx, args[0])
	if err != nil {
		return err
	}
	path := jsonpath.New("get").AllowMissingKeys(true)
	path.EnableJSONOutput(false)
	if err := path.Parse("{" + args[1] + "}"); err != nil {
		return err
	}
	if err := path.Execute(ts.Stdout(), object.Object); err != nil {
		return err
	}
	_, err = fmt.Fprintln(ts.Stdout())
	return err
}

func (s *script) patch(ctx context.Context, _ *testscript.TestScript, args []string) error {
	return s.client.patch(ctx, args[0], args[1], types.StrategicMergePatchType, args[2])
}

func (s *script) remove(ctx context.Context, _ *testscript.TestScript, args []string) error {
	return s.client.delete(ctx, args[0])
}

func (s *script) remember(ctx context.Context, _ *testscript.TestScript, args []string) error {
	for _, text := range args {
		object, err := s.client.get(ctx, text)
		if err != nil {
			return err
		}
		s.memory[text] = object
	}
	return nil
}

func (s *script) same(ctx context.Context, _ *testscript.TestScript, args []string) error {
	for _, text := range args {
		before, ok := s.memory[text]
		if !ok {
			return fmt.Errorf("%s has not been remembered", text)
		}
		now, err := s.client.get(ctx, text)
		if err != nil {
			return err
		}
		if different := differs(before, now); different != "" {
			return fmt.Errorf("%s is not as it was:\n%s", text, different)
		}
	}
	return nil
}

func (s *script) user(ctx context.Context, ts *testscript.TestScript, args []string) error {
	config, err := s.client.restricted(ctx, s.world.RESTConfig(), args[0], []byte(ts.ReadFile(args[1])))
	if err != nil {
		return err
	}
	return writeKubeconfig(ts.MkAbs(args[0]+".kubeconfig"), config, s.client.namespace)
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE ARGUMENT...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec("kubectl-sched", args[1:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("run kubectl-sched: %v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}
