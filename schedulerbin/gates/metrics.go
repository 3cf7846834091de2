package gates

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/condition"
)

// metrics are how many pods wait, and how many gates were opened.
type metrics struct {
	waiting *prometheus.GaugeVec
	opened  *prometheus.CounterVec

	mu      sync.Mutex
	current map[string]map[condition.Kind]int
}

func newMetrics() *metrics {
	labels := []string{"condition"}
	return &metrics{
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kubectl_sched_gates_waiting_pods",
			Help: "Pods that wait for a condition of this kind. One that waits for several is counted for each; unreadable are those whose condition cannot be read.",
		}, labels),
		opened: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubectl_sched_gates_opened_total",
			Help: "Scheduling gates that were removed because their condition held.",
		}, labels),
		current: map[string]map[condition.Kind]int{},
	}
}

// set says how many pods of the namespace wait, by kind.
func (m *metrics) set(namespace string, count map[condition.Kind]int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.current[namespace] = count; len(count) == 0 {
		delete(m.current, namespace)
	}
	for _, kind := range append(condition.Kinds(), unreadable) {
		sum := 0
		for _, counts := range m.current {
			sum += counts[kind]
		}
		m.waiting.WithLabelValues(string(kind)).Set(float64(sum))
	}
}

var _ prometheus.Collector = (*Controller)(nil)

// Describe sends the descriptions of all metrics.
func (c *Controller) Describe(to chan<- *prometheus.Desc) {
	c.metrics.waiting.Describe(to)
	c.metrics.opened.Describe(to)
}

// Collect sends the current values of all metrics.
func (c *Controller) Collect(to chan<- prometheus.Metric) {
	c.metrics.waiting.Collect(to)
	c.metrics.opened.Collect(to)
}
