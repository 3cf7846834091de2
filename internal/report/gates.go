package report

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-sched/kubectl-sched/internal/gating"
)

// Gates writes which gates hold back pods, as a table or for tools. The table
// leaves the namespace out unless several are shown.
func Gates(w io.Writer, format Format, waits []gating.Wait, namespaces bool, o Options) error {
	if format != Text {
		return documents(w, format, "GateList", map[string]any{"gates": waits})
	}
	t := &table{}
	row := func(namespace string, cells ...string) {
		if namespaces {
			cells = append([]string{namespace}, cells...)
		}
		t.add(cells...)
	}
	row("NAMESPACE", "POD", "GATE", "FOR", "WHY")
	for _, wait := range waits {
		row(wait.Namespace, wait.Pod, wait.Name, age(wait.Since, o.Now), why(wait))
	}
	_, err := io.WriteString(w, t.text(o.width()))
	return err
}

// age says how long ago something was, as kubectl does.
func age(since, now time.Time) string {
	if now.IsZero() {
		return since.UTC().Format(time.RFC3339)
	}
	return duration.HumanDuration(now.Sub(since))
}

// why says what a gate waits for.
func why(wait gating.Wait) string {
	switch {
	case !wait.Ours:
		return "not ours; put in by " + cmp.Or(wait.By, "nobody knows whom")
	case wait.Why != "":
		return wait.Why
	default:
		return fmt.Sprintf("waits for %s; the bundled scheduler has said nothing of it yet: does it run?", wait.For)
	}
}
