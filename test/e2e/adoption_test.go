package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/internal/sandbox"
	"github.com/kubectl-sched/kubectl-sched/internal/sandbox/sandboxtest"
	"github.com/kubectl-sched/kubectl-sched/test/page"
)

// TestAdoption climbs the ladder of docs/adoption.md as it is written there. Each step is
// taken and looked at, then taken back, which must leave the cluster and the repository as
// they were, and then taken again for good.
func TestAdoption(t *testing.T) {
	t.Parallel()
	steps := stepsOf(t, filepath.Join("..", "..", "docs", "adoption.md"))
	l := newLadder(t)
	begun := false
	for _, s := range steps {
		if !begun {
			l.take(s.forward, nil)
			l.begin()
			begun = true
			continue
		}
		checks, known := rungs[s.name]
		if !known {
			t.Fatalf("nothing is known of what step %s does", s.name)
		}
		t.Logf("step %s", s.name)
		before := l.state()
		l.take(s.forward, checks.after)
		l.untouched()
		if len(s.back) == 0 {
			l.isAgain(s.name, before)
			continue
		}
		if !checks.harmless && before.equal(l.state()) {
			t.Errorf("step %s changes nothing", s.name)
		}
		l.take(s.back, nil)
		l.isAgain(s.name, before)
		l.untouched()
		if checks.gone != nil {
			checks.gone(l)
		}
		l.take(s.forward, checks.after)
		l.untouched()
	}
	if len(steps) != len(rungs)+1 {
		t.Errorf("the page has %d steps, and %d are known", len(steps)-1, len(rungs))
	}
}

// step is a section of the page with what is run in it.
type step struct {
	name          string
	forward, back []page.Block
}

// stepsOf returns the sections of the page that have blocks: those on the way, and those
// that come after a paragraph that begins with "Back".
func stepsOf(t *testing.T, path string) (steps []step) {
	t.Helper()
	p, err := page.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range p.Blocks {
		if len(steps) == 0 || steps[len(steps)-1].name != b.Under {
			steps = append(steps, step{name: b.Under})
		}
		s := &steps[len(steps)-1]
		if strings.HasPrefix(b.After, "Back: ") {
			s.back = append(s.back, b)
		} else {
			s.forward = append(s.forward, b)
		}
	}
	return steps
}

// rung is what a step of the ladder must come to.
type rung struct {
	// after has what must hold after each console block of the step; they are given what
	// its commands said.
	after []func(l *ladder, says []string)
	// gone must hold after the way back, besides that everything is as it was.
	gone func(l *ladder)
	// harmless steps change neither the cluster nor what is in the repository.
	harmless bool
}

// ladder is a cluster and a repository on the way up.
type ladder struct {
	*testing.T
	*client
	world *world
	dir   string
	bin   string
	// running are pods that no step may touch, stuck is one that is Pending.
	running []corev1.Pod
	stuck   *corev1.Pod
	webs    []types.UID // the pods of the Deployment shop/web
	made    int
}

const adoptionNodes = `pools:
- {name: general, count: 6, zones: [eu-1a, eu-1b, eu-1c], region: eu-1}
- name: gpu
  count: 2
  zones: [eu-1a, eu-1b]
  region: eu-1
  labels: {node-restriction.kubernetes.io/class: gpu}
  taints: ["node-restriction.kubernetes.io/class=gpu:NoSchedule"]
`

func newLadder(t *testing.T) *ladder {
	t.Helper()
	w := &world{Sandbox: sandboxtest.ForTest(t, sandbox.Options{})}
	if err := w.addNodes(t.Context(), "nodes.yaml", []byte(adoptionNodes)); err != nil {
		t.Fatal(err)
	}
	c, err := newClient(w.RESTConfig(), "default")
	if err != nil {
		t.Fatal(err)
	}
	l := &ladder{T: t, client: c, world: w, dir: t.TempDir(), bin: t.TempDir()}
	kubectl, err := sandbox.Binary(t.Context())
	if err == nil {
		err = errors.Join(os.Symlink(kubectl, filepath.Join(l.bin, "kubectl")), os.Symlink(plugin, filepath.Join(l.bin, "kubectl-sched")))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{"shop", "ml", "reports", "exports"} {
		if err := c.ensureNamespace(t.Context(), namespace); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// begin makes what no repository holds: pods that run outside of the zone that their
// policy will name, and one that fits nowhere.
func (l *ladder) begin() {
	l.Helper()
	for _, name := range []string{"shop/deploy/web", "ml/deploy/serve"} {
		if err := l.rolledOut(l.Context(), name); err != nil {
			l.Fatal(err)
		}
	}
	for _, namespace := range []string{"reports", "exports"} {
		pod := l.newPod(namespace)
		pod.Spec.NodeName = "general-0"
		pod = l.place(pod)
		if l.zoneOf(pod) == "eu-1b" {
			l.Fatal("the pods that run are in the zone of the policy")
		}
		l.running = append(l.running, *pod)
	}
	stuck := l.newPod("reports")
	stuck.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000")}
	l.stuck = l.create(stuck)
	l.webs = l.uids("shop/deploy/web")
}

// take writes files, makes changes and runs commands as the blocks say. Each must succeed.
func (l *ladder) take(blocks []page.Block, after []func(*ladder, []string)) {
	l.Helper()
	consoles := 0
	for _, b := range blocks {
		switch {
		case b.Language == page.Console:
			var says []string
			for _, c := range b.Commands() {
				if c.Says != "" {
					l.Fatalf("line %d: %q is no command", b.Line, c.Says)
				}
				says = append(says, l.shell(c.Text))
			}
			if consoles < len(after) && after[consoles] != nil {
				after[consoles](l, says)
			}
			consoles++
		case b.Title == "":
			l.Fatalf("line %d: a block must be a file, a change, or a console", b.Line)
		default:
			if err := b.Put(l.dir); err != nil {
				l.Fatalf("line %d: %v", b.Line, err)
			}
		}
	}
	if after != nil && consoles != len(after) {
		l.Errorf("%d consoles, and %d are known", consoles, len(after))
	}
}

func (l *ladder) write(path, text string) {
	l.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.Fatal(err)
	}
}

// shell runs a command of the page and returns what it prints.
func (l *ladder) shell(command string) string {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), patience)
	defer cancel()
	c := page.Shell(ctx, l.dir, command, append(os.Environ(), "PATH="+l.bin+string(os.PathListSeparator)+os.Getenv("PATH"),
		"KUBECONFIG="+l.world.Kubeconfig(), "HOME="+l.dir, "NO_COLOR=1", "GIT_CONFIG_GLOBAL="+os.DevNull))
	var out, all bytes.Buffer
	c.Stdout, c.Stderr = &out, &all
	if err := c.Run(); err != nil {
		l.Fatalf("$ %s%v\n%s%s", command, err, out.String(), all.String())
	}
	return out.String()
}

// newPod is a pod that nobody has placed yet.
func (l *ladder) newPod(namespace string) *corev1.Pod {
	l.made++
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", l.made), Namespace: namespace},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/report:1"}}},
	}
}

// stranger is a pod that may use the nodes of the pool, as far as the taint goes.
func (l *ladder) stranger() *corev1.Pod {
	pod := l.newPod("shop")
	pod.Spec.NodeSelector = map[string]string{"node-restriction.kubernetes.io/class": "gpu"}
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	return pod
}

func (l *ladder) create(pod *corev1.Pod) *corev1.Pod {
	l.Helper()
	created, err := l.kube.CoreV1().Pods(pod.Namespace).Create(l.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		l.Fatal(err)
	}
	return created
}

// place creates a pod and returns it when it runs.
func (l *ladder) place(pod *corev1.Pod) *corev1.Pod {
	l.Helper()
	pod = l.create(pod)
	if err := l.rolledOut(l.Context(), pod.Namespace+"/pod/"+pod.Name); err != nil {
		l.Fatal(err)
	}
	pod, err := l.kube.CoreV1().Pods(pod.Namespace).Get(l.Context(), pod.Name, metav1.GetOptions{})
	if err != nil {
		l.Fatal(err)
	}
	return pod
}

// zoneOf returns the zone that a pod runs in.
func (l *ladder) zoneOf(pod *corev1.Pod) string {
	l.Helper()
	node, err := l.kube.CoreV1().Nodes().Get(l.Context(), pod.Spec.NodeName, metav1.GetOptions{})
	if err != nil {
		l.Fatal(err)
	}
	return node.Labels[corev1.LabelTopologyZone]
}

// uids are those of the pods of a workload, sorted.
func (l *ladder) uids(workload string) (all []types.UID) {
	l.Helper()
	object, err := l.get(l.Context(), workload)
	if err != nil {
		l.Fatal(err)
	}
	pods, err := l.pods(l.Context(), object)
	if err != nil {
		l.Fatal(err)
	}
	for _, p := range pods {
		all = append(all, p.UID)
	}
	slices.Sort(all)
	return all
}

// untouched holds that the pods which run outside of any repository are where they were,
// and the one that is Pending as it was.
func (l *ladder) untouched() {
	l.Helper()
	for _, was := range append(slices.Clone(l.running), *l.stuck) {
		is, err := l.kube.CoreV1().Pods(was.Namespace).Get(l.Context(), was.Name, metav1.GetOptions{})
		if err != nil {
			l.Fatal(err)
		}
		if is.UID != was.UID || is.Spec.NodeName != was.Spec.NodeName || is.Spec.Affinity != nil || len(is.Annotations) > 0 || is.Spec.SchedulerName != was.Spec.SchedulerName {
			l.Errorf("pod %s/%s was on %q and is on %q, with affinity %v and annotations %v", was.Namespace, was.Name, was.Spec.NodeName, is.Spec.NodeName, is.Spec.Affinity, is.Annotations)
		}
	}
}

// unplaced holds that nobody places new pods in the namespace.
func (l *ladder) unplaced(namespace string) {
	l.Helper()
	if pod := l.place(l.newPod(namespace)); pod.Spec.Affinity != nil || len(pod.Annotations) > 0 || pod.Spec.SchedulerName != corev1.DefaultSchedulerName {
		l.Errorf("a new pod in %s has the affinity %v, annotations %v and scheduler %s", namespace, pod.Spec.Affinity, pod.Annotations, pod.Spec.SchedulerName)
	}
}

// placed holds that new pods in the namespace come into their zone.
func (l *ladder) placed(namespace string) *corev1.Pod {
	l.Helper()
	pod := l.place(l.newPod(namespace))
	if zone := l.zoneOf(pod); zone != "eu-1b" || pod.Spec.Affinity == nil {
		l.Errorf("a new pod in %s is in zone %s, with affinity %v", namespace, zone, pod.Spec.Affinity)
	}
	return pod
}

// annotated reports whether the object says that its placement is ours.
func annotated(object *unstructured.Unstructured) bool {
	return object.GetAnnotations()["kubectl-sched.github.io/placement"] != ""
}
