package gpumemory

import (
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
)

// entry is what the ledger knows of one pod.
type entry struct {
	need
	node string
	// on are the pod's devices; 0 if nobody knows them, as of a pod that something
	// else than this plugin bound.
	on devices
	// running pods are taken to be in what their node says is free.
	running bool
}

// ledger maps pods to devices, by the pods' UIDs. A pod enters it at Reserve, or
// when it is seen bound; then its annotation is read once, so that a later change
// of the annotation moves nothing. It says who is where, never how much is free:
// that is derived from the NodeInfo at hand.
type ledger struct {
	mu   sync.RWMutex
	pods map[types.UID]entry
	// onNode are the pods that are seen bound, by node.
	onNode map[string]sets.Set[types.UID]
	// counted is, by node, how much memory the running pods had when the node last
	// said how much is free. On top of what it says, so much is in use.
	counted map[string]int64
}

func newLedger() *ledger {
	return &ledger{pods: map[types.UID]entry{}, onNode: map[string]sets.Set[types.UID]{}, counted: map[string]int64{}}
}

// put notes the devices that a pod gets.
func (l *ledger) put(uid types.UID, e entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pods[uid] = e
}

// drop forgets the pod.
func (l *ledger) drop(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	node := l.pods[uid].node
	delete(l.pods, uid)
	if l.onNode[node].Delete(uid); len(l.onNode[node]) == 0 {
		delete(l.onNode, node)
	}
}

// devices are the pod's devices, 0 if they are not known.
func (l *ledger) devices(uid types.UID) devices {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.pods[uid].on
}

// bound notes a pod that is bound, as the API server has it. What is known of its
// devices stays. initial is true for the pods that are there at the start.
func (l *ledger) bound(pod *v1.Pod, initial bool) {
	n, err := read(pod)
	if err != nil || n == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e, known := l.pods[pod.UID]
	if !known {
		e.on, _ = parseDevices(pod.Annotations[args.PodGPUIndex])
		e.need = *n
	}
	e.node = pod.Spec.NodeName
	e.running = pod.Status.Phase == v1.PodRunning
	l.pods[pod.UID] = e
	if l.onNode[e.node] == nil {
		l.onNode[e.node] = sets.New[types.UID]()
	}
	l.onNode[e.node].Insert(pod.UID)
	if initial && !known && e.running {
		l.counted[e.node] += e.Bytes * int64(e.Devices)
	}
}

// count takes what the node now says is free to be without what its running pods
// have.
func (l *ledger) count(node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := int64(0)
	for uid := range l.onNode[node] {
		if e := l.pods[uid]; e.running {
			sum += e.Bytes * int64(e.Devices)
		}
	}
	l.counted[node] = sum
}

// podHandler follows the bound pods.
func (l *ledger) podHandler() cache.ResourceEventHandler {
	return cache.FilteringResourceEventHandler{
		FilterFunc: func(object any) bool {
			pod, ok := last(object).(*v1.Pod)
			return ok && pod.Spec.NodeName != "" && asks(pod)
		},
		Handler: cache.ResourceEventHandlerDetailedFuncs{
			AddFunc: func(object any, initial bool) {
				if pod, ok := object.(*v1.Pod); ok {
					l.bound(pod, initial)
				}
			},
			UpdateFunc: func(_, object any) {
				if pod, ok := object.(*v1.Pod); ok {
					l.bound(pod, false)
				}
			},
			DeleteFunc: func(object any) {
				if pod, ok := last(object).(*v1.Pod); ok {
					l.drop(pod.UID)
				}
			},
		},
	}
}

// nodeHandler follows what nodes say is free by the labels.
func (l *ledger) nodeHandler(labels []args.FreeLabel) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if node, ok := object.(*v1.Node); ok {
				l.count(node.Name)
			}
		},
		UpdateFunc: func(before, after any) {
			was, ok := before.(*v1.Node)
			is, also := after.(*v1.Node)
			if !ok || !also {
				return
			}
			for _, label := range labels {
				if was.Labels[label.Key] != is.Labels[label.Key] {
					l.count(is.Name)
					return
				}
			}
		},
		DeleteFunc: func(object any) {
			if node, ok := last(object).(*v1.Node); ok {
				l.mu.Lock()
				defer l.mu.Unlock()
				delete(l.counted, node.Name)
			}
		},
	}
}

// last is the object of a delete event, as it was last seen.
func last(object any) any {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		return gone.Obj
	}
	return object
}
