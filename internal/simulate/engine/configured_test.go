package engine

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
)

// As configured, not all nodes are looked at, and the same ones each time.
func TestAsConfigured(t *testing.T) {
	t.Parallel()
	run := func(percentage *int32) []Attempt {
		profiles := stock(t)
		profiles[0].PercentageOfNodesToScore = percentage
		e := start(t, Options{Profiles: profiles, AsConfigured: true})
		for i := range 300 {
			put(t, e, node(fmt.Sprintf("n%03d", i), "z", "4"))
		}
		for i := range 5 {
			put(t, e, pod(fmt.Sprintf("p%d", i), "1"))
		}
		settle(t, e)
		return e.Attempts()
	}
	// Upstream samples 48 % of 300 nodes by itself (numFeasibleNodesToFind).
	attempts := run(nil)
	for _, a := range attempts {
		if a.Node == "" || a.Evaluated != 144 {
			t.Errorf("pod %s is on %q after %d nodes were looked at, want a node after 144", a.Pod.Name, a.Node, a.Evaluated)
		}
	}
	if diff := cmp.Diff(where(attempts), where(run(nil))); diff != "" {
		t.Errorf("the second run differs: %s", diff)
	}
	percentage := int32(90)
	if a := run(&percentage); a[0].Evaluated != 270 {
		t.Errorf("%d nodes were looked at, want 90 %% of 300", a[0].Evaluated)
	}
}

// Extenders are asked only where that is wanted, about pods of their own scheduler,
// and bind nothing.
func TestExtenders(t *testing.T) {
	t.Parallel()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in extenderv1.ExtenderArgs
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.URL.Path != "/filter" {
			t.Errorf("asked for %s (%v), want /filter", r.URL.Path, err)
		}
		asked = append(asked, in.Pod.Name)
		out := extenderv1.ExtenderFilterResult{Nodes: &corev1.NodeList{}, FailedNodes: extenderv1.FailedNodesMap{}}
		for _, n := range in.Nodes.Items {
			if n.Name == "b" {
				out.Nodes.Items = append(out.Nodes.Items, n)
			} else {
				out.FailedNodes[n.Name] = "the licence is for b"
			}
		}
		if err := json.NewEncoder(w).Encode(out); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	second := stock(t)[0]
	second.SchedulerName = "other"
	o := Options{
		Profiles:  append(stock(t), second),
		Extenders: []Extender{{Extender: config.Extender{URLPrefix: server.URL, FilterVerb: "filter", BindVerb: "bind", Weight: 1}, Schedulers: []string{"default-scheduler"}}},
	}
	run := func(o Options) map[string]string {
		e := start(t, o, node("a", "z1", "8"), node("b", "z2", "2"),
			pod("p0", "1"), pod("p1", "1"), pod("p2", "1"), pod("q", "4", func(p *corev1.Pod) { p.Spec.SchedulerName = "other" }))
		settle(t, e)
		return where(e.Attempts())
	}
	if got := run(o); got["p2"] != "a" && got["p2"] != "b" || len(asked) > 0 {
		t.Errorf("attempts are %v and %v were asked about, want all placed and nobody asked", got, asked)
	}
	o.CallExtenders = true
	got := run(o)
	want := map[string]string{"p0": "b", "p1": "b", "q": "a"}
	message := got["p2"]
	delete(got, "p2")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if wantMessage := "0/2 nodes are available: 1 Insufficient cpu, 1 the licence is for b."; len(message) < len(wantMessage) || message[:len(wantMessage)] != wantMessage {
		t.Errorf("p2's message is %q, want it to begin with %q", message, wantMessage)
	}
	if slices.Contains(asked, "q") {
		t.Error("the extender was asked about a pod of another scheduler")
	}
}
