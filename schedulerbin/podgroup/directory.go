package podgroup

import (
	"sync"
	"time"

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
	pins  map[types.UID]*gangkey.Gang // nil: a pod in no gang, for good
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

// gang is what is known of one gang.
type gang struct {
	id       gangkey.Gang
	uid      types.UID // of the virtual PodGroup
	specUID  types.UID // of the object that uid was made for
	members  map[types.UID]*member
	finished map[types.UID]finished // members that have ended and are still there
	seen     int                    // the order in which gangs were first seen
	started  time.Time              // when the first member was seen on a node
	waiting  time.Time              // since when a member has no node; zero: none waits
	shown    *published             // nil: the scheduler does not know the gang
	cycle    cycle
	held     held
	trial    any // the trial that placed counts, while the scheduler tries the gang
	placed   int
}

// member is a member that has not finished.
type member struct {
	name          string
	priority      int32
	preemption    corev1.PreemptionPolicy
	schedulerName string
	node          string
	running       bool
	owner         string // the name of the controller
	controller    types.UID
	minAvailable  int32
}

// finished is a member that has succeeded or failed.
type finished struct {
	failed     bool
	owner      string
	controller types.UID
}

// cycle is what came of the scheduler's last try of a gang.
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
		pins:  map[types.UID]*gangkey.Gang{},
		gangs: map[gangkey.Gang]*gang{},
		keys:  map[types.NamespacedName]*gang{},
		of:    map[object]map[*gang]bool{},
		specs: map[object]*spec{},

		policies: map[string]policy{},
	}
}

// pin returns the gang of pod: what it was when the pod was first seen. A pod that
// names a group of the API's is in no gang of ours.
func (d *directory) pin(pod *corev1.Pod) (gangkey.Gang, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := d.pinned(pod)
	if id == nil {
		return gangkey.Gang{}, false
	}
	return *id, true
}

// pinned is pin for callers that hold d.mu.
func (d *directory) pinned(pod *corev1.Pod) *gangkey.Gang {
	id, known := d.pins[pod.UID]
	if known {
		return id
	}
	if group := pod.Spec.SchedulingGroup; group == nil {
		if found, ok := gangkey.Of(pod); ok {
			id = &found
		}
	}
	d.pins[pod.UID] = id
	return id
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
	id := d.pinned(pod)
	if id == nil {
		return
	}
	g := d.gang(*id)
	owner, controller := controllerOf(pod)
	m := &member{
		name:          pod.Name,
		priority:      gangkey.Priority(pod),
		preemption:    corev1.PreemptLowerPriority,
		schedulerName: pod.Spec.SchedulerName,
		node:          pod.Spec.NodeName,
		running:       pod.Status.Phase == corev1.PodRunning,
		minAvailable:  gangkey.MinAvailable(pod),
		owner:         owner,
		controller:    controller,
	}
	if pod.Spec.PreemptionPolicy != nil {
		m.preemption = *pod.Spec.PreemptionPolicy
	}
	g.members[pod.UID] = m
	d.show(g)
}

// removePod takes away a pod that is deleted or has finished.
func (d *directory) removePod(pod *corev1.Pod) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := d.pinned(pod)
	delete(d.pins, pod.UID)
	if id == nil {
		return
	}
	g := d.gang(*id)
	delete(g.members, pod.UID)
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

// endCycle notes that the scheduler has tried the group.
func (d *directory) endCycle(group types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if g := d.keys[group]; g != nil {
		g.cycle = cycle{known: true, fits: g.placed}
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
		g = &gang{id: id, members: map[types.UID]*member{}, finished: map[types.UID]finished{}, seen: d.seen}
		d.gangs[id], d.keys[g.name()] = g, g
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
	delete(d.keys, g.name())
	of := objectOf(g.id)
	delete(d.of[of], g)
	if len(d.of[of]) == 0 {
		delete(d.of, of)
	}
}

// name returns the name by which the scheduler knows g.
func (g *gang) name() types.NamespacedName {
	return types.NamespacedName{Namespace: g.id.Namespace, Name: g.id.Key()}
}

// show brings the feed to what is known of g, for callers that hold d.mu.
func (d *directory) show(g *gang) {
	if len(g.members) == 0 && len(g.finished) == 0 {
		d.forget(g)
	}
	waits := false
	for _, m := range g.members {
		waits = waits || m.node == ""
		if m.node != "" && g.started.IsZero() {
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
	if wanted == nil {
		if g.shown != nil {
			d.feed.remove(g.name())
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
	d.feed.set(wanted.object(g.id, g.uid))
}
