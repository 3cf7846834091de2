package profile

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// defaultExtenderTimeout is upstream's (pkg/scheduler, DefaultExtenderTimeout), and
// slowExtender what is long for something that every pod waits for.
const (
	defaultExtenderTimeout = 5 * time.Second
	slowExtender           = time.Second
)

// extenders looks at what upstream takes as it is.
func (l *linter) extenders(c *configv1.KubeSchedulerConfiguration) {
	for i := range c.Extenders {
		e := &c.Extenders[i]
		path := []string{"extenders", strconv.Itoa(i)}
		l.extenderURL(e, path)
		switch {
		case e.FilterVerb+e.PreemptVerb+e.PrioritizeVerb+e.BindVerb != "":
			l.extenderTime(e, path)
		case len(e.ManagedResources) == 0: // else it tells the scheduler to ignore resources
			l.bad(diag.Warning, "scheduler/extender-idle", path, "the extender has no verb, so it is never called; name those that it answers to, or leave it out")
		}
	}
}

func (l *linter) extenderURL(e *configv1.Extender, path []string) {
	u, err := url.Parse(e.URLPrefix)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || !isPort(u.Port()) {
		l.bad(diag.Error, "scheduler/extender-url", below(path, "urlPrefix"),
			"%q is no address, and every pod would fail when the extender is called; write one such as \"https://extender.example:8443/scheduler\"", e.URLPrefix)
		return
	}
	hasCA := e.TLSConfig != nil && len(e.TLSConfig.CAFile)+len(e.TLSConfig.CAData) > 0
	switch {
	case u.Scheme == "http" && (e.EnableHTTPS || e.TLSConfig != nil):
		l.bad(diag.Warning, "scheduler/extender-url", below(path, "urlPrefix"),
			"the address decides, and with http the extender is called in the clear, whatever enableHTTPS and tlsConfig say; write https")
	case e.EnableHTTPS && !hasCA:
		l.bad(diag.Warning, "scheduler/extender-url", below(path, "enableHTTPS"),
			"with enableHTTPS and no authority in tlsConfig the extender's certificate is not checked; give tlsConfig.caFile, or leave enableHTTPS out for the system's authorities")
	}
}

// isPort reports whether it is the number of a port, or none is named.
func isPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}

// extenderTime says what an extender costs each pod that asks it.
func (l *linter) extenderTime(e *configv1.Extender, path []string) {
	every, severity := "every pod", diag.Warning
	if len(e.ManagedResources) > 0 {
		every, severity = "each pod with its resources", diag.Info
	}
	var costs, advice []string
	timeout := e.HTTPTimeout.Duration
	at := path
	switch {
	case timeout == 0:
		costs, advice = append(costs, fmt.Sprintf("waits up to %s for one that does not answer", defaultExtenderTimeout)), append(advice, "a short httpTimeout")
	case timeout > slowExtender:
		costs, advice, at = append(costs, fmt.Sprintf("waits up to %s for one that does not answer", timeout)), append(advice, "a shorter httpTimeout"), below(path, "httpTimeout")
	}
	if len(costs) > 0 && !e.Ignorable && e.BindVerb == "" {
		costs, advice = append(costs, "then fails"), append(advice, "ignorable: true, if it is dispensable")
	}
	if !e.NodeCacheCapable && e.FilterVerb+e.PrioritizeVerb != "" && len(e.ManagedResources) == 0 {
		costs, advice = append(costs, "sends it all nodes in full"), append(advice, "nodeCacheCapable: true, if it knows them")
	}
	if len(costs) == 0 {
		return
	}
	l.bad(severity, "scheduler/extender-slow", at, "the extender is asked for %s, which %s; set %s", every, strings.Join(costs, ", "), strings.Join(advice, ", "))
}
