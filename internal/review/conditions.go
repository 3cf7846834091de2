package review

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Condition is something that a review must not have: "moved>10%".
type Condition struct {
	name string
	// above is what may not be exceeded; of all pods where percent is set.
	above   float64
	percent bool
	// severity is the least that counts, of findings.
	severity diag.Severity
}

// conditions are those that there are, with whether they take a number.
var conditions = []struct{ name, form string }{
	{"pending", "pending, pending>N"},
	{"needs-nodes", "needs-nodes, needs-nodes>N"},
	{"moved", "moved, moved>N, moved>N%"},
	{"restarts", "restarts, restarts>N, restarts>N%"},
	{"skew", "skew>N"},
	{"ignored", "ignored, ignored>N"},
	{"findings", "findings=error, findings=warning, findings=info"},
}

// ParseCondition reads one condition. The error lists those that there are.
func ParseCondition(text string) (Condition, error) {
	fail := func() (Condition, error) {
		var forms []string
		for _, c := range conditions {
			forms = append(forms, c.form)
		}
		return Condition{}, fmt.Errorf("%q is no condition; there are %s", text, strings.Join(forms, ", "))
	}
	if severity, ok := strings.CutPrefix(text, "findings="); ok {
		c := Condition{name: "findings", severity: diag.Severity(severity)}
		if weight(c.severity) == 0 {
			return fail()
		}
		return c, nil
	}
	name, number, compared := strings.Cut(text, ">")
	i := slices.IndexFunc(conditions, func(c struct{ name, form string }) bool { return c.name == name && name != "findings" })
	if i < 0 || !compared && name == "skew" {
		return fail()
	}
	c := Condition{name: name}
	if !compared {
		return c, nil
	}
	if number, c.percent = strings.CutSuffix(number, "%"); c.percent && name != "moved" && name != "restarts" {
		return fail()
	}
	var err error
	if c.above, err = strconv.ParseFloat(number, 64); err != nil || c.above < 0 || math.IsInf(c.above, 0) || math.IsNaN(c.above) || !c.percent && c.above != math.Trunc(c.above) || strings.ContainsAny(number, "eExXpP_+") {
		return fail()
	}
	return c, nil
}

// weight orders severities; 0 for what is none.
func weight(s diag.Severity) int {
	switch s {
	case diag.Error:
		return 3
	case diag.Warning:
		return 2
	case diag.Info:
		return 1
	}
	return 0
}

// Failed returns why the review does not meet the condition, a line for each cluster
// or finding; none if it does. Only what the head makes worse counts: a pod that is
// Pending with the base too is nothing that the change did.
func (c Condition) Failed(r *Review) []string {
	var out []string
	if c.name == "findings" {
		n := 0
		for _, f := range r.Findings {
			if weight(f.Severity) >= weight(c.severity) {
				n++
			}
		}
		if n > 0 {
			out = append(out, fmt.Sprintf("findings=%s: %s", c.severity, plural(n, "there is 1 new one", "there are %d new ones")))
		}
		return out
	}
	if c.name == "ignored" {
		if why := c.judge(len(r.Ignored), 0, "1 more finding is ignored", "%d more findings are ignored"); why != "" {
			out = append(out, why)
		}
		return out
	}
	for _, s := range r.Sections {
		if why := c.failed(s); why != "" {
			if len(s.Clusters) > 0 {
				why += " (" + strings.Join(s.Clusters, ", ") + ")"
			}
			out = append(out, why)
		}
	}
	return out
}

func (c Condition) failed(s Section) string {
	if c.name == "restarts" {
		pods := 0
		if s.Placement != nil {
			pods = s.Placement.Pods
		}
		return c.judge(s.Restarts.Pods, pods, "1 pod restarts", "%d pods restart")
	}
	p := s.Placement
	if p == nil {
		return ""
	}
	switch c.name {
	case "pending":
		return c.judge(p.Pending.After-p.Pending.Before, p.Pods, "1 more pod stays Pending", "%d more pods stay Pending")
	case "needs-nodes":
		return c.judge(p.NeedsNodes.After-p.NeedsNodes.Before, p.Pods, "1 more pod needs new nodes", "%d more pods need new nodes")
	case "moved":
		return c.judge(p.Moved, p.Pods, "1 pod moves", "%d pods move")
	}
	for _, k := range p.Skews {
		if k.Asked && k.After > k.Before && float64(k.After) > c.above {
			return fmt.Sprintf("%s: %s over %s has %d instead of %d", c, k.Workload, k.Key, k.After, k.Before)
		}
	}
	return ""
}

// plural is one of two forms of a text about a number.
func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return fmt.Sprintf(many, n)
}

// judge returns why n of so many pods are too many, in one of two forms; empty if they
// are not.
func (c Condition) judge(n, pods int, one, many string) string {
	limit := c.above
	if c.percent {
		limit = c.above * float64(pods) / 100
	}
	if float64(n) <= limit {
		return ""
	}
	text := c.String() + ": " + plural(n, one, many)
	if c.percent {
		text += fmt.Sprintf(" of %d", pods)
	}
	return text
}

// String is the condition as it is written.
func (c Condition) String() string {
	switch {
	case c.name == "findings":
		return c.name + "=" + string(c.severity)
	case c.percent:
		return fmt.Sprintf("%s>%v%%", c.name, c.above)
	case c.above > 0 || c.name == "skew":
		return fmt.Sprintf("%s>%v", c.name, c.above)
	}
	return c.name
}
