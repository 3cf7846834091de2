package report

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/kubectl-sched/kubectl-sched/internal/apply"
)

// Landings writes a table of where pods are: for each workload, zone and pool,
// on how many nodes how many pods are.
func Landings(w io.Writer, landings []apply.Landing) error {
	type row struct{ workload, zone, pool string }
	type count struct{ nodes, pods, ready int }
	var order []row
	counts := map[row]*count{}
	for _, l := range landings {
		key := row{l.Workload, l.Zone, l.Pool}
		if l.Node == "" {
			key.zone = pendingZone
		}
		c := counts[key]
		if c == nil {
			c = &count{}
			counts[key] = c
			order = append(order, key)
		}
		if l.Node != "" {
			c.nodes++
		}
		c.pods += l.Pods
		c.ready += l.Ready
	}
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "WORKLOAD\tZONE\tPOOL\tNODES\tPODS\tREADY")
	for _, key := range order {
		c := counts[key]
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%d\n", key.workload, orNone(key.zone), orNone(key.pool), c.nodes, c.pods, c.ready)
	}
	return t.Flush()
}

// pendingZone stands in the zone's column for pods that have no node.
const pendingZone = "(pending)"

func orNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}
