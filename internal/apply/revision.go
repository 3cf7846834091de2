package apply

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/ownership"
)

// RevisionState is how far a revision has come.
type RevisionState string

// The states of a revision.
const (
	// Open means that its run has begun and, if it is not running right now, was
	// interrupted.
	Open RevisionState = "open"
	// Complete means that everything in it was written.
	Complete RevisionState = "complete"
	// Failed means that its run ended, with some of it refused by the cluster.
	Failed RevisionState = "failed"
)

// Revision is one numbered state of a set: what its run left, or set out to
// leave, in the cluster.
type Revision struct {
	// Format is the version of this format: 1.
	Format int `json:"format"`
	Number int `json:"number"`
	// State and Finished are kept outside of the compressed content, because
	// they change; Finished is zero while the revision is open.
	State    RevisionState `json:"-"`
	Finished time.Time     `json:"-"`
	// Cause says what made it: "apply", "undo to revision 3", "delete".
	Cause string `json:"cause"`
	// By is the user as the cluster knows them, Tool our version.
	By      string    `json:"by,omitempty"`
	Tool    string    `json:"tool"`
	Started time.Time `json:"started"`
	Scope   Scope     `json:"scope"`
	Step    Step      `json:"step,omitzero"`
	// Source is what the objects were compiled from, under SurfaceAdmission: by it
	// the pods are found that a policy selects.
	Source Source `json:"source,omitzero"`
	// Items are the workloads with fields of ours, sorted as they were applied.
	Items []Item `json:"items,omitempty"`
	// Objects are the objects of our making, in the order in which they are
	// written.
	Objects []ObjectItem `json:"objects,omitempty"`
	// Nodes are the taints and labels of ours on nodes, sorted by the node's name.
	Nodes []NodeItem `json:"nodes,omitempty"`
	// Pools are the pools whose nodes we write, sorted by name. Revisions of older
	// versions have none.
	Pools []PoolItem `json:"pools,omitempty"`

	// parts is how many ConfigMaps hold it; 0 if it is not stored yet.
	parts int
}

// Item is one workload in a revision.
type Item struct {
	Group     string    `json:"group,omitempty"`
	Version   string    `json:"version"`
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	// Record is what is ours in it. It is here as well as on the object, so that
	// an annotation that somebody strips is noticed and can be written again.
	Record *ownership.Record `json:"record"`
	// Policies are the policies in force for it, sorted.
	Policies []string `json:"policies,omitempty"`
	// Origins are the policies' lines for each field, by its JSON pointer.
	Origins map[string][]compiler.Origin `json:"origins,omitempty"`
}

func (i Item) groupKind() schema.GroupKind { return schema.GroupKind{Group: i.Group, Kind: i.Kind} }

// Ref names the item as workload.Workload.Ref does.
func (i Item) Ref() string { return ref(i.groupKind(), i.Namespace, i.Name) }

func ref(gk schema.GroupKind, namespace, name string) string {
	kind := gk.Kind
	if gk.Group != "" && gk.Group != "apps" && gk.Group != "batch" {
		kind += "." + gk.Group
	}
	if namespace != "" {
		name = namespace + "/" + name
	}
	return kind + " " + name
}

// ObjectItem is one object of our making in a revision.
type ObjectItem struct {
	// Object is what it says, with the marks of the set and without what a server
	// writes: enough to make it again.
	Object map[string]any `json:"object"`
	// Origins are the policies' lines that ask for it.
	Origins []compiler.Origin `json:"origins,omitempty"`
}

func (o ObjectItem) unstructured() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: o.Object}
}

// Ref names the object as ObjectChange.Ref does.
func (o ObjectItem) Ref() string { return objectRef(o.unstructured()) }

// NodeItem is a taint or a label of ours on one node.
type NodeItem struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
	Pool string    `json:"pool"`
	// Taint has no key where it is a label.
	Taint corev1.Taint `json:"taint,omitzero"`
	Label string       `json:"label,omitempty"`
	Value string       `json:"value,omitempty"`
}

func (i NodeItem) mark() Mark { return Mark{Taint: i.Taint, Label: i.Label, Value: i.Value} }

// PoolItem is a pool whose nodes we write.
type PoolItem struct {
	Name string `json:"name"`
	// Selector describes its nodes: they meet any one of the terms.
	Selector []corev1.NodeSelectorTerm `json:"selector"`
	Marks    []Mark                    `json:"marks"`
	Origins  []compiler.Origin         `json:"origins,omitempty"`
}

// records maps the UIDs of the items to their records.
func (r *Revision) records() map[types.UID]*ownership.Record {
	records := make(map[types.UID]*ownership.Record, len(r.Items))
	for _, item := range r.Items {
		records[item.UID] = item.Record
	}
	return records
}

// chunkSize is how many bytes of a revision go into one ConfigMap. An object
// may have 1 MiB, and not much more than this is safe beside its metadata when
// it travels as base64 in JSON (etcd's own limit is 1.5 MiB).
const chunkSize = 900 << 10

// maxRevisionSize bounds what a revision may unpack to, against an object that
// somebody made to exhaust our memory: a hundred thousand workloads of a few KiB.
const maxRevisionSize = 512 << 20

// encode returns the revision compressed and cut into parts, at least one.
func (r *Revision) encode() ([][]byte, error) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if err := json.NewEncoder(w).Encode(r); err != nil {
		return nil, fmt.Errorf("encode revision %d: %w", r.Number, err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("encode revision %d: %w", r.Number, err)
	}
	var parts [][]byte
	for rest := packed.Bytes(); len(rest) > 0; {
		n := min(len(rest), chunkSize)
		parts = append(parts, rest[:n])
		rest = rest[n:]
	}
	return parts, nil
}

// decodeRevision is the inverse of encode.
func decodeRevision(parts [][]byte) (*Revision, error) {
	r, err := gzip.NewReader(bytes.NewReader(bytes.Join(parts, nil)))
	if err != nil {
		return nil, fmt.Errorf("decode revision: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(r, maxRevisionSize+1))
	if err != nil {
		return nil, fmt.Errorf("decode revision: %w", err)
	}
	if len(data) > maxRevisionSize {
		return nil, fmt.Errorf("decode revision: more than %d MiB", maxRevisionSize>>20)
	}
	var revision Revision
	if err := json.Unmarshal(data, &revision); err != nil {
		return nil, fmt.Errorf("decode revision: %w", err)
	}
	for i, item := range revision.Objects {
		// As from an API server, whole numbers are integers.
		revision.Objects[i].Object, _ = plain(item.Object).(map[string]any)
	}
	if revision.Format != revisionFormat {
		return nil, fmt.Errorf("decode revision %d: its format is %d and this version reads %d; use the version that wrote it (%s)", revision.Number, revision.Format, revisionFormat, revision.Tool)
	}
	return &revision, nil
}

const revisionFormat = 1
