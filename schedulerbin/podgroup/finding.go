package podgroup

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
)

// The reasons of events about gangs.
const (
	// ReasonMissing is of a gang whose size nobody says.
	ReasonMissing = "GangMissing"
	// ReasonInvalid is of a gang whose PodGroup object cannot be meant so.
	ReasonInvalid = "GangInvalid"
	// ReasonMixed is of a gang whose members contradict each other.
	ReasonMixed = "GangMixed"
	// ReasonWaiting is of a gang that waits for members or for room.
	ReasonWaiting = "GangWaiting"
	// ReasonPartial is of a gang that stays bound in part after its timeout.
	ReasonPartial = "GangPartial"
)

// finding is what there is to say of a gang that waits.
type finding struct {
	group        types.NamespacedName
	reason, note string
	remaining    time.Duration // until the gang's timeout; 0: not said
	waiting      []corev1.ObjectReference
	bound        []corev1.ObjectReference
	object       *corev1.ObjectReference // the PodGroup object, where there is one
	evict        bool
	// growing says that members are still missing or behind gates, as while they are
	// being made: one of them is told then, not each.
	growing bool
	// long says that the gang has waited for so long that every member is told.
	long bool
	// held says that seats are held for it.
	held bool
}

// left returns the end of the note that says how long is left.
func (f finding) left() string {
	if f.remaining <= 0 {
		return ""
	}
	return fmt.Sprintf("; %s left", f.remaining.Round(time.Second))
}

// tried notes how many members a trial of a group has placed. When a group does
// not fit, the scheduler tries it again without the pods that it could preempt:
// only the first trial since it last spoke of the group counts.
func (d *directory) tried(group types.NamespacedName, trial any, placed int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	g := d.keys[group]
	if g == nil || g.trial != nil && g.trial != trial {
		return
	}
	g.trial, g.placed = trial, placed
}

// findings returns what there is to say of the gangs that wait, by name.
func (d *directory) findings(now time.Time) []finding {
	d.mu.Lock()
	defer d.mu.Unlock()
	var found []finding
	for _, g := range d.gangs {
		if g.waiting.IsZero() || now.Sub(g.waiting) < reportGrace {
			continue
		}
		if f, ok := d.finding(g, now); ok {
			found = append(found, f)
		}
	}
	slices.SortFunc(found, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.group.Namespace, b.group.Namespace), cmp.Compare(a.group.Name, b.group.Name))
	})
	return found
}

// finding returns what there is to say of g, for callers that hold d.mu.
func (d *directory) finding(g *gang, now time.Time) (finding, bool) {
	s := d.specs[objectOf(g.id)]
	pol, ours := d.policyOf(g)
	if !ours {
		return finding{}, false // another scheduler's gang
	}
	f := finding{group: g.name, long: now.Sub(g.waiting) >= everyoneGrace}
	f.waiting, f.bound = g.references()
	if s != nil {
		f.object = objectReference(g.id, s.uid)
		if s.timeout > 0 {
			pol.timeout = s.timeout
		}
	}
	title := fmt.Sprintf("gang %s", g.id.Name)
	size := sizeOf(g, s)
	switch {
	case s != nil && size < 1:
		f.reason, f.note = ReasonInvalid, fmt.Sprintf("%s: minMember of its PodGroup is %d; set it to how many members must start together", title, size)
		return f, true
	case size < 1:
		f.reason, f.note = ReasonMissing, fmt.Sprintf("%s: %d members wait for its size; %s", title, len(f.waiting), remedy(g.id))
		return f, true
	case g.shown == nil:
		return finding{}, false
	case g.shown.hold != "":
		f.reason, f.note = ReasonMixed, fmt.Sprintf("%s: %s; make them equal", title, g.shown.hold)
		return f, true
	}
	need := int(g.shown.minCount)
	since := g.waiting
	if !g.partial.IsZero() {
		// Its time to become whole begins with its first node, however long it waited
		// for that.
		since = g.partial
	}
	over := now.Sub(since) >= pol.timeout
	if !over {
		f.remaining = pol.timeout - now.Sub(since)
	}
	numbers := fmt.Sprintf("%d of %d members exist", len(g.members), need)
	gated := g.gated()
	if gated > 0 {
		numbers += fmt.Sprintf(", %d of them behind a scheduling gate", gated)
	}
	missing := len(g.members)-gated < need
	if len(f.bound) > 0 {
		numbers += fmt.Sprintf(", %d have a node", len(f.bound))
	}
	if g.cycle.known {
		numbers += fmt.Sprintf(", at least %d more fit", g.cycle.fits)
	}
	f.reason, f.note = ReasonWaiting, fmt.Sprintf("%s: %s, needs %d", title, numbers, need)
	f.growing = missing
	if g.held.nodes > 0 && now.Before(g.held.until) {
		f.note += fmt.Sprintf("; seats on %d nodes are held for it", g.held.nodes)
		f.remaining, f.held = g.held.until.Sub(now), true
	}
	if !g.partial.IsZero() && over {
		f.reason, f.evict = ReasonPartial, pol.onPartial == args.Evict
		f.note = fmt.Sprintf("%s is bound in part after %s: %s, needs %d", title, pol.timeout, numbers, need)
	}
	// A gang that is complete and was not tried yet, or fits and is being bound, has
	// nothing to complain of.
	return f, f.reason == ReasonPartial || missing || g.cycle.known
}

// policyOf returns the policy of the profile that g's members name, for callers
// that hold d.mu, and whether it is one of ours.
func (d *directory) policyOf(g *gang) (policy, bool) {
	for _, name := range g.sorted() {
		if p, ok := d.policies[g.members[name].schedulerName]; ok {
			return p, true
		}
	}
	return policy{}, false
}

// sorted returns the UIDs of g's members in the order of their names.
func (g *gang) sorted() []types.UID {
	uids := make([]types.UID, 0, len(g.members))
	for uid := range g.members {
		uids = append(uids, uid)
	}
	slices.SortFunc(uids, func(a, b types.UID) int {
		return cmp.Or(cmp.Compare(g.members[a].name, g.members[b].name), cmp.Compare(a, b))
	})
	return uids
}

// gated returns how many members are not looked at because of a scheduling gate, and so
// count for nothing yet.
func (g *gang) gated() (n int) {
	for _, m := range g.members {
		if m.gated {
			n++
		}
	}
	return n
}

// references returns the members without and with a node; those that say themselves that
// they are gated are the last of those without.
func (g *gang) references() (waiting, bound []corev1.ObjectReference) {
	var gated []corev1.ObjectReference
	for _, uid := range g.sorted() {
		m := g.members[uid]
		reference := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: g.id.Namespace, Name: m.name, UID: uid}
		switch {
		case m.gated:
			gated = append(gated, reference)
		case m.node == "":
			waiting = append(waiting, reference)
		default:
			bound = append(bound, reference)
		}
	}
	return append(waiting, gated...), bound
}

// objectReference returns a reference to the PodGroup object of the gang called
// id, or nil where the family has none.
func objectReference(id gangkey.Gang, uid types.UID) *corev1.ObjectReference {
	resource, ok := resourceOf(id.Family)
	if !ok {
		return nil
	}
	return &corev1.ObjectReference{APIVersion: resource.GroupVersion().String(), Kind: "PodGroup", Namespace: id.Namespace, Name: id.Name, UID: uid}
}

// remedy says how the size of the gang called id can be said.
func remedy(id gangkey.Gang) string {
	label := "set the label " + gangkey.LabelMinAvailable
	if reference := objectReference(id, ""); reference != nil {
		return fmt.Sprintf("create the PodGroup %s/%s (%s), or %s", id.Namespace, id.Name, reference.APIVersion, label)
	}
	return label
}
