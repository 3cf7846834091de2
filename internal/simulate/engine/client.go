package engine

import (
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// api is what the scheduler takes for the API server. What is written is kept
// until the engine takes it, between two cycles, as a watch would bring it. It may
// be used from several goroutines at once.
type api struct {
	client *fake.Clientset
	// next returns a new resource version.
	next func() string
	// wake tells the engine that somebody waits for an object to be created.
	wake func()

	mu       sync.Mutex
	writes   []write
	creating []creation
	made     map[string]int // names that were made up, by what they begin with
	err      error
}

// write is one of: the eviction of a pod, a new nominated node or new devices of one,
// an object in the place of the one of its name, or one that goes.
type write struct {
	pod     types.NamespacedName
	evict   bool
	node    *string
	devices *corev1.PodExtendedResourceClaimStatus
	updated runtime.Object
	removed *resourcev1.ResourceClaim
}

// creation is a claim that a plugin makes for the devices of a pod. It goes on only
// when it has seen the claim in its informer.
type creation struct {
	claim *resourcev1.ResourceClaim
	done  chan struct{}
}

func newAPI(next func() string) *api {
	a := &api{client: &fake.Clientset{}, next: next, wake: func() {}, made: map[string]int{}}
	a.client.AddReactor("*", "*", a.react)
	return a
}

// take returns what was written since it was last called, in order. The error is
// for a call that a simulated cluster cannot answer.
func (a *api) take() ([]write, error) {
	a.client.ClearActions()
	a.mu.Lock()
	defer a.mu.Unlock()
	writes, err := a.writes, a.err
	a.writes, a.err = nil, nil
	return writes, err
}

func (a *api) add(w write) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.writes = append(a.writes, w)
}

// react answers one call.
func (a *api) react(action clienttesting.Action) (bool, runtime.Object, error) {
	resource := action.GetResource().Resource
	if action.GetSubresource() != "" {
		resource += "/" + action.GetSubresource()
	}
	switch {
	case action.Matches("delete", "pods"):
		a.add(write{pod: types.NamespacedName{Namespace: action.GetNamespace(), Name: action.(clienttesting.DeleteAction).GetName()}, evict: true})
		return true, nil, nil
	case action.GetVerb() == "patch" && resource == "pods/status":
		patch := action.(clienttesting.PatchAction)
		node, devices, err := statusIn(patch.GetPatch())
		if err == nil && (node != nil || devices != nil) {
			a.add(write{pod: types.NamespacedName{Namespace: patch.GetNamespace(), Name: patch.GetName()}, node: node, devices: devices})
		}
		return true, nil, err
	case action.GetVerb() == "patch" && resource == "podgroups/status":
		// Nothing reads the conditions of a group.
		return true, nil, nil
	case action.Matches("create", "resourceclaims"):
		if claim, ok := action.(clienttesting.CreateAction).GetObject().(*resourcev1.ResourceClaim); ok {
			return true, a.create(claim.DeepCopy()), nil
		}
	case action.Matches("delete", "resourceclaims"):
		a.add(write{removed: &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: action.GetNamespace(), Name: action.(clienttesting.DeleteAction).GetName()}}})
		return true, nil, nil
	case action.GetVerb() == "update":
		return a.update(action.(clienttesting.UpdateAction))
	}
	err := fmt.Errorf("a plugin asked the API server to %s %s, which a simulated cluster cannot do", action.GetVerb(), resource)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
	return true, nil, err
}

// update takes the object as it was written, with a new resource version.
func (a *api) update(action clienttesting.UpdateAction) (bool, runtime.Object, error) {
	updated := action.GetObject().DeepCopyObject()
	if object, ok := updated.(interface{ SetResourceVersion(string) }); ok {
		object.SetResourceVersion(a.next())
	}
	a.add(write{updated: updated})
	return true, updated.DeepCopyObject(), nil
}

// create returns the claim as it is in the store, where the engine has put it by then.
func (a *api) create(claim *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	c := creation{claim: claim, done: make(chan struct{})}
	a.mu.Lock()
	if claim.Name == "" {
		claim.Name = claim.GenerateName + strconv.Itoa(a.made[claim.Namespace+"/"+claim.GenerateName])
		a.made[claim.Namespace+"/"+claim.GenerateName]++
	}
	claim.UID = types.UID("simulated/claim/" + claim.Namespace + "/" + claim.Name)
	a.creating = append(a.creating, c)
	a.mu.Unlock()
	a.wake()
	<-c.done
	return claim.DeepCopy()
}

// serve has put do for each claim that is being created, and lets those who wait for
// them go on.
func (a *api) serve(put func(*resourcev1.ResourceClaim) error) {
	a.mu.Lock()
	creating := a.creating
	a.creating = nil
	a.mu.Unlock()
	for _, c := range creating {
		if err := put(c.claim); err != nil {
			a.mu.Lock()
			a.err = err
			a.mu.Unlock()
		}
		close(c.done)
	}
}

// statusIn returns the nominated node and the devices that the patch of a pod's status
// writes, nil where it writes none. Conditions are of no consequence for placement.
func statusIn(patch []byte) (node *string, devices *corev1.PodExtendedResourceClaimStatus, err error) {
	var p struct {
		Status struct {
			Node    json.RawMessage                        `json:"nominatedNodeName"`
			Devices *corev1.PodExtendedResourceClaimStatus `json:"extendedResourceClaimStatus"`
		} `json:"status"`
	}
	if err := json.Unmarshal(patch, &p); err != nil {
		return nil, nil, fmt.Errorf("read the patch of a pod's status: %w", err)
	}
	if p.Status.Node != nil {
		node = new(string) // stays empty where the patch takes the field away with null
		if err := json.Unmarshal(p.Status.Node, node); err != nil {
			return nil, nil, fmt.Errorf("read the nominated node in the patch of a pod's status: %w", err)
		}
	}
	return node, p.Status.Devices, nil
}
