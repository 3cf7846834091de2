package report

import (
	"fmt"
	"io"

	"github.com/kubectl-sched/kubectl-sched/internal/apply"
)

// Landings writes a table of where pods are: for each workload, zone and pool,
// on how many nodes how many pods are. Zones and pools have their columns where
// any are known.
func Landings(w io.Writer, landings []apply.Landing, o Options) error {
	type place struct{ workload, zone, pool string }
	type count struct{ nodes, pods, ready int }
	var order []place
	counts := map[place]*count{}
	for _, l := range landings {
		key := place{l.Workload, l.Zone, l.Pool}
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
	zones, pools := false, false
	for _, key := range order {
		zones = zones || key.zone != ""
		pools = pools || key.pool != ""
	}
	t := &table{}
	row := func(workload, zone, pool, nodes, pods, ready string) {
		cells := []string{workload}
		if zones {
			cells = append(cells, zone)
		}
		if pools {
			cells = append(cells, pool)
		}
		t.add(append(cells, nodes, pods, ready)...)
	}
	row("WORKLOAD", "ZONE", "POOL", "NODES", "PODS", "READY")
	for _, key := range order {
		c := counts[key]
		row(key.workload, orNone(key.zone), orNone(key.pool), fmt.Sprint(c.nodes), fmt.Sprint(c.pods), fmt.Sprint(c.ready))
	}
	_, err := io.WriteString(w, t.text(o.width()))
	return err
}

// pendingZone stands in the zone's column for pods that have no node.
const pendingZone = "(pending)"

func orNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}
