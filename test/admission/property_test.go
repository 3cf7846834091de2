package admission

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/admission/admissiontest"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

const (
	worlds       = 12
	perWorld     = 60
	parallelPods = 8
)

// round is one document, with what each workload's pod comes to by render.
type round struct {
	world    admissiontest.World
	request  compiler.Request
	admitted []runtime.Object
	rendered []runtime.Object
	refs     []string
}

// TestPodsAreThoseOfRender holds that what the API server stores of a pod, or of
// a DaemonSet, under the admission policies is what it stores of one whose
// template was rendered without them: field by field, over random policies and
// workloads. A rendered one stays as it is under the policies, too. Not parallel:
// the policies select in all namespaces.
func TestPodsAreThoseOfRender(t *testing.T) {
	l := newLab(t, "property")
	t.Cleanup(l.uninstall)
	var rounds []*round
	classes := map[string]bool{}
	draw := rapid.Custom(func(t *rapid.T) admissiontest.World { return admissiontest.Draw(t, 6, perWorld) })
	for seed := range worlds {
		w := draw.Example(seed)
		if seed == 0 {
			for name, labels := range w.Capabilities.Namespaces {
				l.namespace(name, labels, "default", "trainer", "robot-1")
			}
		}
		if r, plan := render(t, w); r != nil {
			rounds = append(rounds, r)
			for _, o := range plan.Objects {
				if !classes[o.Object.GetName()] {
					classes[o.Object.GetName()] = true
					l.put(o.Object)
				}
			}
		}
	}
	// Without any policy in force.
	var wants [][]runtime.Object
	for _, r := range rounds {
		wants = append(wants, l.storeAll(t, r, r.rendered))
	}
	compared := 0
	start := time.Now()
	for i, r := range rounds {
		r.request.Set = l.set
		l.install(l.compile(*r.world.Placement, r.request))
		got, again := l.storeAll(t, r, r.admitted), l.storeAll(t, r, r.rendered)
		for j, want := range wants[i] {
			if want == nil || got[j] == nil || again[j] == nil {
				continue
			}
			compared++
			if !same(t, r.refs[j], want, got[j]) || !same(t, r.refs[j]+" as rendered", want, again[j]) {
				t.Fatalf("world %d", i)
			}
		}
	}
	if compared < 300 {
		t.Errorf("only %d pods were compared", compared)
	}
	t.Logf("%d pods compared in %d sets, %s", compared, len(rounds), seconds(time.Since(start)))
}

// render compiles the world by render, and checks that live says the same; nil
// where the document has errors.
func render(t *testing.T, w admissiontest.World) (*round, *compiler.Plan) {
	t.Helper()
	r := &round{world: w}
	var ws []*workload.Workload
	for _, o := range w.Workloads {
		parsed, findings, ok := workload.FromObject(o, workload.Options{}, workload.Source{})
		if !ok || findings.HasErrors() {
			t.Fatal(findings)
		}
		ws = append(ws, parsed)
	}
	r.request = compiler.Request{
		Placement: w.Placement, Workloads: ws, Surface: policy.SurfaceRender, Capabilities: w.Capabilities,
		Now: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC),
	}
	plan, findings := compiler.Compile(r.request)
	bad := admissiontest.Unfinished(findings)
	if bad[""] {
		return nil, nil
	}
	live := r.request
	live.Surface = policy.SurfaceLive
	livePlan, _ := compiler.Compile(live)
	for i, c := range plan.Changes {
		if diff := cmp.Diff(c.After, livePlan.Changes[i].After); diff != "" {
			t.Errorf("%s: live differs from render:\n%s", c.Workload.Ref(), diff)
		}
	}
	for i, subject := range ws {
		if bad[subject.Ref()] {
			continue
		}
		before, err := admissiontest.Admitted(w.Workloads[i])
		if err != nil {
			t.Fatal(err)
		}
		after := before.DeepCopyObject()
		for _, c := range plan.Changes {
			if c.Workload == subject {
				if err := admissiontest.Place(after, c.After); err != nil {
					t.Fatal(err)
				}
			}
		}
		r.admitted, r.rendered, r.refs = append(r.admitted, before), append(r.rendered, after), append(r.refs, subject.Ref())
	}
	if !w.Known {
		r.request.Workloads = nil
	}
	return r, plan
}

// storeAll returns what the API server makes of the objects; nil for those that
// it refuses, which the drawn manifests sometimes deserve.
func (l *lab) storeAll(t *testing.T, r *round, objects []runtime.Object) []runtime.Object {
	t.Helper()
	out := make([]runtime.Object, len(objects))
	var group sync.WaitGroup
	next := make(chan int)
	for range parallelPods {
		group.Go(func() {
			for i := range next {
				stored, err := l.stored(objects[i])
				if err != nil {
					t.Logf("%s: %v", r.refs[i], err)
					continue
				}
				out[i] = stored
			}
		})
	}
	for i := range objects {
		next <- i
	}
	close(next)
	group.Wait()
	return out
}
