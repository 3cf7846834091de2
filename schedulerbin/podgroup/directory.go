package podgroup

import (
	"sync"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
)

// directory knows all gangs that the API does not: who their members are and what
// their PodGroup objects say. It keeps the feed's virtual PodGroups to that. It
// may be used from several goroutines at once.
type directory struct {
	clock  clock.PassiveClock
	newUID func() types.UID
	feed   *feed

	mu    sync.Mutex
	pins  map[types.UID]*pin // nil: a pod in no gang, for good
	gangs map[gangkey.Gang]*gang
	keys  map[types.NamespacedName]*gang // by the name that the scheduler knows
	of    map[object]map[*gang]bool      // by PodGroup object: several for a CronJob
	specs map[object]*spec
	seen  int

	policies map[string]policy // by schedulerName
}

// object names a PodGroup object of one of the families.
type object struct {
	family          gangkey.Family
	namespace, name string
}

func objectOf(g gangkey.Gang) object { return object{g.Family, g.Namespace, g.Name} }

// spec is what counts of a PodGroup object.
type spec struct {
	uid       types.UID
	minMember int32
	timeout   time.Duration // 0: it says none
	status    objectStatus
}

// pin is the gang that a pod is in. The handle is of the name by which the scheduler
// knows it, of which there is one copy for all members: the scheduler compares the names
// of each member that waits, whenever a pod comes, and two that are in one place are
// compared at once.
type pin struct {
	gangkey.Gang
	key unique.Handle[string]
}

// gang is what is known of one gang.
type gang struct {
	id       gangkey.Gang
	name     types.NamespacedName // by which the scheduler knows it
	uid      types.UID            // of the virtual PodGroup
	specUID  types.UID            // of the object that uid was made for
	members  map[types.UID]*member
	kinds    map[kind]int           // of members
	finished map[types.UID]finished // members that have ended and are still there
	seen     int                    // the order in which gangs were first seen
	started  time.Time              // when the first member was seen on a node
	waiting  time.Time              // since when a member has no node; zero: none waits
	partial  time.Time              // since when it is bound in part: fewer than it needs; zero: it is not
	shown    *published             // nil: the scheduler does not know the gang
	cycle    cycle
	held     held
	trial    any // the trial that placed counts, while the scheduler tries the gang
	placed   int
}

// cycle is what came of the scheduler's last try of a gang that did not fit in it.
type cycle struct {
	known bool
	fits  int // so many members were placed before it gave up
}

// held is that seats on so many nodes are held for a gang until then.
type held struct {
	nodes int
	until time.Time
}

func newDirectory(c clock.PassiveClock, newUID func() types.UID, f *feed) *directory {
	return &directory{
		clock: c, newUID: newUID, feed: f,
		pins:  map[types.UID]*pin{},
		gangs: map[gangkey.Gang]*gang{},
		keys:  map[types.NamespacedName]*gang{},
		of:    map[object]map[*gang]bool{},
		specs: map[object]*spec{},

		policies: map[string]policy{},
	}
}

// pin returns the name by which the scheduler knows the gang of pod: what it was when the
// pod was first seen. A pod that names a group of the API's is in no gang of ours.
func (d *directory) pin(pod *corev1.Pod) (key string, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.pinned(pod)
	if p == nil {
		return "", false
	}
	return p.key.Value(), true
}

// pinned is pin for callers that hold d.mu.
func (d *directory) pinned(pod *corev1.Pod) *pin {
	p, known := d.pins[pod.UID]
	if known {
		return p
	}
	if group := pod.Spec.SchedulingGroup; group == nil {
		if id, ok := gangkey.Of(pod); ok {
			p = &pin{Gang: id, key: unique.Make(id.Key())}
		}
	}
	d.pins[pod.UID] = p
	return p
}

// controllerOf returns the name and the UID of the pod's controller, or "" without
// one.
func controllerOf(pod metav1.Object) (name string, uid types.UID) {
	if owner := metav1.GetControllerOf(pod); owner != nil {
		return owner.Name, owner.UID
	}
	return "", ""
}

// setPod takes in a pod that is new or has changed.
func (d *directory) setPod(pod *corev1.Pod) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.pinned(pod)
	if p == nil {
		return
	}
	g := d.gang(p.Gang)
	g.put(pod.UID, memberOf(pod))
	d.show(g)
}

// removePod takes away a pod that is deleted or has finished.
func (d *directory) removePod(pod *corev1.Pod) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.pinned(pod)
	delete(d.pins, pod.UID)
	if p == nil {
		return
	}
	g := d.gang(p.Gang)
	g.drop(pod.UID)
	d.show(g)
}

// setFinished takes in a pod that has succeeded or failed and is still there.
func (d *directory) setFinished(pod metav1.Object, failed bool) {
	id, ok := gangkey.Of(pod)
	if !ok {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	g := d.gang(id)
	owner, controller := controllerOf(pod)
	g.finished[pod.GetUID()] = finished{failed: failed, owner: owner, controller: controller}
	d.show(g)
}

// removeFinished takes away a pod that had succeeded or failed.
func (d *directory) removeFinished(pod metav1.Object) {
	id, ok := gangkey.Of(pod)
	if !ok {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	g := d.gang(id)
	delete(g.finished, pod.GetUID())
	d.show(g)
}

// setSpec takes in a PodGroup object; nil takes it away.
func (d *directory) setSpec(of object, s *spec) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s == nil {
		delete(d.specs, of)
	} else {
		d.specs[of] = s
	}
	for g := range d.of[of] {
		d.show(g)
	}
}

// endCycle notes that the scheduler has tried the group, and whether it fits. What fits
// has nothing to complain of while its members are being bound.
func (d *directory) endCycle(group types.NamespacedName, fits bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if g := d.keys[group]; g != nil {
		g.cycle = cycle{}
		if !fits {
			g.cycle = cycle{known: true, fits: g.placed}
		}
		g.trial, g.placed = nil, 0
	}
}

// failed notes that the group was tried and that so many members fit.
func (d *directory) failed(group types.NamespacedName, fits int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if g := d.keys[group]; g != nil {
		g.cycle = cycle{known: true, fits: fits}
	}
}

// fits notes that the group was tried and fits.
func (d *directory) fits(group types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if g := d.keys[group]; g != nil {
		g.cycle = cycle{}
	}
}

// hold notes that seats on so many nodes are held for the group until then.
func (d *directory) hold(group types.NamespacedName, h held) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if g := d.keys[group]; g != nil {
		g.held = h
	}
}

// gang returns the gang called id, for callers that hold d.mu.
func (d *directory) gang(id gangkey.Gang) *gang {
	g := d.gangs[id]
	if g == nil {
		d.seen++
		g = &gang{
			id: id, name: types.NamespacedName{Namespace: id.Namespace, Name: unique.Make(id.Key()).Value()},
			members: map[types.UID]*member{}, kinds: map[kind]int{}, finished: map[types.UID]finished{}, seen: d.seen,
		}
		d.gangs[id], d.keys[g.name] = g, g
		of := objectOf(id)
		if d.of[of] == nil {
			d.of[of] = map[*gang]bool{}
		}
		d.of[of][g] = true
	}
	return g
}

// forget takes g away, for callers that hold d.mu.
func (d *directory) forget(g *gang) {
	delete(d.gangs, g.id)
	delete(d.keys, g.name)
	of := objectOf(g.id)
	delete(d.of[of], g)
	if len(d.of[of]) == 0 {
		delete(d.of, of)
	}
}

// show brings the feed to what is known of g, for callers that hold d.mu.
func (d *directory) show(g *gang) {
	if len(g.members) == 0 && len(g.finished) == 0 {
		d.forget(g)
	}
	waits, placed := false, int32(0)
	for k, n := range g.kinds {
		waits = waits || !k.placed
		if k.placed {
			placed += int32(n)
		}
		if k.placed && g.started.IsZero() {
			g.started = d.clock.Now()
		}
	}
	switch {
	case !waits:
		g.waiting, g.cycle = time.Time{}, cycle{}
	case g.waiting.IsZero():
		g.waiting = d.clock.Now()
	}
	s := d.specs[objectOf(g.id)]
	wanted := wantedGroup(g, s)
	switch {
	case wanted == nil || placed == 0 || placed >= wanted.minCount:
		g.partial = time.Time{}
	case g.partial.IsZero():
		g.partial = d.clock.Now()
	}
	if wanted == nil {
		if g.shown != nil {
			d.feed.remove(g.name)
			g.shown = nil
		}
		return
	}
	var specUID types.UID
	if s != nil {
		specUID = s.uid
	}
	if g.uid == "" || g.specUID != specUID {
		g.uid, g.specUID, g.shown = d.newUID(), specUID, nil
	}
	if g.shown != nil && *g.shown == *wanted {
		return // every event wakes groups that have failed
	}
	g.shown = wanted
	d.feed.set(wanted.object(g.name, g.uid))
}
