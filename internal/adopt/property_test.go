package adopt_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/compiler/admission/admissiontest"
	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/adopt"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// TestRoundTrip holds over random workloads, of all built-in kinds and with all
// sorts of placement, that the proposed policies change none of them, that they
// bring back what was taken out, and that the same is proposed whatever the order
// of the input.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	deadline := time.Now().Add(30 * time.Second)
	var total adopt.Proof
	worlds, templates := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		if time.Now().After(deadline) {
			return
		}
		world := admissiontest.Draw(t, 1, 40)
		r := adopt.Request{Package: "imported", Now: now, Modernize: false}
		if world.Known {
			r.Capabilities = capability.Capabilities{Minor: 37, NodesKnown: true, Nodes: world.Capabilities.Nodes}
		}
		for _, o := range world.Workloads {
			chartLike(t, o)
			w, findings, ok := workload.FromObject(o, workload.Options{}, workload.Source{})
			if !ok || findings.HasErrors() {
				t.Fatal(findings)
			}
			r.Workloads = append(r.Workloads, w)
		}
		p, err := adopt.Propose(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		templates += roundTrip(t, r.Workloads, p)
		worlds++
		total.Pieces += p.Proof.Pieces
		total.Intents += p.Proof.Intents
		total.Raw += p.Proof.Raw
		total.Left += p.Proof.Left

		slices.Reverse(r.Workloads)
		again, err := adopt.Propose(context.Background(), r)
		if err != nil || !bytes.Equal(p.Document, again.Document) {
			t.Fatalf("%v: once more it is otherwise:\n%s\n%s", err, p.Document, again.Document)
		}
	})
	t.Logf("%d worlds, %d templates with placement: %+v", worlds, templates, total)
	if worlds == 0 || total.Intents == 0 || total.Raw == 0 {
		t.Error("nothing was tried")
	}
}

// chartLike gives the object, sometimes, placement as charts have it: about its own
// pods, and the same in many.
func chartLike(t *rapid.T, o map[string]any) {
	one := func(label string, in int) bool { return rapid.IntRange(1, in).Draw(t, label) == 1 }
	inside, _ := workload.Lookup(o, "spec", "template")
	if o["kind"] == "CronJob" {
		inside, _ = workload.Lookup(o, "spec", "jobTemplate", "spec", "template")
	}
	template, ok := inside.(map[string]any)
	if !ok {
		template = o // a pod
	}
	spec := template["spec"].(map[string]any)
	metadata := template["metadata"].(map[string]any)
	selector := map[string]any{"matchLabels": maps.Clone(metadata["labels"].(map[string]any))}
	if one("byObject", 2) {
		if own, ok := workload.Lookup(o, "spec", "selector"); ok {
			selector = maps.Clone(own.(map[string]any))
		}
	}
	affinity := func() map[string]any {
		a, ok := spec["affinity"].(map[string]any)
		if !ok {
			a = map[string]any{}
			spec["affinity"] = a
		}
		return a
	}
	if one("ownSpread", 3) {
		c := map[string]any{"maxSkew": int64(1), "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": selector}
		switch rapid.IntRange(1, 4).Draw(t, "spreadStyle") {
		case 1:
			c["whenUnsatisfiable"] = "DoNotSchedule"
		case 2:
			c["matchLabelKeys"] = []any{"pod-template-hash"}
			c["nodeTaintsPolicy"] = "Honor"
		case 3:
			c["whenUnsatisfiable"], c["minDomains"], c["nodeTaintsPolicy"], c["matchLabelKeys"] = "DoNotSchedule", int64(3), "Honor", []any{"pod-template-hash"}
		}
		spec["topologySpreadConstraints"] = []any{c}
		if one("hostToo", 2) {
			spec["topologySpreadConstraints"] = []any{c, map[string]any{"maxSkew": int64(2), "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": selector}}
		}
		if one("nothing", 8) {
			delete(c, "labelSelector")
			delete(c, "matchLabelKeys")
		}
	}
	if one("ownApart", 3) {
		term := map[string]any{"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
		switch rapid.IntRange(1, 5).Draw(t, "namespaces") {
		case 1:
			term["namespaces"] = []any{"ml", "shop"}
		case 2:
			term["namespaceSelector"] = map[string]any{}
		case 3:
			term["matchLabelKeys"] = []any{"pod-template-hash"}
		}
		if one("hard", 2) {
			affinity()["podAntiAffinity"] = map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": []any{term}}
		} else {
			affinity()["podAntiAffinity"] = map[string]any{"preferredDuringSchedulingIgnoredDuringExecution": []any{map[string]any{"weight": int64(100), "podAffinityTerm": term}}}
		}
	}
	if one("dedicated", 4) {
		spec["tolerations"] = []any{map[string]any{"key": "t1", "operator": "Equal", "value": "x", "effect": "NoSchedule"}, map[string]any{"key": "t2", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": int64(30)}}
		if one("byAffinity", 2) {
			term := map[string]any{"matchExpressions": []any{map[string]any{"key": "k1", "operator": "In", "values": []any{"a"}}}}
			affinity()["nodeAffinity"] = map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{"nodeSelectorTerms": []any{term}}}
		} else {
			spec["nodeSelector"] = map[string]any{"k1": "a", "beta.kubernetes.io/os": "linux"}
		}
	}
	switch rapid.IntRange(1, 8).Draw(t, "toleration") {
	case 1:
		spec["tolerations"] = []any{map[string]any{"operator": "Exists"}}
	case 2:
		spec["tolerations"] = []any{map[string]any{"operator": "Exists", "effect": "NoSchedule"}}
	}
	switch rapid.IntRange(1, 8).Draw(t, "scalars") {
	case 1:
		spec["priorityClassName"] = "high"
	case 2:
		spec["priorityClassName"], spec["preemptionPolicy"] = "high", "Never"
	case 3:
		spec["schedulerName"] = "other"
	case 4:
		spec["preemptionPolicy"] = "Never"
	case 5:
		spec["priorityClassName"] = fmt.Sprintf("class.%d", 1)
	}
}
