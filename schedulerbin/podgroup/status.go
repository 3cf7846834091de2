package podgroup

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// phase is the phase of a gang in the status of its PodGroup object, in the words
// of scheduler-plugins (apis/scheduling/v1alpha1, PodGroupPhase).
type phase string

const (
	phasePending    phase = "Pending"    // no member has a node
	phaseUnknown    phase = "Unknown"    // a part alone has nodes
	phaseScheduling phase = "Scheduling" // enough members have nodes, and do not all run yet
	phaseRunning    phase = "Running"    // enough members run or have succeeded
	phaseFinished   phase = "Finished"   // enough members have succeeded
	phaseFailed     phase = "Failed"     // members have failed, and too few are left
)

// groupStatus is what the status of a PodGroup object says. It is comparable.
type groupStatus struct {
	phase                                 phase
	occupiedBy                            string
	scheduled, running, succeeded, failed int32
	// started is when the first member got a node, in seconds since 1970; 0: none
	// has one.
	started int64
}

// objectStatus is the status that a PodGroup object has, and who wrote it.
type objectStatus struct {
	says groupStatus
	// managers are those who own fields of the status, by managedFields.
	managers map[string]bool
}

// foreign reports whether somebody but own keeps the status.
func (s objectStatus) foreign(own string) bool {
	for manager := range s.managers {
		if manager != own {
			return true
		}
	}
	return false
}

// parseStatus returns the status of a PodGroup object. What cannot be read counts
// as not said: it will differ from what should be said, and is written anew.
func parseStatus(u *unstructured.Unstructured) objectStatus {
	text := func(field string) string {
		s, _, _ := unstructured.NestedString(u.Object, "status", field)
		return s
	}
	number := func(field string) int32 {
		n, _, _ := unstructured.NestedInt64(u.Object, "status", field)
		return int32(n)
	}
	s := objectStatus{
		says: groupStatus{
			phase: phase(text("phase")), occupiedBy: text("occupiedBy"),
			scheduled: number("scheduled"), running: number("running"), succeeded: number("succeeded"), failed: number("failed"),
		},
		managers: map[string]bool{},
	}
	if at, err := time.Parse(time.RFC3339, text("scheduleStartTime")); err == nil {
		s.says.started = at.Unix()
	}
	for _, entry := range u.GetManagedFields() {
		if ownsStatus(entry) {
			s.managers[entry.Manager] = true
		}
	}
	return s
}

// ownsStatus reports whether a manager owns a field of the status.
func ownsStatus(entry metav1.ManagedFieldsEntry) bool {
	if entry.FieldsV1 == nil {
		return false
	}
	var fields struct {
		Status map[string]json.RawMessage `json:"f:status"`
	}
	if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
		return true // in doubt it is theirs
	}
	for field := range fields.Status {
		if strings.HasPrefix(field, "f:") {
			return true
		}
	}
	return false
}

// object returns what is applied to the status. Old versions of the type have the
// number of scheduled members, newer ones dropped it.
func (s groupStatus) object(withScheduled bool) map[string]any {
	o := map[string]any{
		"phase": string(s.phase), "running": int64(s.running), "succeeded": int64(s.succeeded), "failed": int64(s.failed),
	}
	if s.occupiedBy != "" {
		o["occupiedBy"] = s.occupiedBy
	}
	if s.started != 0 {
		o["scheduleStartTime"] = time.Unix(s.started, 0).UTC().Format(time.RFC3339)
	}
	if withScheduled {
		o["scheduled"] = int64(s.scheduled)
	}
	return o
}

// wantedStatus is what the status of one PodGroup object should say.
type wantedStatus struct {
	of      object
	uid     types.UID
	says    groupStatus
	current objectStatus
	// members says that pods of our profiles are in the gang. Without any, a status
	// that we wrote is kept right, and none is begun.
	members bool
}

// statuses returns what the status of every PodGroup object should say that has
// members or a status, by name. The status of an object whose gangs are runs, as
// of a CronJob, is that of the run which began last.
func (d *directory) statuses() []wantedStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []wantedStatus
	for of, s := range d.specs {
		wanted := wantedStatus{of: of, uid: s.uid, current: s.status}
		var last *gang
		for g := range d.of[of] {
			if last == nil || g.seen > last.seen {
				last = g
			}
		}
		if last != nil {
			_, wanted.members = d.policyOf(last)
		}
		wanted.says = statusOf(last, s)
		all = append(all, wanted)
	}
	slices.SortFunc(all, func(a, b wantedStatus) int {
		return cmp.Or(cmp.Compare(a.of.family, b.of.family), cmp.Compare(a.of.namespace, b.of.namespace), cmp.Compare(a.of.name, b.of.name))
	})
	return all
}

// statusOf returns what the status of a PodGroup object that says s should be when
// g, which may be nil, is its gang.
func statusOf(g *gang, s *spec) groupStatus {
	was := s.status.says
	if g == nil {
		if was.phase == phaseFinished || was.phase == phaseFailed {
			return was // its pods were cleared away
		}
		return groupStatus{phase: phasePending}
	}
	var says groupStatus
	owners := map[string]bool{}
	for _, m := range g.members {
		if m.node != "" {
			says.scheduled++
		}
		if m.running {
			says.running++
		}
		owners[m.owner] = true
	}
	left := int32(len(g.members))
	for uid, f := range g.finished {
		if _, still := g.members[uid]; still {
			continue // the two informers are not in step
		}
		owners[f.owner] = true
		if f.failed {
			says.failed++
		} else {
			says.succeeded++
			says.scheduled++
			left++
		}
	}
	// As scheduler-plugins' controller writes it: the owners' names, not their UIDs.
	delete(owners, "")
	for _, owner := range slices.Sorted(maps.Keys(owners)) {
		if says.occupiedBy != "" {
			says.occupiedBy += ","
		}
		says.occupiedBy += g.id.Namespace + "/" + owner
	}
	if says.scheduled > 0 {
		if says.started = was.started; says.started == 0 {
			says.started = g.started.Unix()
		}
	}
	says.phase = says.phaseWith(s.minMember, left)
	return says
}

// phaseWith returns the phase when minMember members must start together, and left
// are there that have not failed.
func (s groupStatus) phaseWith(minMember, left int32) phase {
	switch {
	case s.succeeded >= minMember && minMember > 0:
		return phaseFinished
	case s.failed > 0 && left < minMember:
		return phaseFailed
	case s.scheduled == 0:
		return phasePending
	case s.running+s.succeeded >= minMember:
		return phaseRunning
	case s.scheduled >= minMember:
		return phaseScheduling
	default:
		return phaseUnknown
	}
}
