package recording

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Cycle is one scheduling cycle: one line of a recording. What it says of the
// cluster is what has changed since the line before.
type Cycle struct {
	// Number counts the entities that were taken from the queue, from 1. A number is
	// missing where nothing was tried.
	Number int64 `json:"cycle"`
	// Time is when the entity was taken from the queue.
	Time time.Time `json:"time"`
	// Group is the name of the PodGroup that was tried, in the namespace of its pods;
	// empty for a single pod.
	Group string `json:"group,omitempty"`
	// Hash is what package state says of what the scheduler saw.
	Hash string `json:"hash"`
	// Put are objects that are new, or have changed.
	Put []Object `json:"put,omitempty"`
	// Gone are the keys of objects that are not there any more. Pods are not among
	// them: see Placed and Waiting.
	Gone []string `json:"gone,omitempty"`
	// Placed are the nodes, by UID, of pods that are on another node than before;
	// empty for one that is on none any more.
	Placed map[types.UID]string `json:"placed,omitempty"`
	// Waiting are all pods without a node that could matter: those that are tried, that
	// are nominated to a node, and other members of groups of which a pod is tried or
	// placed.
	Waiting []types.UID `json:"waiting"`
	// Nominated has the node of each pod that is nominated to one.
	Nominated map[types.UID]string `json:"nominated,omitempty"`
	// Unsteady says that other pods were nominated, or fewer, while pods were tried:
	// somebody else changed them, and Nominated is not what all plugins saw.
	Unsteady bool `json:"unsteady,omitempty"`
	// Tries are the nodes that were found for the pods, in order. The pods of a group
	// can be tried several times.
	Tries []Try `json:"tries,omitempty"`
	// Attempts is what came of it for each pod, in the order of the entity.
	Attempts []Attempt `json:"attempts"`
	// Victims are the pods that were evicted to make room.
	Victims []Pod `json:"victims,omitempty"`
	// Order are the pods with a node, node by node, in the order in which the scheduler
	// has them, where room was made: that is how it takes pods that are equal to
	// preemption.
	Order []types.UID `json:"order,omitempty"`
	// Lost says that a group of which a pod is tried or placed has members on a node that
	// is gone: they are in no snapshot, but preemption for groups looks for them.
	Lost bool `json:"lost,omitempty"`
	// Held are the nodes on which seats were held for gangs.
	Held []string `json:"held,omitempty"`
	// Late are pods of earlier cycles that were given up since the last line, after a
	// node had been found for them.
	Late []Attempt `json:"late,omitempty"`
}

// Pod names a pod.
type Pod struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid,omitempty"`
}

// Try is what came of looking for a node for a pod once.
type Try struct {
	UID types.UID `json:"uid"`
	// Node is empty if none was found.
	Node string `json:"node,omitempty"`
}

// Attempt is what came of a cycle for a pod.
type Attempt struct {
	Pod
	// Node is where the pod goes; empty if it goes nowhere.
	Node string `json:"node,omitempty"`
	// Message is why not, whole. With a node, it is why the pod was given up after the
	// node had been found: a plugin's Reserve or Permit, or what binds.
	Message string `json:"message,omitempty"`
	// Nominated is the node that room is made on.
	Nominated string `json:"nominated,omitempty"`
	// Deleted says that the pod was gone when it was given up: parts of the scheduler
	// knew of that, and parts did not.
	Deleted bool `json:"deleted,omitempty"`
}

// Object is an object as the scheduler saw it.
type Object struct {
	// Key names it: the UID of a pod, and Kind/namespace/name of any other.
	Key string `json:"key"`
	// Kind is that of the API.
	Kind string `json:"kind"`
	// Object is all of it.
	Object json.RawMessage `json:"object"`

	of metav1.Object // what Object is made of, when it is written
}

// Read calls each with one cycle after the other, until it returns an error. A last
// line that has no end, as a scheduler leaves that is killed, is no error.
func Read(r io.Reader, each func(Cycle) error) error {
	lines := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read recording: %w", err)
		}
		var c Cycle
		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&c); err != nil {
			return fmt.Errorf("read recording: line %d: %w", n, err)
		}
		if err := each(c); err != nil {
			return err
		}
	}
}
