package engine

import (
	"encoding/json"
	"fmt"
	"sync"

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

	mu     sync.Mutex
	writes []write
	err    error
}

// write is one of: the eviction of a pod, a new nominated node of one, or an
// object in the place of the one of its name.
type write struct {
	pod     types.NamespacedName
	evict   bool
	node    *string
	updated runtime.Object
}

func newAPI(next func() string) *api {
	a := &api{client: &fake.Clientset{}, next: next}
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
		node, changed, err := nominatedIn(patch.GetPatch())
		if err == nil && changed {
			a.add(write{pod: types.NamespacedName{Namespace: patch.GetNamespace(), Name: patch.GetName()}, node: &node})
		}
		return true, nil, err
	case action.GetVerb() == "patch" && resource == "podgroups/status":
		// Nothing reads the conditions of a group.
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

// nominatedIn returns the nominated node that the patch of a pod's status writes,
// and whether it writes one. Conditions are of no consequence for placement.
func nominatedIn(patch []byte) (string, bool, error) {
	var p struct {
		Status map[string]json.RawMessage `json:"status"`
	}
	if err := json.Unmarshal(patch, &p); err != nil {
		return "", false, fmt.Errorf("read the patch of a pod's status: %w", err)
	}
	said, ok := p.Status["nominatedNodeName"]
	if !ok {
		return "", false, nil
	}
	var node string // stays empty where the patch takes the field away with null
	if err := json.Unmarshal(said, &node); err != nil {
		return "", false, fmt.Errorf("read the nominated node in the patch of a pod's status: %w", err)
	}
	return node, true, nil
}
