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
	t := &table{}
	heads := []string{"PREDATE IT"}
	// Most sets have no pod that would fit nowhere, and need no column for it.
	nowhere := a.Step.Observe && slices.ContainsFunc(a.Policies, func(p apply.PolicyStatus) bool { return p.Nowhere > 0 })
	if a.Step.Observe {
		heads[0] = "WOULD CHANGE"
	}
	if nowhere {
		heads = append(heads, "THEN NO NODE")
	}
	t.add(slices.Concat([]string{"POLICY", "FOR PODS", "PLACED"}, heads, []string{"BY REVISION"})...)
	for _, p := range a.Policies {
		counts := []int{p.Selected, p.PlacedPods(), p.Predating}
		if a.Step.Observe {
			counts[2] = p.Pending
		}
		if nowhere {
			counts = append(counts, p.Nowhere)
		}
		cells := []string{p.Policy}
		for _, n := range counts {
			cells = append(cells, strconv.Itoa(n))
		}
		t.add(append(cells, orNone(byRevision(p.Placed)))...)
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
			"predating": p.Predating, "pending": p.Pending, "nowhere": p.Nowhere,
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
