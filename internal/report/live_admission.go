package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/apply"
)

// admissionText says how far admission policies have come: of each policy, how
// many running pods it is for, has placed, and has not.
func admissionText(s *apply.Status, o Options) string {
	a := s.Admission
	lines := []string{"", StepLine(a.Step, s.Scope)}
	if a.Expires != "" {
		lines = append(lines, fmt.Sprintf("an exception in it ends on %s; apply again then", a.Expires))
	}
	lines = append(lines, fmt.Sprintf("%s there, %d of them placed by it", plural(a.Pods, "running pod"), a.Placed))
	for i := range lines {
		lines[i] = wrap(lines[i], o.width(), "    ") + "\n"
	}
	text := strings.Join(lines, "")
	if len(a.Policies) == 0 {
		return text
	}
	last := "PREDATE IT"
	if a.Step.Observe {
		last = "WOULD CHANGE"
	}
	t := &table{}
	t.add("POLICY", "FOR PODS", "PLACED", last, "BY REVISION")
	for _, p := range a.Policies {
		n := p.Predating
		if a.Step.Observe {
			n = p.Pending
		}
		t.add(p.Policy, strconv.Itoa(p.Selected), strconv.Itoa(p.PlacedPods()), strconv.Itoa(n), orNone(byRevision(p.Placed)))
	}
	return text + "\n" + t.text(o.width())
}

// byRevision writes counts of pods by revision, the newest first: "4: 12, 3: 1".
func byRevision(pods map[int]int) string {
	var parts []string
	for _, number := range slices.Backward(slices.Sorted(maps.Keys(pods))) {
		name := strconv.Itoa(number)
		if number == 0 {
			name = "older"
		}
		parts = append(parts, fmt.Sprintf("%s: %d", name, pods[number]))
	}
	return strings.Join(parts, ", ")
}

func admissionDocument(a *apply.AdmissionStatus) map[string]any {
	policies := []map[string]any{}
	for _, p := range a.Policies {
		placed := []map[string]any{}
		for _, number := range slices.Backward(slices.Sorted(maps.Keys(p.Placed))) {
			placed = append(placed, map[string]any{"revision": number, "pods": p.Placed[number]})
		}
		policies = append(policies, map[string]any{
			"policy": p.Policy, "selected": p.Selected, "placed": p.PlacedPods(), "byRevision": placed,
			"predating": p.Predating, "pending": p.Pending,
		})
	}
	document := map[string]any{
		"surface": a.Step.Surface, "observe": a.Step.Observe, "content": a.Content,
		"pods": a.Pods, "placed": a.Placed, "policies": policies,
	}
	if a.Expires != "" {
		document["expires"] = a.Expires
	}
	return document
}
