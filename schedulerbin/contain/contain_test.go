package contain

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

//go:generate go run combinations_gen.go

// combination is one plugin and how it is wrapped.
type combination struct {
	inner func() fwk.Plugin
	wrap  func(*Guard, fwk.Plugin) (fwk.Plugin, error)
}

// has is the set of optional interfaces of a plugin, as the framework sees it.
func has(plugin fwk.Plugin) (names []string) {
	for _, i := range interfaces {
		if reflect.TypeOf(plugin).Implements(i) {
			names = append(names, i.Name())
		}
	}
	return names
}

// lab is a guard, and all that it says.
type lab struct {
	guard  *Guard
	events *events.FakeRecorder
	clock  *clocktesting.FakeClock
	log    *bytes.Buffer
	ctx    context.Context
}

// handle is as much of a framework handle as a guard needs.
type handle struct {
	fwk.Handle
	recorder events.EventRecorderLogger
}

func (h handle) ProfileName() string                       { return "profile" }
func (h handle) EventRecorder() events.EventRecorderLogger { return h.recorder }

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{
		events: events.NewFakeRecorder(100), log: &bytes.Buffer{},
		clock: clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
	}
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(l.log)))
	l.ctx = klog.NewContext(t.Context(), logger)
	l.guard = NewGuard(l.ctx, "Fake", handle{recorder: l.events}, Options{Metrics: NewMetrics(), Budgets: DefaultBudgets(), Clock: l.clock})
	return l
}

// count sums a counter, or the number of observations of the histogram, over all
// points.
func (l *lab) count(t *testing.T, name string) (sum float64) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(l.guard.options.Metrics); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			sum += m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return sum
}

func TestWrapForwardsExactlyThePluginsInterfaces(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for i, c := range combinations {
		plugin := c.inner()
		want := has(plugin)
		wrapped, err := c.wrap(l.guard, plugin)
		if err != nil {
			t.Fatalf("combination %d (%v): %v", i, want, err)
		}
		if diff := cmp.Diff(want, has(wrapped)); diff != "" {
			t.Errorf("combination %d (-plugin +wrapped)\n%s", i, diff)
		}
		// Any other composition is refused, whether it has too much or too little.
		for j, other := range combinations {
			if j == i {
				continue
			}
			if _, err := other.wrap(l.guard, plugin); err == nil {
				t.Errorf("a plugin with %v may be wrapped as %v", want, has(other.inner()))
			}
		}
	}
	if got := len(has(combinations[1].inner())); got != len(interfaces) {
		t.Errorf("the second combination has %d of %d interfaces", got, len(interfaces))
	}
}

func TestWrapRefusesWhatIsNoComposition(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	type noName struct{ FilterPlugin }
	type named struct {
		Plugin
		F FilterPlugin
	}
	type foreign struct {
		Plugin
		bytes.Buffer
	}
	plugin := &struct {
		fake
		FakeFilter
	}{}
	for _, test := range []struct {
		wrap func(*Guard, fwk.Plugin) (fwk.Plugin, error)
		want string
	}{
		{Wrap[noName], "does not embed contain.Plugin"},
		{Wrap[named], "field F"},
		{Wrap[foreign], "is no adapter"},
		{Wrap[int], "no struct"},
	} {
		if _, err := test.wrap(l.guard, plugin); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want an error with %q", err, test.want)
		}
	}
}

// TestInterfacesAreUpstreams holds the list of optional interfaces to those that
// upstream declares: a new extension point fails here, not in a cluster.
func TestInterfacesAreUpstreams(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "k8s.io/kube-scheduler/framework").Output()
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(strings.TrimSpace(string(out)), "interface.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		declared, ok := spec.Type.(*ast.InterfaceType)
		if !ok {
			return true
		}
		for _, m := range declared.Methods.List {
			if id, ok := m.Type.(*ast.Ident); ok && len(m.Names) == 0 && id.Name == "Plugin" {
				want = append(want, spec.Name.Name)
			}
		}
		return true
	})
	var got []string
	for _, i := range interfaces {
		got = append(got, i.Name())
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-upstream +ours)\n%s", diff)
	}
}

// call calls the method with arguments that a framework could give.
func (l *lab) call(method reflect.Value) []reflect.Value {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod", Namespace: "ns"}}
	entity := func(age time.Duration) fwk.QueuedEntityInfo {
		info, err := framework.NewPodInfo(pod)
		if err != nil {
			panic(err)
		}
		return &framework.QueuedPodInfo{PodInfo: info, QueueingParams: framework.QueueingParams{Timestamp: l.clock.Now().Add(-age)}}
	}
	var in []reflect.Value
	for i := range method.Type().NumIn() {
		switch p := method.Type().In(i); p {
		case reflect.TypeFor[context.Context]():
			in = append(in, reflect.ValueOf(l.ctx))
		case reflect.TypeFor[klog.Logger]():
			in = append(in, reflect.ValueOf(klog.FromContext(l.ctx)))
		case reflect.TypeFor[*v1.Pod]():
			in = append(in, reflect.ValueOf(pod))
		case reflect.TypeFor[fwk.QueuedEntityInfo]():
			in = append(in, reflect.ValueOf(entity(time.Duration(i)*time.Second)))
		default:
			in = append(in, reflect.Zero(p))
		}
	}
	return method.Call(in)
}

// methods are all methods of all optional interfaces and of what they return, on
// the plugin with every interface, by name.
func (l *lab) methods(t *testing.T, plugin fwk.Plugin) map[string]reflect.Value {
	t.Helper()
	found := map[string]reflect.Value{}
	collect := func(value reflect.Value, of reflect.Type) {
		for i := range of.NumMethod() {
			if name := of.Method(i).Name; name != "Name" {
				found[name] = value.MethodByName(name)
			}
		}
	}
	for _, i := range interfaces {
		collect(reflect.ValueOf(plugin), i)
	}
	for name, of := range map[string]reflect.Type{
		"PreFilterExtensions":      reflect.TypeFor[fwk.PreFilterExtensions](),
		"ScoreExtensions":          reflect.TypeFor[fwk.ScoreExtensions](),
		"PlacementScoreExtensions": reflect.TypeFor[fwk.PlacementScoreExtensions](),
	} {
		collect(l.call(found[name])[0].Elem(), of)
	}
	registered := l.call(found["EventsToRegister"])[0].Interface().([]fwk.ClusterEventWithHint)
	found["QueueingHintFn"] = reflect.ValueOf(registered[0].QueueingHintFn)
	found["PreQueueingHintFn"] = reflect.ValueOf(registered[0].PreQueueingHintFn)
	if len(registered) != 2 || registered[1].QueueingHintFn != nil || registered[1].PreQueueingHintFn != nil {
		t.Error("an event without a hint got one, or was lost")
	}
	return found
}

// TestCallsAreForwarded holds that each method reaches the plugin once, that its
// results come back as they are, and that it was timed.
func TestCallsAreForwarded(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	plugin := combinations[1].inner()
	var called []string
	on(plugin, func(method string) { called = append(called, method) })
	wrapped, err := combinations[1].wrap(l.guard, plugin)
	if err != nil {
		t.Fatal(err)
	}
	direct := l.methods(t, plugin)
	for name, method := range l.methods(t, wrapped) {
		before := l.count(t, "kubectl_sched_plugin_duration_seconds")
		called = nil
		got := l.call(method)
		if diff := cmp.Diff([]string{name}, called); diff != "" {
			t.Errorf("%s (-want +called)\n%s", name, diff)
		}
		extension := strings.HasSuffix(name, "Extensions")
		if took := l.count(t, "kubectl_sched_plugin_duration_seconds") - before; (took == 1) == extension {
			t.Errorf("%s was timed %v times", name, took)
		}
		if extension || name == "EventsToRegister" {
			continue // what they return is wrapped, and among the methods itself
		}
		for i, want := range l.call(direct[name]) {
			if !reflect.DeepEqual(want.Interface(), got[i].Interface()) {
				t.Errorf("%s: result %d is %v, want %v", name, i, got[i], want)
			}
		}
	}
	if got := l.count(t, "kubectl_sched_plugin_panics_total"); got != 0 {
		t.Errorf("%v panics were counted", got)
	}
}

// TestPanicsAreContained holds for each method that a panic does not leave it,
// becomes a failure where the method can say so, and is counted and logged with
// its stack, and told on the pod where there is one.
func TestPanicsAreContained(t *testing.T) {
	t.Parallel()
	for name := range newMethods(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			plugin := combinations[1].inner()
			armed := false
			on(plugin, func(method string) {
				if armed && method == name {
					panic("the plugin is broken")
				}
			})
			wrapped, err := combinations[1].wrap(l.guard, plugin)
			if err != nil {
				t.Fatal(err)
			}
			method := l.methods(t, wrapped)[name]
			armed = true
			for _, result := range l.call(method) {
				l.checkFailed(t, result)
			}
			if got := l.count(t, "kubectl_sched_plugin_panics_total"); got < 1 {
				t.Errorf("%v panics were counted, want 1", got)
			}
			for _, want := range []string{`plugin="Fake"`, "the plugin is broken", "fakes_test.go", `profile="profile"`} {
				if log := l.log.String(); !strings.Contains(log, want) {
					t.Errorf("the log has no %s:\n%s", want, log)
				}
			}
			if strings.Contains(method.Type().String(), "*v1.Pod,") || strings.HasSuffix(method.Type().String(), "*v1.Pod)") {
				select {
				case event := <-l.events.Events:
					if !strings.Contains(event, "Warning PluginPanic") || !strings.Contains(event, `"Fake" panicked at `) {
						t.Errorf("got event %q", event)
					}
				default:
					t.Error("there is no event on the pod")
				}
			}
		})
	}
}

// newMethods are the names of all methods.
func newMethods(t *testing.T) map[string]reflect.Value {
	t.Helper()
	plugin := combinations[1].inner()
	on(plugin, func(string) {})
	return newLab(t).methods(t, plugin)
}

// checkFailed holds that a result of a call that panicked says so, if it is of a
// type that can.
func (l *lab) checkFailed(t *testing.T, result reflect.Value) {
	t.Helper()
	switch got := result.Interface().(type) {
	case *fwk.Status:
		if got.Code() != fwk.Error || got.Plugin() != "Fake" || !strings.Contains(got.Message(), "the plugin is broken") {
			t.Errorf("got status %v of plugin %q: %v", got.Code(), got.Plugin(), got)
		}
	case error:
		if !strings.Contains(got.Error(), "the plugin is broken") {
			t.Errorf("got error %v", got)
		}
	case bool: // Less: the second entity is the older one
		if got {
			t.Error("the younger entity comes first")
		}
	case fwk.QueueingHint:
		if got != fwk.Queue {
			t.Errorf("got hint %v, want Queue", got)
		}
	case fwk.PreQueueingHintResult:
		if !got.AllPods {
			t.Error("not all pods are looked at")
		}
	case fwk.PreFilterExtensions:
		if status := got.AddPod(l.ctx, nil, nil, nil, nil); status.Code() != fwk.Error {
			t.Errorf("got status %v of AddPod", status)
		}
		if status := got.RemovePod(l.ctx, nil, nil, nil, nil); status.Code() != fwk.Error {
			t.Errorf("got status %v of RemovePod", status)
		}
	case fwk.ScoreExtensions:
		if status := got.NormalizeScore(l.ctx, nil, nil, nil); status.Code() != fwk.Error {
			t.Errorf("got status %v of NormalizeScore", status)
		}
	case fwk.PlacementScoreExtensions:
		if status := got.NormalizePlacementScore(l.ctx, nil, nil, nil); status.Code() != fwk.Error {
			t.Errorf("got status %v of NormalizePlacementScore", status)
		}
	case nil:
		if result.Type() == reflect.TypeFor[error]() || strings.HasSuffix(result.Type().Name(), "Extensions") {
			t.Errorf("got no %v", result.Type())
		}
	}
}

// TestBudget holds that a call over the budget is counted each time and logged
// once a while with the plugin's name, and that one within it is neither.
func TestBudget(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	var took time.Duration
	plugin := combinations[1].inner()
	on(plugin, func(string) { l.clock.Step(took) })
	wrapped, err := combinations[1].wrap(l.guard, plugin)
	if err != nil {
		t.Fatal(err)
	}
	for name, method := range l.methods(t, wrapped) {
		if strings.HasSuffix(name, "Extensions") {
			continue
		}
		before := l.count(t, "kubectl_sched_plugin_over_budget_total")
		took = 400 * time.Microsecond
		l.call(method)
		if got := l.count(t, "kubectl_sched_plugin_over_budget_total") - before; got != 0 {
			t.Errorf("%s: a call of %v is counted as over the budget", name, took)
		}
		l.log.Reset()
		took = 11 * time.Second
		l.call(method)
		took = 0 // the limiter lets the next line pass after sayEvery
		if got := l.count(t, "kubectl_sched_plugin_over_budget_total") - before; got != 1 {
			t.Errorf("%s: %v calls are over the budget, want 1", name, got)
		}
		log := l.log.String()
		if strings.Count(log, "longer than its budget") != 1 || !strings.Contains(log, `plugin="Fake"`) || !strings.Contains(log, `took="11s"`) {
			t.Errorf("%s: the log says\n%s", name, log)
		}
	}
}

// TestFloodIsLimited holds that what thousands of nodes have to say is one line.
func TestFloodIsLimited(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	plugin := &struct {
		fake
		FakeFilter
	}{}
	on(plugin, func(string) { l.clock.Step(time.Millisecond) })
	wrapped, err := Wrap[struct {
		Plugin
		FilterPlugin
	}](l.guard, plugin)
	if err != nil {
		t.Fatal(err)
	}
	filter := wrapped.(fwk.FilterPlugin)
	for range 11000 {
		filter.Filter(l.ctx, nil, &v1.Pod{}, nil)
	}
	if got := strings.Count(l.log.String(), "longer than its budget"); got != 2 {
		t.Errorf("%d lines in 11s, want 2", got)
	}
	if !strings.Contains(l.log.String(), "notLogged=9999") {
		t.Errorf("the second line does not say how many were left out:\n%s", l.log)
	}
	if got := l.count(t, "kubectl_sched_plugin_over_budget_total"); got != 11000 {
		t.Errorf("%v calls are counted, want 11000", got)
	}
}

func TestFactoryAndHandler(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	_, err := l.guard.New(l.ctx, func() (fwk.Plugin, error) { panic("the factory is broken") })
	if err == nil || !strings.Contains(err.Error(), `"Fake" panicked at New: the factory is broken`) {
		t.Errorf("got %v", err)
	}
	var seen []string
	broken := l.guard.Handler(l.ctx, cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { seen = append(seen, fmt.Sprint("add ", o)); panic("add") },
		UpdateFunc: func(o, n any) { seen = append(seen, fmt.Sprint("update ", o, n)); panic("update") },
		DeleteFunc: func(o any) { seen = append(seen, fmt.Sprint("delete ", o)); panic("delete") },
	})
	broken.OnAdd(1, false)
	broken.OnUpdate(2, 3)
	broken.OnDelete(4)
	if diff := cmp.Diff([]string{"add 1", "update 2 3", "delete 4"}, seen); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := l.count(t, "kubectl_sched_plugin_panics_total"); got != 4 {
		t.Errorf("%v panics are counted, want 4", got)
	}
}

// TestFilterDoesNotAllocate holds that containment costs a node no allocation.
func TestFilterDoesNotAllocate(t *testing.T) {
	l := newLab(t)
	plugin := &struct {
		fake
		quick
	}{}
	wrapped, err := Wrap[struct {
		Plugin
		FilterPlugin
	}](l.guard, plugin)
	if err != nil {
		t.Fatal(err)
	}
	filter := wrapped.(fwk.FilterPlugin)
	pod := &v1.Pod{}
	if got := testing.AllocsPerRun(1000, func() { filter.Filter(l.ctx, nil, pod, nil) }); got != 0 {
		t.Errorf("%v allocations a node", got)
	}
}

type quick struct{}

func (quick) Filter(context.Context, fwk.CycleState, *v1.Pod, fwk.NodeInfo) *fwk.Status {
	return nil
}

func BenchmarkFilter(b *testing.B) {
	plugin := &struct {
		fake
		quick
	}{}
	guard := NewGuard(b.Context(), "Fake", nil, Options{Metrics: NewMetrics(), Budgets: DefaultBudgets(), Clock: clock.RealClock{}})
	wrapped, err := Wrap[struct {
		Plugin
		FilterPlugin
	}](guard, plugin)
	if err != nil {
		b.Fatal(err)
	}
	filter, pod := wrapped.(fwk.FilterPlugin), &v1.Pod{}
	b.ReportAllocs()
	for b.Loop() {
		filter.Filter(b.Context(), nil, pod, nil)
	}
}
