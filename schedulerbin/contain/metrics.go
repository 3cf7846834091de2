package contain

import "github.com/prometheus/client_golang/prometheus"

// Metrics are the counters of all contained plugins of one process. They are a
// prometheus.Collector, for the program to register where its metrics are served
// (for a scheduler: legacyregistry.RawMustRegister, beside upstream's own).
type Metrics struct {
	seconds  *prometheus.HistogramVec
	panics   *prometheus.CounterVec
	overruns *prometheus.CounterVec
}

var _ prometheus.Collector = (*Metrics)(nil)

// NewMetrics returns metrics that are all zero.
func NewMetrics() *Metrics {
	labels := []string{"plugin", "extension_point", "profile"}
	return &Metrics{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "kubectl_sched_plugin_duration_seconds",
			Help: "Time of one call of a bundled plugin at an extension point.",
			// From 1µs, as upstream's plugin_execution_duration_seconds does, to 5s:
			// a plugin that calls out is seen as well.
			Buckets: prometheus.ExponentialBuckets(1e-6, 4, 12),
		}, labels),
		panics: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubectl_sched_plugin_panics_total",
			Help: "Panics of a bundled plugin, each of which became an error for one pod.",
		}, labels),
		overruns: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubectl_sched_plugin_over_budget_total",
			Help: "Calls of a bundled plugin that took longer than the extension point's budget.",
		}, labels),
	}
}

// Describe sends the descriptions of all metrics.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	m.seconds.Describe(to)
	m.panics.Describe(to)
	m.overruns.Describe(to)
}

// Collect sends the current values of all metrics.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	m.seconds.Collect(to)
	m.panics.Collect(to)
	m.overruns.Collect(to)
}
