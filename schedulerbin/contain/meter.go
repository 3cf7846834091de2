package contain

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// meter watches the calls of one plugin at one point. Its methods that end a
// call are deferred at the call's begin, with the result that a panic replaces.
type meter struct {
	guard  *Guard
	point  point
	budget time.Duration

	seconds          prometheus.Observer
	panics, overruns prometheus.Counter

	panicSaid, overrunSaid limiter
}

// meter returns the meter for the point.
func (g *Guard) meter(p point) *meter {
	m := g.options.Metrics
	return &meter{
		guard: g, point: p, budget: g.options.Budgets.of(p),
		seconds:  m.seconds.WithLabelValues(g.plugin, string(p), g.profile),
		panics:   m.panics.WithLabelValues(g.plugin, string(p), g.profile),
		overruns: m.overruns.WithLabelValues(g.plugin, string(p), g.profile),
	}
}

// now is when a call begins.
func (m *meter) now() time.Time { return m.guard.options.Clock.Now() }

// status ends a call that returns a status.
func (m *meter) status(ctx context.Context, start time.Time, pod *v1.Pod, out **fwk.Status) {
	if what := recover(); what != nil {
		*out = m.failed(m.panicked(klog.FromContext(ctx), pod, what))
	}
	m.measure(ctx, start, pod)
}

// error ends a call that returns an error.
func (m *meter) error(ctx context.Context, start time.Time, pod *v1.Pod, out *error) {
	if what := recover(); what != nil {
		*out = m.panicked(klog.FromContext(ctx), pod, what)
	}
	m.measure(ctx, start, pod)
}

// nothing ends a call that returns nothing by which it could fail.
func (m *meter) nothing(ctx context.Context, start time.Time, pod *v1.Pod) {
	if what := recover(); what != nil {
		_ = m.panicked(klog.FromContext(ctx), pod, what)
	}
	m.measure(ctx, start, pod)
}

// extensions ends a call that returns a plugin's extensions, which is too cheap
// to be measured and is made before each of their calls. If it panicked, out
// becomes extensions that fail.
func extensions[E any](m *meter, out *E) {
	if what := recover(); what != nil {
		*out = any(failing{m.failed(m.panicked(m.guard.logger, nil, what))}).(E)
	}
}

// measure counts the time of a call that began at start. It looks for the logger
// only where there is something to say: Filter and Score come here for each node.
func (m *meter) measure(ctx context.Context, start time.Time, pod *v1.Pod) {
	if took, over := m.observe(start); over {
		m.overran(klog.FromContext(ctx), start, took, pod)
	}
}

// observe counts the time of a call that began at start, and reports whether it
// was over the budget.
func (m *meter) observe(start time.Time) (took time.Duration, over bool) {
	took = m.guard.options.Clock.Since(start)
	m.seconds.Observe(took.Seconds())
	return took, m.budget != 0 && took > m.budget
}

// overran counts and logs a call that took longer than its budget.
func (m *meter) overran(logger klog.Logger, start time.Time, took time.Duration, pod *v1.Pod) {
	m.overruns.Inc()
	if earlier, ok := m.overrunSaid.allow(start.Add(took)); ok {
		logger.Info("A plugin took longer than its budget", m.values(pod, "took", took, "budget", m.budget, "notLogged", earlier)...)
	}
}

// panicked counts, logs and tells of a panic, and returns the error that it
// becomes. Where the same was logged a moment ago, the event and the counter
// remain. It must be called below the deferred function that recovered, while
// the stack is still the plugin's.
func (m *meter) panicked(logger klog.Logger, pod *v1.Pod, what any) error {
	m.panics.Inc()
	err := fmt.Errorf("plugin %q panicked at %s: %v; the stack is in the scheduler's log", m.guard.plugin, m.point, what)
	if earlier, ok := m.panicSaid.allow(m.now()); ok {
		logger.Error(err, "A plugin panicked", m.values(pod, "notLogged", earlier, "stack", string(debug.Stack()))...)
	}
	if pod != nil && m.guard.events != nil {
		m.guard.events.Eventf(pod, nil, v1.EventTypeWarning, "PluginPanic", "Scheduling", "%s", err.Error())
	}
	return err
}

// values are what every line of the log says, and more.
func (m *meter) values(pod *v1.Pod, more ...any) []any {
	values := append([]any{"plugin", m.guard.plugin, "extensionPoint", string(m.point), "profile", m.guard.profile}, more...)
	if pod != nil {
		values = append(values, "pod", klog.KObj(pod))
	}
	return values
}

// failed is the status of a pod whose plugin panicked.
func (m *meter) failed(err error) *fwk.Status {
	return fwk.AsStatus(err).WithPlugin(m.guard.plugin)
}

// sayEvery is how often a plugin may say the same thing at one point: a Filter
// that is slow is so on thousands of nodes. The metrics count every time.
const sayEvery = 10 * time.Second

// limiter lets one through each sayEvery, and counts the others.
type limiter struct {
	mu      sync.Mutex
	last    time.Time
	skipped int
}

// allow reports whether now is late enough, and how many were not since then.
func (l *limiter) allow(now time.Time) (skipped int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.last.IsZero() && now.Sub(l.last) < sayEvery {
		l.skipped++
		return 0, false
	}
	skipped, l.skipped, l.last = l.skipped, 0, now
	return skipped, true
}
